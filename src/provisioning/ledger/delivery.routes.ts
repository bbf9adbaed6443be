import { toAttemptRow } from '../../delivery/post/attempt.schema.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineRead, defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { DeliveryRow, DeliveryWithAttempts, ReplayDeliveryBody } from './delivery.schema.ts'
import { selectDeliveries, toDeliveryData, toDeliveryRow } from './delivery.store.ts'
import { type DeliveryDeps, loadDelivery, replayDelivery } from './replay.ts'

/** Filters and sorts of the ledger. */
const DELIVERY_FIELDS = rowFields({
  target: { type: 'uuid' },
  user: { type: 'uuid', column: 'user_id' },
  event_id: { type: 'uuid' },
  type: { type: 'text' },
  status: { type: 'text' },
  attempts: { type: 'integer' },
  last_status_code: { type: 'integer' },
  last_error: { type: 'text' },
  job: { type: 'uuid' },
})

const PATH = '/api/v3/provisioning/delivery'
const OF_DELIVERY = { resource: 'provisioning-delivery', path: `${PATH}/{id}`, accountScope: 'none' } as const

const delivery = defineRow(
  { ...OF_DELIVERY, params: IdParams, data: DeliveryRow },
  {
    noun: 'Delivery',
    load: async ({ db, params }) => (await loadDelivery(db, params.id)).delivery,
    toRow: toDeliveryRow,
  },
)

/** The ledger of provisioning (docs/contract/provisioning.md#provisioning-delivery). */
export const deliveryRoutes: Routes<DeliveryDeps> = [
  delivery.list(
    { summary: 'List deliveries to provisioning targets', list: DELIVERY_FIELDS, readsReplica: true },
    { rows: ({ db }) => buildWholeList(selectDeliveries(db), { table: 'd' }), message: 'Deliveries.' },
  ),
  defineRead(
    {
      ...OF_DELIVERY,
      summary: 'Read one delivery with its attempts',
      params: IdParams,
      data: DeliveryWithAttempts,
    },
    {
      load: ({ db, params }) => loadDelivery(db, params.id),
      toRow: ({ delivery, told, attempts }) => ({
        ...toDeliveryRow(delivery),
        data: toDeliveryData(delivery.user, told),
        attempts_log: attempts.map(toAttemptRow),
      }),
      message: 'Delivery.',
      changedOf: ({ delivery }) => [{ id: delivery.id, account: null }],
    },
  ),
  delivery.change(
    {
      method: 'POST',
      path: `${PATH}/{id}/replay`,
      action: 'replay',
      status: 202,
      summary: 'Make a delivery once more',
      description:
        'One attempt, no automatic retry after it. Only the latest delivery of a user at a target can be replayed, so that no older state arrives after a newer one. One that is `delivered` or `retrying` needs `confirm_duplicate`.',
      body: ReplayDeliveryBody,
    },
    async (deps: DeliveryDeps, { db, params, body, now }) => ({
      row: await replayDelivery(deps, db, params.id, { confirmDuplicate: body?.confirm_duplicate ?? false, now }),
      message: 'Replay enqueued: one attempt.',
    }),
  ),
]
