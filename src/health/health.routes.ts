import { Type } from 'typebox'
import { defineRoute, type Routes } from '../http/route.ts'
import { enumSchema, named, TimestampSchema } from '../http/schema.ts'
import type { Database } from '../postgres/database.ts'
import { readWebhookOutFacts } from './health.store.ts'
import { decideWebhookOutHealth } from './webhook-out.ts'

/** The health routes use nothing but the database of the request. */
export type HealthDeps = object

const StatusSchema = named('HealthStatus', enumSchema(['operational', 'degraded', 'down']))

const ComponentSchema = named(
  'HealthComponent',
  Type.Object({
    component: Type.String(),
    status: StatusSchema,
    checked_at: TimestampSchema,
    details: Type.Record(Type.String(), Type.Number()),
  }),
)

async function checkWebhookOut(db: Database, now: Date) {
  const facts = await readWebhookOutFacts(db, now)
  return {
    component: 'webhook-out',
    status: decideWebhookOutHealth(facts),
    checked_at: now.toISOString(),
    details: { ...facts },
  }
}

/** Public: neither secrets nor tenant data (D76). */
export const healthRoutes: Routes<HealthDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/health/component/integration/webhook-out',
      resource: 'health',
      action: 'webhook-out',
      accountScope: 'none',
      access: 'public',
      summary: 'Health of outbound webhooks',
      description: '`operational` or `degraded`, never `down`.',
      data: ComponentSchema,
    },
    {
      handle: async (_deps: HealthDeps, { db, now }) => ({
        data: await checkWebhookOut(db, now),
        message: 'Health of outbound webhooks.',
      }),
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/health',
      resource: 'health',
      action: 'find-all',
      accountScope: 'none',
      access: 'public',
      summary: 'Health of all components',
      data: named('Health', Type.Object({ status: StatusSchema, components: Type.Array(ComponentSchema) })),
    },
    {
      handle: async (_deps: HealthDeps, { db, now }) => {
        const components = [await checkWebhookOut(db, now)]
        const status = components.some((one) => one.status !== 'operational') ? 'degraded' : 'operational'
        return { data: { status, components } as const, message: 'Health of all components.' }
      },
    },
  ),
]
