import type { Keyring } from '../../base/keyring.ts'
import { Problem } from '../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, namedObject, nullable, UuidSchema } from '../../http/route/schema.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import {
  deleteEngineSession,
  ENGINE_DECISION_PATH,
  findEngineToken,
} from '../../identity/social-login/flow/engine-session.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type ConsentDeps, decideConsent } from '../consent/consent.ts'
import type { DecidedConsent, EngineConsent } from '../engine-consent/engine-consent.ts'

const DECISIONS = ['approve', 'deny'] as const

const DecisionBody = namedObject('OauthDecision', {
  authorization_id: Type.String({ minLength: 1, maxLength: 100, description: 'The id of the consent page.' }),
  decision: enumSchema(DECISIONS),
  scopes: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
      maxItems: 100,
      uniqueItems: true,
      description: 'The scopes that are given. Default: all that the app asks for.',
    }),
  ),
})

const RecordedDecision = namedObject('OauthRecordedDecision', {
  document_id: nullable(UuidSchema),
  decision: enumSchema(DECISIONS),
  authorize_url: Type.String({ description: 'Where the browser continues.' }),
})

/** Dependencies of a decision. */
export interface DecisionDeps extends ConsentDeps {
  keyring: Keyring
  /** Undefined with the embedded engine. */
  engineConsent: EngineConsent | undefined
}

/** The session of the user. Throws 409 for an API key. */
function readSession({ sessionId }: Caller) {
  if (sessionId !== null) return sessionId
  throw new Problem('conflict', 'An API key decides nothing: use the session of a user.')
}

/** Decides at a managed engine, by the token of this session there. Throws 409 for a session without one. */
async function decideAtEngine(
  deps: DecisionDeps,
  db: Database,
  { caller, body, now }: { caller: Caller; body: Static<typeof DecisionBody>; now: Date },
): Promise<DecidedConsent | undefined> {
  const { engineConsent } = deps
  const sessionId = readSession(caller)
  if (!engineConsent) return undefined
  const { authorization_id: authorizationId, decision, scopes = [] } = body
  const token = await findEngineToken(deps, db, { sessionId, now })
  if (token === undefined)
    throw new Problem('conflict', `Sign in for this decision at ${ENGINE_DECISION_PATH} of this service first.`)
  const user = { userId: caller.userId, token }
  const decided = await engineConsent.decide(db, { user, authorizationId, decision, scopes, now })
  await engineConsent.leave(token)
  return decided
}

/** The decision of a user about an authorization (docs/contract/oauth.md#decision). */
export const decisionRoutes: Routes<DecisionDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/oauth/decision',
      resource: 'oauth-decision',
      action: 'create',
      accountScope: 'none',
      access: 'caller',
      summary: 'Decide whether an OAuth client gets access',
      description:
        'Records the user, the decision, the time and the address. Only the browser that asked for the authorization can continue at `authorize_url`. `document_id` is the grant, or the record of a refusal; null where a managed engine held the consent already.',
      body: DecisionBody,
      data: RecordedDecision,
      problems: ['conflict', 'not_found'],
    },
    {
      prepare: (deps: DecisionDeps, { db, body, caller, now }) => decideAtEngine(deps, db, { caller, body, now }),
      handle: async (deps, { db, body, caller, prepared: atEngine, now }) => {
        const { authorization_id: authorizationId, decision, scopes } = body
        const message = decision === 'approve' ? 'Access given.' : 'Access refused.'
        const refusal = decision === 'deny' ? deps.ids.next<'oauth decision'>() : null
        if (atEngine) {
          await deleteEngineSession(db, { sessionId: readSession(caller) })
          return {
            data: { document_id: atEngine.grantId ?? refusal, decision, authorize_url: atEngine.authorizeUrl },
            message,
            changed: [{ id: atEngine.grantId ?? refusal, account: null, url: null }],
            audit: { decision, client: atEngine.clientId, ...(decision === 'approve' && { scopes: scopes ?? [] }) },
          }
        }
        const recorded = await decideConsent(deps, db, {
          authorizationId,
          isApproved: decision === 'approve',
          scopes,
          userId: caller.userId,
          sessionId: caller.sessionId,
          now,
        })
        const { grant, clientId, authorizeUrl } = recorded
        return {
          data: { document_id: grant?.id ?? refusal, decision, authorize_url: authorizeUrl },
          message,
          changed: [{ id: grant?.id ?? refusal, account: null, url: null }],
          audit: { decision, client: clientId, ...(grant && { scopes: grant.scopes }) },
        }
      },
    },
  ),
]
