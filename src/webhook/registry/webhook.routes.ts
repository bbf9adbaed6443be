import { rowFields } from '../../http/listing/listing.ts'
import { buildList } from '../../http/listing/page.ts'
import { checkHeldEverywhere } from '../../http/pipeline/caller-refusal.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineRow } from '../../http/route/row-route.ts'
import { ActiveBody, IdParams } from '../../http/route/schema.ts'
import { sayWarnings } from '../event-set/subscription.ts'
import { isWebhookOf, keepOwnWebhooks } from '../reach/account-reach.store.ts'
import {
  checkMaySubscribe,
  checkOwnerInScope,
  checkRoomForMoved,
  loadWithin,
  lockRoom,
  rowWithin,
} from '../reach/account-reach.ts'
import { BY_WEBHOOK } from '../reach/row-owner.ts'
import { checkImportedSecret } from './imported-secret.ts'
import { checkNewTarget } from './mode.ts'
import { readHeaders } from './own-headers.ts'
import { CreateWebhookBody, UpdateWebhookBody, WebhookRow, WebhookWithSecret } from './webhook.schema.ts'
import { selectWebhooks, toWebhookRow } from './webhook.store.ts'
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  loadWebhook,
  prepareChange,
  purgeWebhook,
  rotateSecret,
  setWebhookActive,
  type WebhookDeps,
} from './webhook.ts'

export const WEBHOOK_FIELDS = rowFields({
  url: { type: 'text', sortable: true, like: 'indexed', collation: 'C' },
  name: { type: 'text', like: 'indexed' },
  description: { type: 'text', like: 'indexed' },
  is_global: { type: 'boolean' },
  account: { type: 'uuid' },
  is_actived: { type: 'boolean' },
  consecutive_failures: { type: 'integer', sortable: true },
  disabled_at: { type: 'timestamp' },
  disabled_reason: { type: 'text' },
})

/** Columns that a change can set. */
const SETTABLE = [
  'url',
  'name',
  'description',
  'is_global',
  'account',
  'resource_ids',
  'header_names',
  'contacts',
  'public_key',
  'max_per_second',
] as const

const webhook = defineRow(
  {
    resource: 'webhook',
    path: '/api/v3/webhook/webhook/{id}',
    accountScope: 'account',
    ownAccounts: true,
    cell: BY_WEBHOOK,
    rowTag: SETTABLE,
    params: IdParams,
    data: WebhookRow,
  },
  {
    noun: 'Webhook',
    load: (request) => loadWithin('webhook', request, loadWebhook),
    row: rowWithin('webhook'),
    toRow: toWebhookRow,
  },
)

export const webhookRoutes: Routes<WebhookDeps> = [
  webhook.create(
    {
      cell: { by: 'account' },
      summary: 'Create a webhook',
      description:
        'The secret is in this answer only. The webhook starts active and subscribed to `webhook.test` and to the event ' +
        'types of `events`; one that will never fire is named in the message. A `secret` that another system has made ' +
        'needs `webhook:import` for all accounts, and is not repeated in the answer.',
      morePermissions: { 'webhook:import': 'Create a webhook with a secret that another system has made' },
      body: CreateWebhookBody,
      data: WebhookWithSecret,
      problems: ['limit_reached'],
      shownOnce: 'secret',
    },
    {
      prepare: (deps: WebhookDeps, { body, scope, permission, caller }) => {
        if (body.secret !== undefined) checkHeldEverywhere(caller, 'webhook:import')
        checkOwnerInScope(scope, body, permission)
        if (body.secret !== undefined) checkImportedSecret(body.secret)
        return checkNewTarget(deps, body)
      },
      handle: async (deps, { db, body, scope, caller, now }) => {
        const { mode = 'push', url = '', name = null, description = null, account = null, events = [] } = body
        const { is_global: isGlobal = false } = body
        const { secret: importedSecret = null, asymmetric_signature: hasAsymmetricSignature = false } = body
        if (events.length > 0)
          await checkMaySubscribe(db, scope, { webhook: null, events, pathOf: (index) => `events.${index}` })
        const { resource_ids: resourceIds = null, max_per_second: maxPerSecond = null, contacts = [] } = body
        const headers = readHeaders(body.headers ?? {})
        const keys = { importedSecret, hasAsymmetricSignature }
        const limited = { resourceIds, headers, maxPerSecond, contacts }
        const input = { mode, url, name, description, isGlobal, account, ...limited, events, ...keys, caller, now }
        const room = account === null ? undefined : await lockRoom(deps, db, { scope, account })
        const { webhook: row, secret, warnings, subscribed } = await createWebhook(deps, db, input)
        room?.check('webhooks', 1)
        room?.check('subscriptions', subscribed)
        const isImported = importedSecret !== null
        return {
          row,
          more: { secret: isImported ? null : secret },
          message: sayWarnings(
            isImported
              ? 'Webhook created with the given secret.'
              : 'Webhook created. Store the secret now; it is not shown again.',
            warnings,
          ),
          ...(isImported && { audit: { secret_imported: true } }),
        }
      },
    },
  ),
  webhook.list(
    {
      accountScope: 'none',
      cell: { by: 'scope', several: 'merge' },
      summary: 'List webhooks',
      list: WEBHOOK_FIELDS,
    },
    {
      rows: ({ db, scope }) => buildList(scope, (own) => keepOwnWebhooks(selectWebhooks(db), own)),
      isOf: isWebhookOf,
      message: 'Webhooks.',
    },
  ),
  webhook.read({ summary: 'Read one webhook' }),
  webhook.update(
    {
      cell: { ...BY_WEBHOOK, changesOwner: true },
      summary: 'Change a webhook',
      description: 'The URL rules apply to the resulting row, also when the update leaves the URL unchanged.',
      body: UpdateWebhookBody,
      problems: ['conflict', 'limit_reached'],
    },
    {
      prepare: (deps: WebhookDeps, { db, params, body, scope, permission }) => {
        checkOwnerInScope(scope, body, permission)
        return prepareChange(deps, db, { id: params.id, url: body.url })
      },
      handle: async (deps, { db, params, scope, body, caller, now }) => {
        const room = body.account && (await lockRoom(deps, db, { scope, account: body.account }))
        const { is_global: isGlobal, resource_ids: resourceIds, headers, ...others } = body
        const { asymmetric_signature: hasAsymmetricSignature, max_per_second: maxPerSecond, ...rest } = others
        const changed = {
          ...(isGlobal !== undefined && { isGlobal }),
          ...(resourceIds !== undefined && { resourceIds }),
          ...(headers !== undefined && { headers: readHeaders(headers) }),
          ...(hasAsymmetricSignature !== undefined && { hasAsymmetricSignature }),
          ...(maxPerSecond !== undefined && { maxPerSecond }),
        }
        const input = { ...rest, ...changed, caller, now }
        const { isMoved, ...change } = await changeWebhook(deps, db, params.id, input)
        if (room && isMoved) await checkRoomForMoved(db, room, change.row.id)
        return { ...change, ...(headers && { audit: { headers_replaced: true } }) }
      },
    },
  ),
  webhook.delete(
    { summary: 'Delete a webhook (soft)', description: 'Its ledger is kept; waiting deliveries are cancelled.' },
    async (deps, { db, params, caller, now }) => ({ row: await deleteWebhook(deps, db, params.id, { caller, now }) }),
  ),
  webhook.change(
    {
      method: 'DELETE',
      path: '/api/v3/webhook/webhook/{id}/purge',
      action: 'purge',
      summary: 'Delete a webhook and its ledger for good',
    },
    {
      row: rowWithin('webhook, deleted or not'),
      handle: async (deps: WebhookDeps, { db, params }) => ({
        row: await purgeWebhook(deps, db, params.id),
        message: 'Webhook and ledger deleted for good.',
      }),
    },
  ),
  webhook.change(
    {
      method: 'PATCH',
      path: '/api/v3/webhook/webhook/{id}/active',
      action: 'active',
      summary: 'Activate or deactivate a webhook',
      description:
        'Activating clears the failure count and the reason it was disabled for. A webhook whose account is deleted cannot be activated (409).',
      body: ActiveBody,
    },
    async (_deps, { db, params, body, caller, now }) => {
      const isActived = body.is_actived
      const message = isActived ? 'Webhook activated.' : 'Webhook deactivated; its queued deliveries wait.'
      return { ...(await setWebhookActive(db, params.id, { isActived, caller, now })), message }
    },
  ),
  webhook.change(
    {
      method: 'POST',
      path: '/api/v3/webhook/webhook/{id}/rotate-secret',
      action: 'rotate-secret',
      summary: 'Replace the secret',
      description: 'The old secret is invalid at once. The new one is in this answer only.',
      data: WebhookWithSecret,
      shownOnce: 'secret',
    },
    async (deps, { db, params, caller, now }) => {
      const { webhook: row, secret } = await rotateSecret(deps, db, params.id, { caller, now })
      const message = 'Secret rotated. Store it now; it is not shown again, and the old one is invalid.'
      return { row, more: { secret }, message }
    },
  ),
]
