import { Problem } from '../../../http/problem/problem.ts'
import type { AnswerCookie } from '../../../http/route/outcome.ts'
import {
  type AccountScope,
  type BehaviourOrHandle,
  defineRoute,
  type PageOutcome,
  type RedirectOutcome,
  type RefusalOutcome,
  type RequestFacts,
  type Route,
} from '../../../http/route/route.ts'
import { type TSchema, Type } from '../../../http/shape/schema-type.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { readHeader } from '../../session/session.routes.ts'
import type { Brand } from '../brand/brand.ts'
import { type BrowserDeps, findVisitor, type Visitor } from '../browser/browser-session.ts'
import { findFormProblem } from '../browser/form-check.ts'
import { buildPage, type PageBody } from './page.ts'
import { type Continuation, describeProblem, renderError } from './problem-page.ts'

/** Dependencies of every page. */
export interface PageDeps extends BrowserDeps {
  brand: Brand
  baseUrl: () => string
}

/** The name of the hidden field that proves the origin of a form. */
export const FORM_TOKEN_FIELD = 'form_token'

/** Longest value of a query parameter of a page, in characters. */
const QUERY_VALUE_LIMIT = 4096

/** The declaration of a page. Its form runs the operation of a route of the API, and has its event. */
export interface PageDeclaration<Field extends string, Name extends string> {
  /** Default `GET`. A form is a `POST`. */
  method?: 'GET' | 'POST'
  path: string
  resource: string
  /** Default `show`. */
  action?: string
  summary: string
  /** The fields of its form with their longest values, in characters. A missing field is empty. */
  fields?: Readonly<Record<Field, number>>
  /** The parameters of its query. Others are ignored. */
  query?: readonly Name[]
  /** Default: of a form `shared`, else `none`. */
  event?: 'none' | 'shared'
  /** As in `RouteDeclaration`. */
  eventAction?: string
  bodyLimitBytes?: number
  /** Of the event. Default `none`. */
  accountScope?: AccountScope
  /** Default: of a form, which a stranger can post, with refusals audited. */
  strictRateLimit?: boolean
  /** As in `RouteDeclaration`. */
  needsAdmission?: true
  /** Whether a GET changes something. */
  writes?: boolean
  /**
   * Where the form is again, for a browser in which a user signed in, in another tab, since the page was opened: its form is
   * no longer valid. `isSameUser` tells whether that user has an e-mail address. Default: the problem, as a page.
   */
  againAt?: (form: Readonly<Record<Field, string>>, isSameUser: (email: string) => boolean) => string
  /**
   * A form that a mail program posts, from any origin and without cookies (RFC 8058): the token in the query is all that it
   * proves, so it may do no more than that token is for.
   */
  isOneClick?: true
}

/** A request for a page. */
export interface PageRequest<Field extends string, Name extends string, Prepared> {
  visitor: Visitor
  form: Readonly<Record<Field, string>>
  query: Readonly<Partial<Record<Name, string>>>
  prepared: Prepared
  db: Database
  now: Date
  address: string
  userAgent: string | null
  /** The `Cookie` header, for cookies of a feature's own. */
  cookieHeader: string | undefined
  requestId: string
  /** The trace context that is stored with events. */
  trace: string | null
}

/** Answers of the pages of a route. */
export type PageAnswer = PageOutcome | RedirectOutcome | RefusalOutcome

/** The steps of a page, in the order in which they run. */
export interface PageBehaviour<Deps, Field extends string, Name extends string, Prepared> {
  prepare?: (deps: Deps, request: PageRequest<Field, Name, undefined>) => Promise<Prepared>
  handle: (deps: Deps, request: PageRequest<Field, Name, Prepared>) => Promise<PageAnswer>
}

type Checked<Prepared> = { visitor: Visitor; problem: Problem } | { visitor: Visitor; prepared: Prepared }

/** Declares a page. A form that no page of ours sent in this browser is refused before anything else, and audited. */
export function definePage<
  Deps extends PageDeps,
  Field extends string = never,
  Name extends string = never,
  Prepared = undefined,
>(
  declaration: PageDeclaration<Field, Name>,
  behaviour: BehaviourOrHandle<PageBehaviour<Deps, Field, Name, Prepared>>,
): Route<Deps> {
  const { prepare, handle } = typeof behaviour === 'function' ? { prepare: undefined, handle: behaviour } : behaviour
  const { method = 'GET', action = 'show', fields, query, isOneClick, againAt, ...rest } = declaration
  const isForm = method === 'POST'
  const read = (facts: RequestFacts<unknown, unknown, unknown>, visitor: Visitor) => ({
    visitor,
    form: readTexts(facts.body, Object.keys(fields ?? {})) as Record<Field, string>,
    query: facts.query as Partial<Record<Name, string>>,
    now: facts.now,
    address: facts.address,
    userAgent: readHeader(facts.headers, 'user-agent'),
    cookieHeader: readHeader(facts.headers, 'cookie') ?? undefined,
    requestId: facts.requestId,
    trace: facts.trace,
  })
  return defineRoute(
    {
      accountScope: 'none',
      event: isForm ? 'shared' : 'none',
      strictRateLimit: isForm,
      ...rest,
      method,
      action,
      page: true,
      access: 'public',
      takesForm: isForm,
      ...(isOneClick && { takesMultipart: true }),
      data: Type.Null(),
      ...(query && { query: buildTexts(query.map((name) => [name, QUERY_VALUE_LIMIT])) }),
      ...(isForm && { body: buildTexts([...Object.entries<number>(fields ?? {}), [FORM_TOKEN_FIELD, 200]]) }),
    },
    {
      prepare: async (deps: Deps, facts): Promise<Checked<Prepared>> => {
        const visitor = await findVisitor(deps, facts.headers)
        const problem = isForm && !isOneClick ? checkForm(deps, facts, visitor) : undefined
        if (problem) return { visitor, problem }
        const request = { ...read(facts, visitor), db: facts.db, prepared: undefined }
        try {
          return { visitor, prepared: (await prepare?.(deps, request)) as Prepared }
        } catch (error) {
          // An attempt that is refused here has written nothing yet; as a refusal it leaves an audit entry.
          if (!isForm || !(error instanceof Problem)) throw error
          return { visitor, problem: error }
        }
      },
      handle: async (deps, facts) => {
        const checked = facts.prepared
        if ('problem' in checked) {
          const { visitor, problem } = checked
          if (!againAt || !isOutdated(problem, facts.body))
            return showProblem(deps, problem, { requestId: facts.requestId, visitor })
          const { form, now } = read(facts, visitor)
          const { findKnownBrowser } = deps.browserKeys
          const location = againAt(form, (email) => findKnownBrowser(visitor.browserId, { email, now }) !== undefined)
          return { kind: 'refusal', problem, instead: { location } }
        }
        const { visitor, prepared } = checked
        const answer = await handle(deps, { ...read(facts, visitor), db: facts.db, prepared })
        return keepBrowser(deps, answer, visitor) as PageOutcome
      },
    },
  )
}

function buildTexts(limits: readonly (readonly [string, number])[]): TSchema {
  const members = limits.map(([name, maxLength]) => [name, Type.Optional(Type.String({ maxLength }))])
  return Type.Object(Object.fromEntries(members), { additionalProperties: true })
}

function readTexts(body: unknown, names: readonly string[]): Record<string, string> {
  const given = (body ?? {}) as Record<string, string>
  return Object.fromEntries(names.map((name) => [name, given[name] ?? '']))
}

const readFormToken = (body: unknown): string => readTexts(body, [FORM_TOKEN_FIELD])[FORM_TOKEN_FIELD] ?? ''

/** Whether a refused form came from a page of the service, and only its token is of another id of the browser. */
const isOutdated = ({ code, reason }: Problem, body: unknown): boolean =>
  code === 'form_refused' && reason === 'form_token' && readFormToken(body) !== ''

function checkForm(
  deps: PageDeps,
  { headers, body }: RequestFacts<unknown, unknown, unknown>,
  visitor: Visitor,
): Problem | undefined {
  return findFormProblem({
    headers,
    ownOrigin: new URL(deps.baseUrl()).origin,
    browserId: visitor.knownBrowserId,
    formToken: readFormToken(body),
    isFormToken: deps.browserKeys.isFormToken,
  })
}

/** A refusal that is shown with the general words of its code, and with the link `continuation`. */
export function showProblem(
  deps: Pick<PageDeps, 'brand'>,
  problem: Problem,
  { requestId, visitor, ...way }: { requestId: string; visitor: Pick<Visitor, 'texts'>; continuation?: Continuation },
): RefusalOutcome {
  const page = renderError({ ...describeProblem(problem), requestId, texts: visitor.texts, ...way })
  return refusePage(deps, { problem, page })
}

/** A refusal that is shown as this page, with the status of the problem. */
export function refusePage(
  deps: Pick<PageDeps, 'brand'>,
  refusal: {
    problem: Problem
    page: PageBody
    target?: string | null
    actor?: NonNullable<RefusalOutcome['actor']>
    subject?: string
  },
): RefusalOutcome {
  const { problem, page, ...rest } = refusal
  const { html, headers = {} } = buildPage({ brand: deps.brand, ...page })
  return { kind: 'refusal', problem, instead: { html }, headers, ...rest }
}

/** Adds the cookie of the browser's id to the answer for a new browser, unless the answer sets one. */
function keepBrowser(deps: PageDeps, answer: PageAnswer, visitor: Visitor): PageAnswer {
  if (visitor.knownBrowserId !== undefined || answer.cookies !== undefined) return answer
  const cookies: AnswerCookie[] = [deps.cookies.keepBrowser(visitor.browserId)]
  return { ...answer, cookies }
}
