import type { Logger } from 'pino'
import type { ChangeRecord, Pipeline } from '../../http/pipeline/pipeline-deps.ts'
import { buildKeyInsert } from '../../http/route/idempotency.store.ts'
import {
  type Changed,
  eventNameOf,
  type Outcome,
  type RequestFacts,
  type RouteDeclaration,
} from '../../http/route/route.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { buildEventInsert, buildQueueInsert, type EventRecord, insertEvents } from '../occurrence/event.store.ts'
import { buildEvents, type EventDeps, type EventDraft } from '../occurrence/event.ts'
import { type AuditRecord, buildAuditInsert } from './audit.store.ts'
import { type AuditEntry, buildAuditRecords } from './audit.ts'
import { buildEqualInsert, insertEqualEntry } from './equal-entries.store.ts'
import { type EqualEntries, isCounted } from './equal-entries.ts'
import { commitWith } from './record-change.store.ts'
import { describeRowChange, type RowChange } from './row-change.ts'

/** Actions after which the resource can no longer be read. */
const ENDING_ACTIONS = ['delete', 'purge']

/** Finds the path that reads a resource, from the `find-one` routes of the tree (`data.url` of the envelope). */
export type ReadPathFinder = (route: RouteDeclaration, changed: Changed) => string | null

/** Builds the finder from the route tree, so that paths are declared once. */
export function buildReadPathFinder(routes: readonly RouteDeclaration[]): ReadPathFinder {
  const templates = new Map(
    routes.filter((route) => route.action === 'find-one').map((route) => [route.resource, route.path]),
  )
  return (route, changed) => {
    if (changed.url !== undefined) return changed.url
    if (changed.id === null || ENDING_ACTIONS.includes(route.eventAction ?? route.action)) return null
    return templates.get(route.resource)?.replace('{id}', changed.id) ?? null
  }
}

/** Maps the success of a route to its events: one for each changed resource. */
export function draftEvents(
  findReadPath: ReadPathFinder,
  source: { route: RouteDeclaration; changed: readonly Changed[] | undefined; trace: string | null },
): EventDraft[] {
  const { route, changed = [], trace } = source
  if (route.event === 'none' || route.event === 'operation') return []
  const { resource, accountScope, action, eventAction = action } = route
  return changed.map((change) => ({
    type: eventNameOf({ resource, action: eventAction }),
    accountScope,
    account: change.account,
    resource,
    action: eventAction,
    resourceId: change.id,
    url: findReadPath(route, change),
    trace,
  }))
}

/** The audit entries of a change: one for each changed resource, one for a refusal or a change without any. Pure. */
function draftAudit(
  route: RouteDeclaration,
  outcome: Outcome<unknown>,
  request: RequestFacts<unknown, unknown, unknown>,
): AuditEntry[] {
  const caller = request.signedIn
  const isRefusal = outcome.kind === 'refusal'
  const nothing: Changed = { id: isRefusal ? (outcome.target ?? null) : null, account: null }
  const changed = (!isRefusal && outcome.changed) || [nothing]
  const { requestId, ownRequestId } = request
  const told = isRefusal
    ? { ...outcome.audit, reason: outcome.problem.reason ?? outcome.problem.code }
    : { ...outcome.audit, ...describeChange(outcome) }
  const detail = requestId === ownRequestId ? told : { ...told, client_request_id: requestId }
  return changed.map((change) => ({
    action: eventNameOf(route),
    outcome: isRefusal ? 'failure' : 'success',
    userId: caller?.userId ?? outcome.actor?.userId ?? null,
    sessionId: caller?.sessionId ?? outcome.actor?.sessionId ?? null,
    apiKeyId: caller?.apiKeyId ?? outcome.actor?.apiKeyId ?? null,
    clientId: caller?.clientId ?? outcome.actor?.clientId ?? null,
    portal: caller?.portal ?? outcome.actor?.portal ?? null,
    account: change.account ?? outcome.actor?.account ?? null,
    target: change.id,
    address: request.address,
    requestId: ownRequestId,
    detail,
  }))
}

/** The changed members of a row, if the operation returned its former state and does not describe the change itself. */
function describeChange(outcome: Exclude<Outcome<unknown>, { kind: 'refusal' }>): RowChange {
  const { audit = {} } = outcome
  if ('changes' in audit || 'changes_without_values' in audit) return {}
  if (!('data' in outcome) || !outcome.before || outcome.changed?.length !== 1) return {}
  return describeRowChange(outcome.before, Object(outcome.data))
}

export interface RecordDeps extends EventDeps {
  logger: Pick<Logger, 'warn'>
  /** Whether some active webhook subscribes to the event type of a read. */
  isReadSubscribed: (eventType: string) => Promise<boolean> | boolean
  /** Counts equal refusals. */
  equalEntries: Pick<EqualEntries, 'place' | 'noted'>
  onRecorded?: ((events: readonly EventRecord[]) => void) | undefined
}

/** Builds the recording of changes, reads and refused calls. */
export function buildRecorders(
  deps: RecordDeps,
  db: Database,
  routes: readonly RouteDeclaration[],
): Pick<Pipeline, 'recordChange' | 'buildAudit' | 'recordRead' | 'recordRefusal'> {
  const findReadPath = buildReadPathFinder(routes)

  /** The part that writes the entries of a change; a strictly limited route has each, so that costs tell nothing. */
  function placeAudit({ page, strictRateLimit }: RouteDeclaration, entries: readonly AuditRecord[], subject?: string) {
    const [first] = entries
    if (!first) return {}
    const isKept = Boolean(strictRateLimit) && page !== true && first.outcome === 'success'
    if (entries.length > 1 || isKept || !isCounted(first)) return { audit: buildAuditInsert(entries) }
    const equal = deps.equalEntries.place(first, subject)
    return equal ? { equal, audit: buildEqualInsert(equal) } : {}
  }

  async function recordChange(tx: Database, { route, outcome, request, kept }: ChangeRecord): Promise<string> {
    const { now, trace } = request
    const changed = outcome.kind === 'refusal' ? [] : outcome.changed
    const events = buildEvents(deps, draftEvents(findReadPath, { route, changed, trace }), now)
    const records = buildAuditRecords(deps.ids, draftAudit(route, outcome, request), now)
    const { equal, audit } = placeAudit(route, records, outcome.kind === 'refusal' ? outcome.subject : undefined)
    const invalidations = await commitWith(tx, {
      event: events.length > 0 ? buildEventInsert(events) : undefined,
      queue: buildQueueInsert('recorded_event'),
      audit,
      answer: kept && buildKeyInsert(kept.key, kept.answer, now),
    })
    if (equal) deps.equalEntries.noted(equal)
    deps.onRecorded?.(events)
    return invalidations
  }

  return {
    recordChange,
    buildAudit: ({ route, outcome, request }) =>
      buildAuditRecords(deps.ids, draftAudit(route, outcome, request), request.now),
    recordRead: async ({ route, outcome, request }) => {
      if (!deps.enableApiEventQueue || route.event === 'none') return
      const subscribed = deps.isReadSubscribed(eventNameOf(route))
      // Awaited only if needed: most reads have no subscriber, and the answer is cached.
      if (subscribed === false || !(await subscribed)) return
      // A list reads no single resource, but is one operation: one event without an id.
      const changed = outcome.changed ?? [{ id: null, account: null }]
      const drafts = draftEvents(findReadPath, { route, changed, trace: request.trace })
      await insertEvents(db, buildEvents(deps, drafts, request.now))
    },
    recordRefusal: async ({ route, request, problem }) => {
      const [entry] = draftAudit(route, { kind: 'refusal', problem, audit: { detail: problem.detail } }, request)
      const [record] = entry ? buildAuditRecords(deps.ids, [entry], request.now) : []
      const equal = record && deps.equalEntries.place(record)
      if (!equal) return
      try {
        await insertEqualEntry(db, equal)
        deps.equalEntries.noted(equal)
      } catch (error) {
        deps.logger.warn(
          { err: error, request_id: request.requestId },
          'audit entry of a refused call not written: see docs/operations.md, database',
        )
      }
    },
  }
}
