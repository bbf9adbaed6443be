import { type Static, Type } from 'typebox'
import { defineRoute, type Routes } from '../http/route.ts'
import { enumSchema, named, TimestampSchema } from '../http/schema.ts'
import type { ComponentHealth, HealthDeps } from './health.ts'

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

/** Maps the health of a component for the wire. */
function toComponentRow({ component, status, checkedAt, details }: ComponentHealth): Static<typeof ComponentSchema> {
  return { component, status, checked_at: checkedAt.toISOString(), details: { ...details } }
}

/** Public, without secrets or tenant data. All callers of a process share one check in 5 s. */
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
      description:
        '`operational` or `degraded`, never `down`. At most 5 seconds old. Counts end at 10,000, which stands for that many or more.',
      data: ComponentSchema,
    },
    {
      handle: async ({ readWebhookOutHealth }: HealthDeps) => ({
        data: toComponentRow(await readWebhookOutHealth()),
        message: 'Health of outbound webhooks.',
      }),
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/health/component/integration/provisioning',
      resource: 'health',
      action: 'provisioning',
      accountScope: 'none',
      access: 'public',
      summary: 'Health of provisioning',
      description:
        '`operational` or `degraded`, never `down`. At most 5 seconds old. Counts end at 10,000, which stands for that many or more.',
      data: ComponentSchema,
    },
    {
      handle: async ({ readProvisioningHealth }: HealthDeps) => ({
        data: toComponentRow(await readProvisioningHealth()),
        message: 'Health of provisioning.',
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
      handle: async ({ readWebhookOutHealth, readProvisioningHealth }: HealthDeps) => {
        const components = [
          toComponentRow(await readWebhookOutHealth()),
          toComponentRow(await readProvisioningHealth()),
        ]
        const status = components.some((one) => one.status !== 'operational') ? 'degraded' : 'operational'
        return { data: { status, components } as const, message: 'Health of all components.' }
      },
    },
  ),
]
