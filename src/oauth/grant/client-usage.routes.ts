import { defineRoute, type Routes } from '../../http/route/route.ts'
import { named, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { CONSENT_LIMIT, readClientUsage } from './client-usage.store.ts'

/** Maximum number of clients in one request: each may have `CONSENT_LIMIT` consents to count. */
const CLIENTS_LIMIT = 50

const UsageSchema = namedObject('OauthClientUsage', {
  client: UuidSchema,
  consents: Type.Integer({ description: `Consents that hold, counted up to ${CONSENT_LIMIT}.` }),
  last_used_at: nullable({
    ...TimestampSchema,
    description:
      'When it last got a token, precise to the hour, or authenticated by a secret that is still valid, precise to the minute; null: never.',
  }),
})

/** Use of the clients of the OAuth provider (docs/contract/oauth.md#use-of-clients). */
export const clientUsageRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/oauth/dashboard/client',
      resource: 'oauth-client',
      action: 'dashboard-clients',
      accountScope: 'none',
      summary: 'Consents and last use of OAuth clients',
      description: 'Of up to 50 clients, in the order of the request. Deleted ones are left out.',
      query: Type.Object({
        client: Type.Array(UuidSchema, { minItems: 1, maxItems: CLIENTS_LIMIT, description: 'Ids of clients.' }),
      }),
      data: named('OauthClientUsages', Type.Array(UsageSchema)),
    },
    async (_deps: object, { db, query }) => ({
      data: (await readClientUsage(db, { ids: query.client })).map(({ client, consents, lastUsedAt }) => ({
        client,
        consents,
        last_used_at: lastUsedAt?.toISOString() ?? null,
      })),
      message: 'Use of the clients.',
    }),
  ),
]
