import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams, named, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { loadClient } from './client.ts'
import { listedSecret } from './secret-list.store.ts'
import { listSecrets, revokeSecret } from './secret-list.ts'

const SecretRow = namedObject(
  'OauthClientSecret',
  {
    document_id: UuidSchema,
    created_at: TimestampSchema,
    expires_at: nullable(TimestampSchema),
    last_used_at: nullable({
      ...TimestampSchema,
      description: 'When the client last authenticated by it, precise to the minute; null: never.',
    }),
  },
  { description: 'A secret is kept as a hash, so no part of it can be shown.' },
)

const toSecretRow = wireOf(listedSecret, SecretRow)

const SecretParams = Type.Object({ id: UuidSchema, secret: UuidSchema })

export const secretListRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/oauth/client/{id}/secret',
      resource: 'oauth-client',
      action: 'find-secrets',
      accountScope: 'none',
      summary: 'List the valid secrets of an OAuth client',
      description:
        'When each was created, when it expires and when it was last used, the newest first. At most 5 are valid at once.',
      params: IdParams,
      data: named('OauthClientSecrets', Type.Array(SecretRow)),
    },
    async (_deps: object, { db, params, now }) => ({
      data: (await listSecrets(db, { client: params.id, now })).map(toSecretRow),
      message: 'Valid secrets.',
      changed: [{ id: params.id, account: null }],
    }),
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: '/api/v3/oauth/client/{id}/secret/{secret}',
      resource: 'oauth-client',
      action: 'revoke-secret',
      accountScope: 'none',
      summary: 'Revoke one secret of an OAuth client, at once',
      description:
        'The other secrets stay valid. A client whose last secret is revoked gets a new one by rotate-secret.',
      params: SecretParams,
      data: SecretRow,
    },
    {
      row: { find: (_deps: object, { db, params }) => loadClient(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, now }) => {
        const secret = await revokeSecret(db, { client: params.id, secret: params.secret, now })
        return {
          data: toSecretRow(secret),
          message: 'Secret revoked.',
          changed: [{ id: params.id, account: null }],
          audit: { secret: params.secret },
        }
      },
    },
  ),
]
