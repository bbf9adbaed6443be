import { isUuid } from '../../base/id.ts'
import { invalidField, Problem } from '../../http/problem/problem.ts'
import { defineRoute, type RefusalOutcome, type RequestFacts, type Routes } from '../../http/route/route.ts'
import { namedObject } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { readHeader } from '../../identity/session/session.routes.ts'
import { readBeginning } from '../exchange/access-token.ts'
import { buildApiAudience } from '../exchange/token-issuer.ts'
import { findHookFault, type HookKeys } from './hook-signature.ts'
import { findTokenSubject } from './token-hook.store.ts'
import { decideTokenClaims } from './token-hook.ts'

/** Dependencies of the hook. */
export interface TokenHookDeps {
  /** `OAUTH_HOOK_SECRET`. */
  hookKeys: HookKeys
  baseUrl: () => string
}

/** Bytes of a body: the claims of a user with much metadata. */
const BODY_LIMIT_BYTES = 262_144

/** Body of Supabase Auth. Open: a newer server may send more members. */
const HookBody = namedObject(
  'AccessTokenHookCall',
  {
    user_id: Type.String({ description: 'The subject at the engine.' }),
    claims: Type.Object({}, { additionalProperties: true, description: 'The claims that the engine will sign.' }),
  },
  { additionalProperties: true },
)

/** Answer to it: claims to sign, or an error with which it refuses. */
const HookAnswer = namedObject('AccessTokenHookAnswer', { claims: Type.Object({}, { additionalProperties: true }) })

type HookClaims = Static<typeof HookBody>['claims'] & Record<string, unknown>

/** The access-token hook of a managed engine (docs/contract/oauth-exchange.md#access-token-hook). */
export const tokenHookRoutes: Routes<TokenHookDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/oauth/hook/access-token',
      resource: 'oauth-hook',
      action: 'access-token',
      accountScope: 'none',
      access: 'public',
      event: 'none',
      bare: true,
      bodyLimitBytes: BODY_LIMIT_BYTES,
      summary: 'Decide whether a user of a managed engine gets an access token, and with which claims',
      description:
        'Called by the engine, signed by Standard Webhooks under `OAUTH_HOOK_SECRET`. A refusal is `{ "error": { "http_code", "message" } }` with status 200, as the engine expects it.',
      body: HookBody,
      data: HookAnswer,
      problems: ['signature_invalid'],
    },
    {
      // Runs when the body is invalid: a caller that cannot sign gets the same 401 for every body.
      row: { find: async (deps: TokenHookDeps, request) => checkSignature(deps, request), neededBy: 'validation' },
      prepare: async (deps, request) => checkSignature(deps, request),
      handle: async ({ baseUrl }: TokenHookDeps, { db, body }) => {
        const claims = body.claims as HookClaims
        if (claims.sub !== body.user_id || !isUuid(body.user_id))
          throw invalidField('user_id', 'subject', 'must be the `sub` of the claims')
        const client = readClient(claims)
        const clientId = client?.id ?? null
        const found = await findTokenSubject(db, { engineSubject: body.user_id, clientId })
        const beganAtSeconds = readBeginning(claims)
        const decision = decideTokenClaims({ subject: undefined, ...found, client, beganAtSeconds })
        const userId = found?.subject.userId ?? null
        if (decision.kind === 'refuse')
          return buildRefusal(decision.reason, { userId, sessionId: null, account: null, clientId })
        const own = client ? { ...decision.claims, aud: buildApiAudience(baseUrl()) } : decision.claims
        // Nothing changes, so there is no event and no audit entry for each token.
        return { data: { claims: { ...claims, ...own } }, message: 'Issued.', changed: [] }
      },
    },
  ),
]

/** Throws 401 `signature_invalid` for a call that the engine did not sign. */
function checkSignature(
  { hookKeys }: TokenHookDeps,
  { headers, rawBody: body, now }: Pick<RequestFacts<unknown, unknown, unknown>, 'headers' | 'rawBody' | 'now'>,
): void {
  const read = (name: string) => readHeader(headers, `webhook-${name}`)
  const message = { id: read('id'), timestamp: read('timestamp'), signature: read('signature'), body, now }
  const fault = findHookFault(hookKeys, message)
  if (fault === undefined) return
  const detail = 'The signature does not fit OAUTH_HOOK_SECRET, or its timestamp is off by more than 300 s.'
  throw new Problem('signature_invalid', detail, { reason: fault })
}

/** The app of a token; null for a token of the user itself. */
function readClient({ client_id: id, scope }: HookClaims): { id: string; scope: string } | null {
  if (id === undefined || id === null) return null
  if (typeof id !== 'string' || id === '') throw invalidField('claims.client_id', 'type', 'must be a text')
  return { id, scope: typeof scope === 'string' ? scope : '' }
}

function buildRefusal(reason: string, actor: NonNullable<RefusalOutcome['actor']>): RefusalOutcome {
  return {
    kind: 'refusal',
    problem: new Problem('permission_denied', 'This user gets no token.', { reason }),
    instead: { json: { error: { http_code: 403, message: reason } }, status: 200 },
    actor,
  }
}
