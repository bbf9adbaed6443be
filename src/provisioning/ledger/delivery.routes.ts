import { toAttemptRow } from '../../delivery/post/attempt.schema.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { DeliveryRow, DeliveryWithAttempts, ReplayDeliveryBody } from './delivery.schema.ts'
import { type DeliveryRecord, selectDeliveries, toDeliveryData, toDeliveryRow } from './delivery.store.ts'
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
const OF_DELIVERY = { resource: 'provisioning-delivery', accountScope: 'none' } as const

const changedOf = (delivery: DeliveryRecord) => [{ id: delivery.id, account: null }]

/** The ledger of provisioning (docs/contract/provisioning.md#provisioning-delivery). */
export const deliveryRoutes: Routes<DeliveryDeps> = [
  defineList(
    {
      ...OF_DELIVERY,
      path: PATH,
      summary: 'List deliveries to provisioning targets',
      data: DeliveryRow,
      list: DELIVERY_FIELDS,
      readsReplica: true,
    },
    {
      rows: ({ db }) => buildWholeList(selectDeliveries(db), { table: 'd' }),
      toRow: toDeliveryRow,
      message: 'Deliveries.',
    },
  ),
  defineRead(
    {
      ...OF_DELIVERY,
      path: `${PATH}/{id}`,
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
      changedOf: ({ delivery }) => changedOf(delivery),
    },
  ),
  defineRoute(
    {
      ...OF_DELIVERY,
      method: 'POST',
      path: `${PATH}/{id}/replay`,
      action: 'replay',
      status: 202,
      summary: 'Make a delivery once more',
      description:
        'One attempt, no automatic retry after it. Only the latest delivery of a user at a target can be replayed, so that no older state arrives after a newer one. One that is `delivered` or `retrying` needs `confirm_duplicate`.',
      params: IdParams,
      body: ReplayDeliveryBody,
      data: DeliveryRow,
    },
    {
      row: { find: (_deps: DeliveryDeps, { db, params }) => loadDelivery(db, params.id), neededBy: 'validation' },
      handle: async (deps, { db, params, body, now }) => {
        const confirmDuplicate = body?.confirm_duplicate ?? false
        const delivery = await replayDelivery(deps, db, params.id, { confirmDuplicate, now })
        return {
          data: toDeliveryRow(delivery),
          message: 'Replay enqueued: one attempt.',
          changed: changedOf(delivery),
        }
      },
    },
  ),
]
