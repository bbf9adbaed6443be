import { type AuditEntry, recordAudit } from '../audit/audit.ts'
import { type EventDeps, type EventDraft, recordEvents, recordSubscribedEvents } from '../event/event.ts'
import type { Shell, Success } from '../http/pipeline-deps.ts'
import { type Changed, eventNameOf, type RouteDeclaration } from '../http/route.ts'

/** Actions after which the resource can no longer be read. */
const ENDING_ACTIONS = ['delete', 'purge']

/** Finds the path that reads a resource, from the `find-one` routes of the tree (D62, `data.url`). */
export type ReadPathFinder = (route: RouteDeclaration, changed: Changed) => string | null

/** Builds the finder from the route tree, so that no path is written a second time. */
export function buildReadPathFinder(routes: readonly RouteDeclaration[]): ReadPathFinder {
  const templates = new Map(
    routes.filter((route) => route.action === 'find-one').map((route) => [route.resource, route.path]),
  )
  return (route, changed) => {
    if (changed.url !== undefined) return changed.url
    if (changed.id === null || ENDING_ACTIONS.includes(route.action)) return null
    return templates.get(route.resource)?.replace('{id}', changed.id) ?? null
  }
}

/** Turns the success of a route into the events it causes: one for each changed resource (D70a). */
export function draftEvents(
  findReadPath: ReadPathFinder,
  source: { route: RouteDeclaration; changed: readonly Changed[] | undefined; trace: string | null },
): EventDraft[] {
  const { route, changed = [], trace } = source
  if (route.event === 'none' || route.event === 'operation') return []
  return changed.map((one) => ({
    event: eventNameOf(route),
    accountScope: route.accountScope,
    account: one.account,
    resource: route.resource,
    action: route.action,
    resourceId: one.id,
    url: findReadPath(route, one),
    trace,
  }))
}

function draftAudit({ route, outcome, request }: Success): AuditEntry[] {
  const caller = route.access === 'public' ? undefined : request.caller
  const changed = outcome.changed ?? [{ id: null, account: null }]
  return changed.map((one) => ({
    action: eventNameOf(route),
    outcome: 'success',
    userId: caller?.userId ?? null,
    sessionId: caller?.sessionId ?? null,
    apiKeyId: caller?.apiKeyId ?? null,
    account: one.account,
    target: one.id,
    address: request.address,
    requestId: request.requestId,
    ...(outcome.audit && { detail: outcome.audit }),
  }))
}

/** What the shell records of a success: events and audit entries with the change, events alone for a read (D72, D70). */
export function buildRecorders(
  deps: EventDeps,
  routes: readonly RouteDeclaration[],
): Pick<Shell, 'recordChange' | 'recordEvents' | 'recordRead'> {
  const findReadPath = buildReadPathFinder(routes)
  return {
    recordEvents: async ({ db, now, ...source }) => {
      await recordEvents(deps, db, draftEvents(findReadPath, source), now)
    },
    recordChange: async (success) => {
      const { route, outcome } = success
      const { db, now, trace } = success.request
      await recordEvents(deps, db, draftEvents(findReadPath, { route, changed: outcome.changed, trace }), now)
      await recordAudit(db, { ids: deps.ids, now }, ...draftAudit(success))
    },
    recordRead: async (success) => {
      const { route, outcome } = success
      const { db, now, trace } = success.request
      // A list reads no single resource, and yet it is one operation: one event without an id.
      const changed = outcome.changed ?? [{ id: null, account: null }]
      const drafts = draftEvents(findReadPath, { route, changed, trace })
      await recordSubscribedEvents(deps, db, drafts, now)
    },
  }
}
