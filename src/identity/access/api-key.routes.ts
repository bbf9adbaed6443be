import type { AccountId } from '../../base/id.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { readInstant } from '../../http/shape/instant.ts'
import { ApiKeyRow, ApiKeyWithKey, CreateApiKeyBody } from './api-key.schema.ts'
import { selectApiKeys, toApiKeyRow } from './api-key.store.ts'
import { type ApiKeyDeps, createApiKey, loadApiKey, revokeApiKey } from './api-key.ts'
import { findOwners } from './own-rows.ts'

const API_KEY_FIELDS = rowFields({
  user: { type: 'uuid' },
  account: { type: 'uuid' },
  created_with: { type: 'uuid' },
  name: { type: 'text', sortable: true, like: 'indexed' },
  expires_at: { type: 'timestamp' },
  last_used_at: { type: 'timestamp' },
})

const apiKey = defineRow(
  {
    resource: 'api-key',
    path: '/api/v3/identity/api-key/{id}',
    accountScope: 'none',
    access: 'caller',
    opensAll: true,
    params: IdParams,
    data: ApiKeyRow,
    problems: ['permission_denied'],
  },
  {
    noun: 'API key',
    load: ({ db, params, caller, permission }) => loadApiKey(db, { id: params.id, caller, permission }),
    toRow: toApiKeyRow,
  },
)

/** API keys (docs/contract/identity.md#api-keys): by a session the user's own, by a permission those of all users. */
export const apiKeyRoutes: Routes<ApiKeyDeps> = [
  apiKey.create(
    {
      fresh: 'factor',
      summary: 'Create an API key for oneself',
      description:
        'At each use the key holds a subset of the permissions of its owner. It is shown in this answer only. A key that is created with another key expires with that key at the latest. With `account` the key holds its permissions in that account only, and ends when its owner leaves the account or the account is deleted. A user has at most 100 keys that are neither revoked nor expired.',
      body: CreateApiKeyBody,
      data: ApiKeyWithKey,
      shownOnce: 'key',
    },
    async (deps, { db, body, caller, permission, now }) => {
      const { record, key } = await createApiKey(deps, db, {
        name: body.name,
        patterns: body.permissions,
        account: (body.account ?? null) as AccountId | null,
        expiresAt: body.expires_at ? readInstant('expires_at', body.expires_at) : null,
        caller,
        permission,
        now,
      })
      return {
        row: record,
        more: { key },
        message: 'API key created. Store the key: it is not shown again.',
        audit: { permissions: record.patterns, ...(record.account && { account: record.account }) },
      }
    },
  ),
  apiKey.list(
    {
      summary: 'List API keys',
      description: "The caller's own keys; with the permission `api-key:find-all` those of all users.",
      list: API_KEY_FIELDS,
    },
    {
      rows: ({ db, caller, permission }) => buildWholeList(selectApiKeys(db, findOwners(caller, permission))),
      message: 'API keys.',
    },
  ),
  apiKey.read({
    summary: 'Read one API key',
    description: "The caller's own key; with the permission `api-key:find-one` any user's.",
  }),
  apiKey.delete(
    {
      summary: 'Revoke an API key, at once',
      description:
        "The caller's own key; with the permission `api-key:delete` any user's, if the caller holds what the key holds.",
    },
    async (_deps, { db, params, caller, permission, now }) => ({
      row: await revokeApiKey(db, { id: params.id, caller, permission, now }),
      message: 'API key revoked.',
    }),
  ),
]
