import { buildNotFresh, type Freshness, isFresh } from '../../../http/request/freshness.ts'
import type { BehaviourOrHandle, RedirectOutcome, RefusalOutcome, Route } from '../../../http/route/route.ts'
import type { SignedInUser, Visitor } from '../browser/browser-session.ts'
import { definePage, type PageAnswer, type PageDeclaration, type PageDeps, type PageRequest } from './page-route.ts'
import { askToSignIn, buildStepUpUrl, redirectTo } from './page-url.ts'

/** The declaration of a page for a user who is signed in. */
export interface UserPageDeclaration<Field extends string, Name extends string> extends PageDeclaration<Field, Name> {
  /** Proof that the session must have given recently (docs/contract/second-factor.md#step-up). Default: nothing. */
  fresh?: Freshness
  /** Page with the form, at which the browser continues after a sign-in or a fresh proof. Default: the path. */
  returnTo?: string
}

/** A request of a user who is signed in. */
export type UserRequest<Field extends string, Name extends string, Prepared> = PageRequest<Field, Name, Prepared> & {
  user: SignedInUser
}

/** The steps of a page for a user. */
export interface UserPageBehaviour<Deps, Field extends string, Name extends string, Prepared> {
  prepare?: (deps: Deps, request: UserRequest<Field, Name, undefined>) => Promise<Prepared>
  handle: (deps: Deps, request: UserRequest<Field, Name, Prepared>) => Promise<PageAnswer>
}

/** Declares a page for a signed-in user. Others sign in first, or give a fresh proof, and then send the form again. */
export function defineUserPage<
  Deps extends PageDeps,
  Field extends string = never,
  Name extends string = never,
  Prepared = undefined,
>(
  declaration: UserPageDeclaration<Field, Name>,
  behaviour: BehaviourOrHandle<UserPageBehaviour<Deps, Field, Name, Prepared>>,
): Route<Deps> {
  const { prepare, handle } = typeof behaviour === 'function' ? { prepare: undefined, handle: behaviour } : behaviour
  const { fresh, returnTo = declaration.path, ...rest } = declaration
  const isForm = declaration.method === 'POST'
  const find = (visitor: Visitor, now: Date) => findObstacle(visitor, { fresh, returnTo, isForm, now })
  return definePage<Deps, Field, Name, { value: Prepared } | undefined>(rest, {
    prepare: async (deps, request) => {
      const { visitor, now } = request
      if (!prepare || find(visitor, now) || !visitor.user) return undefined
      return { value: await prepare(deps, { ...request, user: visitor.user }) }
    },
    handle: async (deps, request) => {
      const { visitor, now } = request
      const { user } = visitor
      const obstacle = find(visitor, now)
      if (obstacle || !user) return obstacle ?? askToSignIn(visitor, returnTo)
      const answer = await handle(deps, { ...request, user, prepared: request.prepared?.value as Prepared })
      return { actor: actorOf(user), ...answer }
    },
  })
}

function actorOf({ userId, sessionId }: SignedInUser): NonNullable<RefusalOutcome['actor']> {
  return { userId, sessionId, account: null }
}

/** Step required before a page: a sign-in or a fresh proof. Undefined for a user whose proof is fresh enough. */
function findObstacle(
  visitor: Visitor,
  { fresh, returnTo, isForm, now }: { fresh: Freshness | undefined; returnTo: string; isForm: boolean; now: Date },
): RedirectOutcome | RefusalOutcome | undefined {
  const { user } = visitor
  if (!user) return askToSignIn(visitor, returnTo)
  if (!fresh || isFresh(user.caller, fresh, now)) return undefined
  const location = buildStepUpUrl(returnTo)
  if (!isForm) return redirectTo(location)
  return { kind: 'refusal', problem: buildNotFresh(user.caller), instead: { location }, actor: actorOf(user) }
}
