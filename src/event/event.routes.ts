import { buildList } from '../http/listing/page.ts'
import type { Routes } from '../http/route/route.ts'
import { defineList, defineRead } from '../http/route/row-route.ts'
import { IdParams } from '../http/route/schema.ts'
import { EventRow } from './occurrence/event.schema.ts'
import { listMergedEvents, selectEvents, toEventRow } from './occurrence/event.store.ts'
import { BY_EVENT, checkEvent, findEventOwner, loadEvent } from './occurrence/event.ts'

const EVENT_FIELDS = {
  document_id: { type: 'uuid' },
  event: { type: 'text' },
  account: { type: 'uuid' },
  resource: { type: 'text' },
  resource_id: { type: 'text' },
  created_at: { type: 'timestamp', sortable: true },
} as const

const OF_EVENT_OCCURRENCE = { resource: 'event-occurrence', ownAccounts: true, data: EventRow } as const

export const eventRoutes: Routes<object> = [
  defineList(
    {
      ...OF_EVENT_OCCURRENCE,
      path: '/api/v3/webhook/event-occurrence',
      cell: { by: 'scope', filters: { document_id: findEventOwner }, several: 'merge' },
      summary: 'List events',
      description: 'Events are kept as long as their ledger rows.',
      list: EVENT_FIELDS,
      readsReplica: true,
    },
    {
      rows: ({ db, scope, merged }) =>
        merged && scope === 'all' ? listMergedEvents(db) : buildList(scope, (own) => selectEvents(db, own, scope)),
      toRow: toEventRow,
      message: 'Events.',
    },
  ),
  defineRead(
    {
      ...OF_EVENT_OCCURRENCE,
      path: '/api/v3/webhook/event-occurrence/{id}',
      accountScope: 'account',
      cell: BY_EVENT,
      summary: 'Read one event',
      params: IdParams,
    },
    {
      load: async ({ db, params, scope }) => {
        if (scope !== 'all') await checkEvent(db, params.id, scope)
        return loadEvent(db, params.id)
      },
      toRow: toEventRow,
      message: 'Event.',
      changedOf: (target) => [{ id: target.id, account: target.account }],
    },
  ),
]
