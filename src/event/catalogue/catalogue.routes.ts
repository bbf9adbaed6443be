import type { IdMaker } from '../../base/id.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineRow } from '../../http/route/row-route.ts'
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
import { selectEventTypes, toEventTypeRow } from './catalogue.store.ts'
import type { CatalogueEntry } from './catalogue.ts'
import {
  changeEventType,
  loadEventType,
  loadVisibleEventType,
  registerExternalEventType,
  setEventTypeActive,
  setEventTypeVisible,
} from './event-type.ts'
import { addSubscribers, countSubscribers, countSubscribersOf } from './status.store.ts'
import { readCatalogueStatus, syncCatalogue } from './sync.ts'

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

const eventType = defineRow(
  {
    resource: 'event',
    path: '/api/v3/webhook/event/{id}',
    accountScope: 'none',
    rowTag: SETTABLE,
    params: IdParams,
    data: EventTypeRow,
  },
  {
    noun: 'Event type',
    load: ({ db, params, scope }) => loadVisibleEventType(db, params.id, scope),
    row: { find: (_deps, { db, params }) => loadEventType(db, params.id), neededBy: 'validation' },
    toRow: toEventTypeRow,
  },
)

export const catalogueRoutes: Routes<CatalogueDeps> = [
  eventType.list(
    {
      ownAccounts: true,
      summary: 'List event types',
      description: 'A caller with an account role sees those that have account scope and the mark `is_tenant_visible`.',
      list: EVENT_TYPE_FIELDS,
    },
    { rows: ({ db, scope }) => buildWholeList(selectEventTypes(db, scope)), message: 'Event types.' },
  ),
  eventType.create(
    { summary: 'Register an event type that another service owns', body: CreateEventTypeBody },
    async (deps: CatalogueDeps, { db, body, now }) => {
      const { internal, account_scope: accountScope = 'account', description = null } = body
      const { is_tenant_visible: isTenantVisible = false, group = null } = body
      const given = { internal, accountScope, description, isTenantVisible, group, now }
      return { row: await registerExternalEventType(deps, db, given), message: 'Event type registered.' }
    },
  ),
  eventType.read({ ownAccounts: true, summary: 'Read one event type' }),
  eventType.update(
    {
      summary: 'Describe or deprecate an external event type',
      body: UpdateEventTypeBody,
      problems: ['conflict'],
    },
    async (_deps, { db, params, body, now }) => {
      const { deprecated_at: at, deprecation_remedy: deprecationRemedy, ...texts } = body
      const deprecatedAt = typeof at === 'string' ? new Date(at) : at
      return changeEventType(db, params.id, { ...texts, deprecatedAt, deprecationRemedy, now })
    },
  ),
  eventType.change(
    {
      method: 'PATCH',
      path: '/api/v3/webhook/event/{id}/active',
      action: 'active',
      summary: 'Activate or deactivate a stale or external event type',
      body: ActiveBody,
      problems: ['conflict'],
    },
    async (deps: CatalogueDeps, { db, params, body, now }) => {
      const generated = deps.catalogue.map(({ internal }) => internal)
      const change = { isActived: body.is_actived, generated, now }
      const message = body.is_actived ? 'Event type activated.' : 'Event type deactivated.'
      return { ...(await setEventTypeActive(db, params.id, change)), message }
    },
  ),
  eventType.change(
    {
      method: 'PATCH',
      path: '/api/v3/webhook/event/{id}/tenant-visible',
      action: 'tenant-visible',
      summary: 'Show an event type to callers with an account role, or hide it',
      body: VisibleBody,
    },
    async (_deps, { db, params, body, now }) => {
      const isTenantVisible = body.is_tenant_visible
      const message = `Event type ${isTenantVisible ? 'visible to' : 'hidden from'} account roles.`
      return { ...(await setEventTypeVisible(db, params.id, { isTenantVisible, now })), message }
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
      resource: 'event',
      accountScope: 'none',
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
