import { buildNotFresh, type Freshness, isFresh } from '../../../http/request/freshness.ts'
import type { RedirectOutcome, RefusalOutcome, Route } from '../../../http/route/route.ts'
import type { SignedInPerson, Visitor } from '../browser/browser-session.ts'
import { definePage, type PageAnswer, type PageDeclaration, type PageDeps, type PageRequest } from './page-route.ts'
import { askToSignIn, buildStepUpUrl } from './page-url.ts'

/** The declaration of a page for a person who is signed in. */
export interface PersonPageDeclaration<Field extends string, Name extends string> extends PageDeclaration<Field, Name> {
  /** What the session must have proven of late (docs/contract/second-factor.md#step-up). Default: nothing. */
  fresh?: Freshness
  /** Where the browser continues after a sign-in or a fresh proof: the page with the form. Default: the path. */
  returnTo?: string
}

/** A request of a person who is signed in. */
export type PersonRequest<Field extends string, Name extends string, Prepared> = PageRequest<Field, Name, Prepared> & {
  person: SignedInPerson
}

/** The steps of a page for a person. */
export interface PersonPageBehaviour<Deps, Field extends string, Name extends string, Prepared> {
  /** Slow work, outside the transaction. */
  prepare?: (deps: Deps, request: PersonRequest<Field, Name, undefined>) => Promise<Prepared>
  handle: (deps: Deps, request: PersonRequest<Field, Name, Prepared>) => Promise<PageAnswer>
}

/**
 * Declares a page for a person who is signed in: any other visitor is asked to sign in, and a session whose proof is too
 * old is asked for a new one. The request is not repeated; the person sends the form again.
 */
export function definePersonPage<
  Deps extends PageDeps,
  Field extends string = never,
  Name extends string = never,
  Prepared = undefined,
>(
  declaration: PersonPageDeclaration<Field, Name>,
  behaviour: PersonPageBehaviour<Deps, Field, Name, Prepared>,
): Route<Deps> {
  const { fresh, returnTo = declaration.path, ...rest } = declaration
  const isForm = declaration.method === 'POST'
  const find = (visitor: Visitor, now: Date) => findObstacle(visitor, { fresh, returnTo, isForm, now })
  return definePage<Deps, Field, Name, { value: Prepared } | undefined>(rest, {
    prepare: async (deps, request) => {
      const { visitor, now } = request
      if (!behaviour.prepare || find(visitor, now) || !visitor.person) return undefined
      return { value: await behaviour.prepare(deps, { ...request, person: visitor.person }) }
    },
    handle: async (deps, request) => {
      const { visitor, now } = request
      const { person } = visitor
      const obstacle = find(visitor, now)
      if (obstacle || !person) return obstacle ?? askToSignIn(visitor, returnTo)
      const answer = await behaviour.handle(deps, { ...request, person, prepared: request.prepared?.value as Prepared })
      return { actor: actorOf(person), ...answer }
    },
  })
}

function actorOf({ userId, sessionId }: SignedInPerson): NonNullable<RefusalOutcome['actor']> {
  return { userId, sessionId, account: null }
}

/** What stands before a page: a sign-in or a fresh proof. Undefined for a person whose proof is fresh enough. */
function findObstacle(
  visitor: Visitor,
  { fresh, returnTo, isForm, now }: { fresh: Freshness | undefined; returnTo: string; isForm: boolean; now: Date },
): RedirectOutcome | RefusalOutcome | undefined {
  const { person } = visitor
  if (!person) return askToSignIn(visitor, returnTo)
  if (!fresh || isFresh(person.caller, fresh, now)) return undefined
  const location = buildStepUpUrl(returnTo)
  if (!isForm) return { kind: 'redirect', status: 303, location }
  return { kind: 'refusal', problem: buildNotFresh(person.caller), instead: { location }, actor: actorOf(person) }
}
