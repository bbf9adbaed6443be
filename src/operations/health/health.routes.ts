import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, named, TimestampSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import type { RealtimeHealth } from '../../realtime/realtime-health.ts'
import type { ComponentHealth, HealthDeps } from './health.ts'

const StatusSchema = named('HealthStatus', enumSchema(['operational', 'degraded', 'down']))

const ComponentSchema = named(
  'HealthComponent',
  Type.Object({
    component: Type.String(),
    status: StatusSchema,
    checked_at: TimestampSchema,
    details: Type.Record(Type.String(), Type.Unknown()),
  }),
)

/** Maps the health of a component for the wire. */
function toComponentRow(health: ComponentHealth | RealtimeHealth): Static<typeof ComponentSchema> {
  const { component, status, checkedAt, details } = health
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
      path: '/api/v3/health/component/integration/realtime',
      resource: 'health',
      action: 'realtime',
      accountScope: 'none',
      access: 'public',
      summary: 'Health of realtime publishing',
      description:
        '`down` while a required setting is missing (`missing` names them), while no process publishes, and while the provider does not answer as it should. A refusal of the provider (4xx) is a `last_warning` and never changes the status. At most 5 seconds old.',
      data: ComponentSchema,
    },
    {
      handle: async ({ readRealtimeHealth }: HealthDeps) => ({
        data: toComponentRow(await readRealtimeHealth()),
        message: 'Health of realtime publishing.',
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
      path: '/api/v3/health/component/stored-secrets',
      resource: 'health',
      action: 'stored-secrets',
      accountScope: 'none',
      access: 'public',
      summary: 'Health of stored secrets',
      description:
        '`degraded` while a stored secret opens under no key of `SECRET_KEY`: `unreadable` counts them, and `remedy` says what to do. At most 5 seconds old.',
      data: ComponentSchema,
    },
    {
      handle: async ({ readSecretHealth }: HealthDeps) => ({
        data: toComponentRow(await readSecretHealth()),
        message: 'Health of stored secrets.',
      }),
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/health/component/clock',
      resource: 'health',
      action: 'clock',
      accountScope: 'none',
      access: 'public',
      summary: 'Health of the clocks',
      description:
        '`degraded` while the machine of a process is more than 2 seconds off the clock of the database: `skewed_processes` counts them, and `remedy` says what to do. At most 5 seconds old.',
      data: ComponentSchema,
    },
    {
      handle: async ({ readClockHealth }: HealthDeps) => ({
        data: toComponentRow(await readClockHealth()),
        message: 'Health of the clocks.',
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
      handle: async (deps: HealthDeps) => {
        const realtime = await deps.readRealtimeHealth()
        // A service that no realtime provider was given for is whole without it.
        const ofRealtime = realtime.isWanted ? [realtime] : []
        const always = [
          await deps.readWebhookOutHealth(),
          await deps.readProvisioningHealth(),
          await deps.readSecretHealth(),
          await deps.readClockHealth(),
        ]
        const components = [...always, ...ofRealtime].map(toComponentRow)
        const status = components.some((component) => component.status !== 'operational') ? 'degraded' : 'operational'
        return { data: { status, components } as const, message: 'Health of all components.' }
      },
    },
  ),
]
