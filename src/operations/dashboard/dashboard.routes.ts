import type { CatalogueEntry } from '../../event/catalogue/catalogue.ts'
import { compareCatalogue } from '../../event/catalogue/sync.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { namedObject, nullable, TimestampSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { DispatchRow } from '../../webhook/ledger/dispatch.schema.ts'
import { toDispatchRow } from '../../webhook/ledger/dispatch-row.ts'
import { addSummaries } from './add-up.ts'
import { readSummary } from './dashboard.store.ts'
import { OF_DASHBOARD } from './range.schema.ts'

/** Failures the summary shows (docs/contract/delivery.md#fixed-constants). */
const RECENT_FAILURES = 10

export interface DashboardDeps {
  catalogue: readonly CatalogueEntry[]
}

const Count = Type.Integer()

const SummarySchema = namedObject('DashboardSummary', {
  deliveries_24h: namedObject('DeliveryCounts', {
    pending: Count,
    retrying: Count,
    success: Count,
    exhausted: Count,
    failed: Count,
    cancelled: Count,
  }),
  is_complete: Type.Boolean({
    description:
      'Whether the deliveries are counted one by one. For a caller who holds the permission for some accounts only, and ' +
      'of more than 2,000 deliveries, they are those that ended in these hours, and up to 2,000 that wait.',
  }),
  exhausted: namedObject(
    'ExhaustedDeliveries',
    { last_24h: Count, before_24h: Count },
    { description: 'Deliveries given up by the hour in which that was: in the last 24 hours, and in the 24 before.' },
  ),
  webhooks: namedObject('WebhookCounts', { active: Count, inactive: Count, auto_disabled: Count }),
  catalogue: nullable(
    namedObject(
      'CatalogueSummary',
      { generated_count: Count, synced_count: Count, in_sync: Type.Boolean() },
      { description: 'Null for a caller who holds the permission for some accounts only.' },
    ),
  ),
  recent_failures: Type.Array(DispatchRow),
  series_24h: Type.Array(namedObject('HourlyDeliveries', { hour: TimestampSchema, success: Count, failed: Count })),
})

export const dashboardRoutes: Routes<DashboardDeps> = [
  defineRoute(
    {
      ...OF_DASHBOARD,
      path: '/api/v3/webhook/dashboard/summary',
      action: 'dashboard',
      ownAccounts: true,
      isExpensive: true,
      problems: ['read_too_expensive'],
      summary: 'Deliveries, webhooks and catalogue at a glance',
      data: SummarySchema,
    },
    async (deps: DashboardDeps, { readEach, scope, now }) => {
      const parts = await readEach((of) => readSummary(of.db, { now, failures: RECENT_FAILURES, scope: of.scope }))
      const summary = addSummaries(parts, RECENT_FAILURES)
      const { generated_count, synced_count, in_sync } = compareCatalogue(deps.catalogue, summary.eventTypes)
      return {
        data: {
          deliveries_24h: summary.deliveries,
          is_complete: summary.isComplete,
          exhausted: summary.exhausted,
          webhooks: summary.webhooks,
          catalogue: scope === 'all' ? { generated_count, synced_count, in_sync } : null,
          recent_failures: summary.recentFailures.map(toDispatchRow),
          series_24h: summary.hours.map(({ hour, ...counts }) => ({ hour: hour.toISOString(), ...counts })),
        },
        message: 'Summary of the last 24 hours.',
      }
    },
  ),
]
