import type { FieldError } from '../../http/problem/field-error.ts'
import { Problem } from '../../http/problem/problem.ts'
import { defineRoute, type RefusalOutcome, type Routes } from '../../http/route/route.ts'
import { readHeader } from '../../identity/session/session.routes.ts'
import { ExchangeAnswer, ExchangeBody, toExchangeAnswer } from './exchange.schema.ts'
import { type ExchangeDeps, exchangeToken, presentToken, type RefusedExchange } from './exchange.ts'
import { type FormFault, readTokenExchange } from './token-exchange-form.ts'

/** Kind of a request: an exchange, or a form that breaks a rule of its standard. */
type Asked =
  | { kind: 'json'; token: string; scope: undefined; clientId: undefined }
  | { kind: 'form'; token: string; scope: string | undefined; clientId: string | undefined }
  | { kind: 'fault'; fault: FormFault }

/** The exchange of an app's access token (docs/contract/oauth-exchange.md#exchange). */
export const exchangeRoutes: Routes<ExchangeDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/oauth/exchange',
      resource: 'oauth',
      action: 'exchange',
      accountScope: 'none',
      access: 'public',
      strictRateLimit: true,
      takesForm: true,
      bare: true,
      summary: "Exchange an app's access token for a session JWT",
      description:
        'Takes `{ "token" }`, or the form of RFC 8693. The JWT acts for the user who allowed the app: what the scopes open, as far as the user holds it. It ends with the access token. Every refused token is the same 401; in the form it is 400 with `error` by RFC 6749.',
      body: ExchangeBody,
      data: ExchangeAnswer,
      problems: ['oauth_exchange_failed', 'dependency_unavailable'],
    },
    {
      prepare: async (deps: ExchangeDeps, { body, headers, now }) => {
        const asked = readAsked(deps, { body, isForm: isForm(headers) })
        if (asked.kind === 'fault') return { asked, presented: undefined }
        return { asked, presented: await presentToken(deps, asked.token, now) }
      },
      handle: async (deps: ExchangeDeps, { db, prepared, address, headers, now }) => {
        const { asked, presented } = prepared
        if (asked.kind === 'fault') return buildFormRefusal(asked.fault, asked.fault.error)
        if (!presented) throw new Error('a token that is asked for is presented')
        const origin = { address, userAgent: readHeader(headers, 'user-agent') }
        const { scope: asksFor, clientId } = asked
        const result = await exchangeToken(deps, db, { presented, scope: asksFor, clientId, origin, now })
        if (result.kind === 'refused') return buildRefusal(result, asked.kind)
        const { issued, token, userId, scope } = result
        return {
          data: toExchangeAnswer(result, asked.kind === 'form'),
          message: 'Signed in.',
          changed: [{ id: issued.sessionId, account: null }],
          audit: { scope, ...(token.grantId !== null && { grant_id: token.grantId }) },
          actor: {
            userId,
            sessionId: issued.sessionId,
            account: issued.account?.id ?? null,
            clientId: token.clientId,
          },
        }
      },
    },
  ),
]

function isForm(headers: Record<string, string | string[] | undefined>): boolean {
  return (
    readHeader(headers, 'content-type')?.trim().toLowerCase().startsWith('application/x-www-form-urlencoded') ?? false
  )
}

/** Throws 422 for a JSON body that is not `{ "token": <text> }`. */
function readAsked({ tokenIssuers }: ExchangeDeps, { body, isForm }: { body: unknown; isForm: boolean }): Asked {
  const given = body as Record<string, unknown>
  if (isForm) {
    const form = readTokenExchange(
      given,
      tokenIssuers.flatMap((issuer) => issuer.audiences()),
    )
    return form.ok ? { kind: 'form', ...form } : { kind: 'fault', fault: form.fault }
  }
  const unknown = Object.keys(given).find((name) => name !== 'token')
  if (typeof given.token === 'string' && unknown === undefined)
    return { kind: 'json', token: given.token, scope: undefined, clientId: undefined }
  const error: FieldError =
    unknown === undefined
      ? { path: 'token', code: 'type', message: 'must be a text', params: { types: ['string'] } }
      : { path: unknown.slice(0, 100), code: 'unknown_member', message: 'is not a member of this body' }
  throw new Problem('validation_failed', `${error.path}: ${error.message}.`, { errors: [error] })
}

const DETAIL = 'The access token is not valid here. Get a new one from the token endpoint, or ask the user again.'

/** One answer for every reason, which is only in the log and the audit entry. */
function buildRefusal({ reason, token, userId }: RefusedExchange, kind: 'json' | 'form'): RefusalOutcome {
  const facts = {
    actor: { userId, sessionId: null, account: null, clientId: token?.clientId ?? null },
    ...(token?.grantId != null && { audit: { grant_id: token.grantId } }),
  }
  if (kind === 'json') {
    const headers = { 'www-authenticate': 'Bearer error="invalid_token"' }
    return { kind: 'refusal', problem: new Problem('oauth_exchange_failed', DETAIL, { reason, headers }), ...facts }
  }
  // RFC 8693 section 2.2.2: an unacceptable subject token is an invalid request.
  const fault: FormFault =
    reason === 'scope_exceeded'
      ? { error: 'invalid_scope', error_description: 'scope asks for more than the access token has.' }
      : { error: 'invalid_request', error_description: DETAIL }
  return { ...buildFormRefusal(fault, reason), ...facts }
}

function buildFormRefusal(fault: FormFault, reason: string): RefusalOutcome {
  return {
    kind: 'refusal',
    problem: new Problem('oauth_exchange_failed', fault.error_description, { reason }),
    instead: { json: { ...fault }, status: 400 },
  }
}
