import { buildList, readScopedPage } from '../http/listing/page.ts'
import { defineRoute, type Routes } from '../http/route/route.ts'
import { IdParams } from '../http/route/schema.ts'
import { EventRow } from './occurrence/event.schema.ts'
import { selectEvents, toEventRow } from './occurrence/event.store.ts'
import { checkEvent, loadEvent } from './occurrence/event.ts'

/** Filters and sorts of events. */
const EVENT_FIELDS = {
  document_id: { type: 'uuid' },
  event: { type: 'text' },
  account: { type: 'uuid' },
  resource: { type: 'text' },
  resource_id: { type: 'text' },
  created_at: { type: 'timestamp', sortable: true },
} as const

export const eventRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/event-occurrence',
      resource: 'event-occurrence',
      action: 'find-all',
      accountScope: 'none',
      ownAccounts: true,
      summary: 'List what happened',
      description: 'Events are kept as long as their ledger rows.',
      data: EventRow,
      list: EVENT_FIELDS,
    },
    {
      handle: async (_deps: object, { db, scope, listing }) => ({
        ...(await readScopedPage(
          db,
          buildList(scope, (own) => selectEvents(db, own, scope)),
          { listing, fields: EVENT_FIELDS, toRow: toEventRow },
        )),
        message: 'Events.',
      }),
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/event-occurrence/{id}',
      resource: 'event-occurrence',
      action: 'find-one',
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Read one event',
      params: IdParams,
      data: EventRow,
    },
    {
      row: {
        find: async (_deps: object, { db, params, scope }) => {
          if (scope !== 'all') await checkEvent(db, params.id, scope)
          return loadEvent(db, params.id)
        },
        neededBy: 'handle',
      },
      handle: async (_deps, { target }) => ({
        data: toEventRow(target),
        message: 'Event.',
        changed: [{ id: target.id, account: target.account }],
      }),
    },
  ),
]
