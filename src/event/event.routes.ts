import type { EventId } from '../base/id.ts'
import { buildList, readScopedPage } from '../http/listing/page.ts'
import { type FieldError, Problem } from '../http/problem/problem.ts'
import { defineRoute, type Routes } from '../http/route/route.ts'
import { IdParams } from '../http/route/schema.ts'
import type { Static } from '../http/shape/schema-type.ts'
import { EventRow, PublishAnswer, PublishBody } from './occurrence/event.schema.ts'
import { selectEvents, toEventRow } from './occurrence/event.store.ts'
import { checkEventInScope, loadEvent } from './occurrence/event.ts'
import type { PathOf, Publication } from './publish/publication-rules.ts'
import { type PublishDeps, planPublications, publishEvents } from './publish/publish.ts'
import { checkTenantMayPublish } from './publish/publish-scope.ts'

/** What events can be filtered by and sorted on. */
const EVENT_FIELDS = {
  document_id: { type: 'uuid' },
  event: { type: 'text' },
  account: { type: 'uuid' },
  resource: { type: 'text' },
  resource_id: { type: 'text' },
  created_at: { type: 'timestamp', sortable: true },
} as const

/** Reads the two forms of the body. Throws a 422 when it is neither, or both. */
function readPublications(body: Static<typeof PublishBody>): { publications: Publication[]; pathOf: PathOf } {
  const { events, ...single } = body
  if (events) {
    const errors = Object.keys(single).map((path) => buildError(path, 'not_with_events', 'is not taken beside events'))
    checkForm(errors)
    return { publications: events.map(toPublication), pathOf: (index, member) => `events.${index}.${member}` }
  }
  const { event, id } = single
  if (event === undefined || id === undefined) {
    const missing = [...(event === undefined ? ['event'] : []), ...(id === undefined ? ['id'] : [])]
    throw buildFormProblem(missing.map((path) => buildError(path, 'required', 'is required, or events in its place')))
  }
  return { publications: [toPublication({ ...single, event, id })], pathOf: (_index, member) => member }
}

function buildError(path: string, code: string, message: string): FieldError {
  return { path, code, message }
}

function buildFormProblem(errors: FieldError[]): Problem {
  return new Problem('validation_failed', 'Send one event, or events with 1 to 1,000 of them.', { errors })
}

function checkForm(errors: FieldError[]): void {
  if (errors.length > 0) throw buildFormProblem(errors)
}

function toPublication(one: {
  event: string
  account?: string | null
  id: string
  url?: string | null
  idempotency_key?: string
}): Publication {
  const { event, account = null, id, url = null, idempotency_key: idempotencyKey = null } = one
  return { event, account, id, url, idempotencyKey }
}

function buildAccepted(ids: readonly EventId[]) {
  return {
    data: { accepted: ids.length, events: ids.map((id) => ({ event_id: id })) },
    message: ids.length === 1 ? 'Event accepted.' : `${ids.length} events accepted.`,
    audit: { events: ids.length },
  }
}

export const eventRoutes: Routes<PublishDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/webhook/publish',
      resource: 'event',
      action: 'publish',
      accountScope: 'none',
      status: 202,
      ownAccounts: true,
      summary: 'Publish events that another service owns',
      description:
        'One event, or up to 1,000 in `events`: all are recorded, or none, and every broken one is named. Only event types ' +
        'with the source `external` can be published, so what this service says of itself cannot be forged. An event type ' +
        'with the account scope `none` takes no account; without an account an event reaches global webhooks only. A ' +
        '`purge` carries no account whatever is sent. A `url` becomes `data.url` of the delivery. The answer means that ' +
        'the events are durable; publishing emits no event of its own. A caller who holds the permission for some ' +
        'accounts publishes for these only, and only event types that it sees in the catalogue.',
      body: PublishBody,
      bodyLimitBytes: 1_048_576,
      data: PublishAnswer,
    },
    {
      prepare: async (deps: PublishDeps, { db, body, scope, permission }) => {
        if (scope === 'all') return
        await checkTenantMayPublish(deps, db, { scope, permission, ...readPublications(body) })
      },
      insert: (deps: PublishDeps, { db, body, scope, now, trace }) => {
        const planned = planPublications(deps, { ...readPublications(body), scope, now, trace })
        if (!planned) return undefined
        return {
          outcome: buildAccepted(planned.ids),
          record: planned.record,
          explain: () => planned.explain(db),
        }
      },
      handle: async (deps: PublishDeps, { db, body, scope, caller, now, trace }) => {
        const ids = await publishEvents(deps, db, { ...readPublications(body), scope, caller, now, trace })
        const [keptFor = null] = scope === 'all' ? [] : scope
        return { ...buildAccepted(ids), keptFor }
      },
    },
  ),
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
      handle: async (_deps: PublishDeps, { db, scope, listing }) => ({
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
      reach: (_deps: PublishDeps, { db, params, scope }) => checkEventInScope(db, params.id, scope),
      load: (_deps: PublishDeps, { db, params }) => loadEvent(db, params.id),
      handle: async (_deps, { target }) => ({
        data: toEventRow(target),
        message: 'Event.',
        changed: [{ id: target.id, account: target.account }],
      }),
    },
  ),
]
