import type { IdMaker } from '../../base/id.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
import { ActiveBody, IdParams } from '../../http/route/schema.ts'
import {
  CatalogueStatusSchema,
  CatalogueSyncSchema,
  CreateEventTypeBody,
  EventTypeRow,
  SubscriberCounts,
  UpdateEventTypeBody,
  VisibleBody,
} from './catalogue.schema.ts'
import { selectEventTypes } from './catalogue.store.ts'
import type { CatalogueEntry } from './catalogue.ts'
import {
  changeEventType,
  loadEventType,
  loadVisibleEventType,
  registerExternalEventType,
  setEventTypeActive,
  setEventTypeVisible,
} from './event-type.ts'
import { toEventTypeRow } from './event-type-row.ts'
import { addSubscribers, countSubscribers, countSubscribersOf } from './status.store.ts'
import { readCatalogueStatus, syncCatalogue } from './sync.ts'

/** Dependencies of the catalogue's routes. */
export interface CatalogueDeps {
  ids: IdMaker
  /** The catalogue as the running code declares it. */
  catalogue: readonly CatalogueEntry[]
}

const EVENT_TYPE_FIELDS = rowFields({
  internal: { type: 'text', sortable: true, like: 'few-rows' },
  account_scope: { type: 'text', like: 'few-rows' },
  method: { type: 'text', like: 'few-rows' },
  route: { type: 'text', like: 'few-rows' },
  source: { type: 'text', like: 'few-rows' },
  is_actived: { type: 'boolean' },
  group: { type: 'text', like: 'few-rows' },
  deprecated_at: { type: 'timestamp' },
})

/** Columns that a change can set. */
const SETTABLE = ['description', 'group', 'deprecated_at', 'deprecation_remedy'] as const

const OF_EVENT = { resource: 'event', accountScope: 'none', data: EventTypeRow } as const

export const catalogueRoutes: Routes<CatalogueDeps> = [
  defineList(
    {
      ...OF_EVENT,
      path: '/api/v3/webhook/event',
      ownAccounts: true,
      summary: 'List event types',
      description: 'A caller with an account role sees those that have account scope and the mark `is_tenant_visible`.',
      list: EVENT_TYPE_FIELDS,
    },
    {
      rows: ({ db, scope }) => buildWholeList(selectEventTypes(db, scope)),
      toRow: toEventTypeRow,
      message: 'Event types.',
    },
  ),
  defineRoute(
    {
      ...OF_EVENT,
      method: 'POST',
      path: '/api/v3/webhook/event',
      action: 'create',
      status: 201,
      summary: 'Register an event type that another service owns',
      body: CreateEventTypeBody,
    },
    async (deps: CatalogueDeps, { db, body, now }) => {
      const { internal, account_scope: accountScope = 'account', description = null } = body
      const { is_tenant_visible: isTenantVisible = false, group = null } = body
      const eventType = { internal, accountScope, description, isTenantVisible, group, now }
      const created = await registerExternalEventType(deps, db, eventType)
      return {
        data: toEventTypeRow(created),
        message: 'Event type registered.',
        changed: [{ id: created.id, account: null }],
        location: `/api/v3/webhook/event/${created.id}`,
      }
    },
  ),
  defineRead(
    {
      ...OF_EVENT,
      path: '/api/v3/webhook/event/{id}',
      ownAccounts: true,
      rowTag: SETTABLE,
      summary: 'Read one event type',
      params: IdParams,
    },
    {
      load: ({ db, params, scope }) => loadVisibleEventType(db, params.id, scope),
      toRow: toEventTypeRow,
      message: 'Event type.',
      changedOf: (target) => [{ id: target.id, account: null }],
    },
  ),
  defineRoute(
    {
      ...OF_EVENT,
      method: 'PATCH',
      path: '/api/v3/webhook/event/{id}',
      action: 'update',
      rowTag: SETTABLE,
      summary: 'Describe or deprecate an external event type',
      params: IdParams,
      body: UpdateEventTypeBody,
      problems: ['conflict'],
    },
    {
      row: { find: (_deps: CatalogueDeps, { db, params }) => loadEventType(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, body, now }) => {
        const { deprecated_at: at, deprecation_remedy: deprecationRemedy, ...texts } = body
        const deprecatedAt = typeof at === 'string' ? new Date(at) : at
        const change = { ...texts, deprecatedAt, deprecationRemedy, now }
        const { eventType, before, isChanged } = await changeEventType(db, params.id, change)
        return {
          data: toEventTypeRow(eventType),
          before: toEventTypeRow(before),
          message: isChanged ? 'Event type updated.' : 'Event type unchanged.',
          changed: isChanged ? [{ id: eventType.id, account: null }] : [],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_EVENT,
      method: 'PATCH',
      path: '/api/v3/webhook/event/{id}/active',
      action: 'active',
      summary: 'Activate or deactivate a stale or external event type',
      params: IdParams,
      body: ActiveBody,
      problems: ['conflict'],
    },
    {
      row: { find: (_deps: CatalogueDeps, { db, params }) => loadEventType(db, params.id), neededBy: 'validation' },
      handle: async (deps, { db, params, body, now }) => {
        const generated = deps.catalogue.map(({ internal }) => internal)
        const change = { isActived: body.is_actived, generated, now }
        const { eventType, isChanged } = await setEventTypeActive(db, params.id, change)
        return {
          data: toEventTypeRow(eventType),
          message: body.is_actived ? 'Event type activated.' : 'Event type deactivated.',
          changed: isChanged ? [{ id: eventType.id, account: null }] : [],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_EVENT,
      method: 'PATCH',
      path: '/api/v3/webhook/event/{id}/tenant-visible',
      action: 'tenant-visible',
      summary: 'Show an event type to callers with an account role, or hide it',
      params: IdParams,
      body: VisibleBody,
    },
    {
      row: { find: (_deps: CatalogueDeps, { db, params }) => loadEventType(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, body, now }) => {
        const change = { isTenantVisible: body.is_tenant_visible, now }
        const { eventType, isChanged } = await setEventTypeVisible(db, params.id, change)
        return {
          data: toEventTypeRow(eventType),
          message: body.is_tenant_visible
            ? 'Event type visible to account roles.'
            : 'Event type hidden from account roles.',
          changed: isChanged ? [{ id: eventType.id, account: null }] : [],
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/catalogue/status',
      resource: 'webhook',
      action: 'catalogue-status',
      accountScope: 'none',
      cell: { by: 'each' },
      summary: 'Compare the event table with the code',
      description: '`missing_internals` and `differences` are the changes that a sync would write.',
      data: CatalogueStatusSchema,
    },
    async (deps: CatalogueDeps, { db, readEach }) => {
      const status = await readCatalogueStatus(db, deps.catalogue)
      const names = status.stale.map(({ internal }) => internal)
      const cells = await readEach(async (at) => (at.cell === null ? [] : countSubscribersOf(at.db, names)))
      return { data: { ...status, stale: addSubscribers(status.stale, cells) }, message: 'Catalogue status.' }
    },
  ),
  defineRoute(
    {
      ...OF_EVENT,
      method: 'GET',
      path: '/api/v3/webhook/catalogue/subscribers',
      action: 'subscribers',
      cell: { by: 'each' },
      summary: 'Count the webhooks that subscribe to each event type',
      data: SubscriberCounts,
    },
    async (_deps: CatalogueDeps, { readEach }) => {
      const [home = [], ...cells] = await readEach(({ db }) => countSubscribers(db))
      return { data: addSubscribers(home, cells), message: 'Subscribers of each event type.' }
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/webhook/catalogue/sync',
      resource: 'webhook',
      action: 'catalogue-sync',
      accountScope: 'none',
      summary: 'Write the generated catalogue into the event table',
      data: CatalogueSyncSchema,
    },
    async (deps: CatalogueDeps, { db, caller, now }) => ({
      data: await syncCatalogue(deps, db, { now, by: caller.userId }),
      message: 'Catalogue synced.',
      changed: [{ id: null, account: null }],
    }),
  ),
]
