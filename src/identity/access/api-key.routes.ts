import type { AccountId } from '../../base/id.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
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

const OF_API_KEY = {
  resource: 'api-key',
  accountScope: 'none',
  access: 'caller',
  opensAll: true,
  data: ApiKeyRow,
} as const

/**
 * API keys (docs/contract/identity.md#api-keys). A user's session needs no permission for the user's own keys; the
 * permission of a route opens the keys of all users.
 */
export const apiKeyRoutes: Routes<ApiKeyDeps> = [
  defineRoute(
    {
      ...OF_API_KEY,
      method: 'POST',
      path: '/api/v3/identity/api-key',
      action: 'create',
      fresh: 'factor',
      status: 201,
      summary: 'Create an API key for oneself',
      description:
        'At each use the key holds a subset of the permissions of its owner. It is shown in this answer only. A key that is created with another key expires with that key at the latest. With `account` the key holds its permissions in that account only, and ends when its owner leaves the account or the account is deleted. A user has at most 100 keys that are neither revoked nor expired.',
      body: CreateApiKeyBody,
      data: ApiKeyWithKey,
      problems: ['permission_denied'],
      shownOnce: 'key',
    },
    async (deps: ApiKeyDeps, { db, body, caller, permission, now }) => {
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
        data: { ...toApiKeyRow(record), key },
        message: 'API key created. Store the key: it is not shown again.',
        changed: [{ id: record.id, account: null }],
        location: `/api/v3/identity/api-key/${record.id}`,
        audit: { permissions: record.patterns, ...(record.account && { account: record.account }) },
      }
    },
  ),
  defineList(
    {
      ...OF_API_KEY,
      path: '/api/v3/identity/api-key',
      summary: 'List API keys',
      description: "The caller's own keys; with the permission `api-key:find-all` those of all users.",
      problems: ['permission_denied'],
      list: API_KEY_FIELDS,
    },
    {
      rows: ({ db, caller, permission }) => buildWholeList(selectApiKeys(db, findOwners(caller, permission))),
      toRow: toApiKeyRow,
      message: 'API keys.',
    },
  ),
  defineRead(
    {
      ...OF_API_KEY,
      path: '/api/v3/identity/api-key/{id}',
      summary: 'Read one API key',
      description: "The caller's own key; with the permission `api-key:find-one` any user's.",
      params: IdParams,
      problems: ['permission_denied'],
    },
    {
      load: ({ db, params, caller, permission }) => loadApiKey(db, { id: params.id, caller, permission }),
      toRow: toApiKeyRow,
      message: 'API key.',
      changedOf: (target) => [{ id: target.id, account: null }],
    },
  ),
  defineRoute(
    {
      ...OF_API_KEY,
      method: 'DELETE',
      path: '/api/v3/identity/api-key/{id}',
      action: 'delete',
      summary: 'Revoke an API key, at once',
      description:
        "The caller's own key; with the permission `api-key:delete` any user's, if the caller holds what the key holds.",
      params: IdParams,
      problems: ['permission_denied'],
    },
    {
      row: {
        find: (_deps: ApiKeyDeps, { db, params, caller, permission }) =>
          loadApiKey(db, { id: params.id, caller, permission }),
        neededBy: 'validation',
      },
      handle: async (_deps, { db, params, caller, permission, now }) => {
        const key = await revokeApiKey(db, { id: params.id, caller, permission, now })
        return { data: toApiKeyRow(key), message: 'API key revoked.', changed: [{ id: key.id, account: null }] }
      },
    },
  ),
]
