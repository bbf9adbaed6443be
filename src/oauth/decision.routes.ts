import { Problem } from '../http/problem.ts'
import { defineRoute, type Routes } from '../http/route.ts'
import { enumSchema, named, nullable, UuidSchema } from '../http/schema.ts'
import { Type } from '../http/schema-type.ts'
import { type ConsentDeps, decideConsent } from './consent.ts'

const DECISIONS = ['approve', 'deny'] as const

const DecisionBody = named(
  'OauthDecision',
  Type.Object(
    {
      authorization_id: Type.String({ minLength: 1, maxLength: 100, description: 'The id of the consent page.' }),
      decision: enumSchema(DECISIONS),
      scopes: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
          maxItems: 100,
          uniqueItems: true,
          description: 'The scopes that are given. Default: all that the app asks for.',
        }),
      ),
    },
    { additionalProperties: false },
  ),
)

const RecordedDecision = named(
  'OauthRecordedDecision',
  Type.Object({
    document_id: nullable(UuidSchema),
    decision: enumSchema(DECISIONS),
    authorize_url: Type.String({ description: 'Where the browser continues.' }),
  }),
)

/** The decision of a person about an authorization (docs/contract/oauth.md#decision). */
export const decisionRoutes: Routes<ConsentDeps> = [
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
        'Records who decided what, when and from where. The browser that asked for the authorization continues at `authorize_url`; no other one can. `document_id` is the grant; null for a refusal.',
      body: DecisionBody,
      data: RecordedDecision,
      problems: ['conflict', 'not_found'],
    },
    {
      handle: async (deps: ConsentDeps, { db, body, caller, now }) => {
        if (caller.sessionId === null)
          throw new Problem('conflict', 'An API key decides nothing: use the session of a person.')
        const { authorization_id: authorizationId, decision, scopes } = body
        const recorded = await decideConsent(deps, db, {
          authorizationId,
          isApproved: decision === 'approve',
          scopes,
          userId: caller.userId,
          now,
        })
        const { grant, clientId, authorizeUrl } = recorded
        return {
          data: { document_id: grant?.id ?? null, decision, authorize_url: authorizeUrl },
          message: decision === 'approve' ? 'Access given.' : 'Access refused.',
          changed: [{ id: grant?.id ?? null, account: null, url: null }],
          audit: { decision, client: clientId, ...(grant && { scopes: grant.scopes }) },
        }
      },
    },
  ),
]
