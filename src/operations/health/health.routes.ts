import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, named, namedObject, TimestampSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import type { RealtimeHealth } from '../../realtime/realtime-health.ts'
import type { ComponentHealth, HealthDeps } from './health.ts'

const StatusSchema = named('HealthStatus', enumSchema(['operational', 'degraded', 'down']))

const ComponentSchema = namedObject('HealthComponent', {
  component: Type.String(),
  status: StatusSchema,
  checked_at: TimestampSchema,
  details: Type.Record(Type.String(), Type.Unknown()),
})

/** Maps the health of a component for the wire. */
function toComponentRow(health: ComponentHealth | RealtimeHealth): Static<typeof ComponentSchema> {
  const { component, status, checkedAt, details } = health
  return { component, status, checked_at: checkedAt.toISOString(), details: { ...details } }
}

const OF_HEALTH = { method: 'GET', resource: 'health', accountScope: 'none', access: 'public' } as const

const DESCRIPTIONS = {
  backlog:
    '`operational` or `degraded`, never `down`. At most 5 seconds old. Counts end at 10,000, which stands for that many or more.',
  realtime:
    '`down` while a required setting is missing (`missing` names them), while no process publishes, and while the provider does not answer as it should. A refusal of the provider (4xx) is a `last_warning` and never changes the status. At most 5 seconds old.',
  secrets:
    '`degraded` while a stored secret opens under no key of `SECRET_KEY`: `unreadable` counts them, and `remedy` says what to do. At most 5 seconds old.',
  clock:
    '`degraded` while the machine of a process is more than 2 seconds off the clock of the database: `skewed_processes` counts them, and `remedy` says what to do. At most 5 seconds old.',
  connections:
    '`degraded` while the last certificate of a SAML connection in use ends within 14 days (`certificates_ending`) or has ended (`certificates_ended`). An ended certificate still verifies. `refusals_today` has the refused sign-ins of the day (UTC) by reason, which change no status. `remedy` says what to do. At most 5 seconds old.',
}

/** The components with a route of their own: the end of its path, whose last segment names the action, and the reader. */
const COMPONENTS = [
  ['integration/webhook-out', 'outbound webhooks', DESCRIPTIONS.backlog, 'readWebhookOutHealth'],
  ['integration/realtime', 'realtime publishing', DESCRIPTIONS.realtime, 'readRealtimeHealth'],
  ['integration/provisioning', 'provisioning', DESCRIPTIONS.backlog, 'readProvisioningHealth'],
  ['stored-secrets', 'stored secrets', DESCRIPTIONS.secrets, 'readSecretHealth'],
  ['clock', 'the clocks', DESCRIPTIONS.clock, 'readClockHealth'],
  ['connections', 'the connections of accounts', DESCRIPTIONS.connections, 'readConnectionHealth'],
] as const

/** Public, without secrets or tenant data. All callers of a process share one check in 5 s. */
export const healthRoutes: Routes<HealthDeps> = [
  ...COMPONENTS.map(([path, of, description, read]) =>
    defineRoute(
      {
        ...OF_HEALTH,
        path: `/api/v3/health/component/${path}`,
        action: path.slice(path.lastIndexOf('/') + 1),
        summary: `Health of ${of}`,
        description,
        data: ComponentSchema,
      },
      async (deps: HealthDeps) => ({ data: toComponentRow(await deps[read]()), message: `Health of ${of}.` }),
    ),
  ),
  defineRoute(
    {
      ...OF_HEALTH,
      path: '/api/v3/health',
      action: 'find-all',
      summary: 'Health of all components',
      data: namedObject('Health', { status: StatusSchema, components: Type.Array(ComponentSchema) }),
    },
    async (deps: HealthDeps) => {
      const realtime = await deps.readRealtimeHealth()
      // A service without a configured realtime provider is healthy without it.
      const ofRealtime = realtime.isWanted ? [realtime] : []
      const always = [
        await deps.readWebhookOutHealth(),
        await deps.readProvisioningHealth(),
        await deps.readSecretHealth(),
        await deps.readClockHealth(),
        await deps.readConnectionHealth(),
      ]
      const ofLog = deps.readEventLogHealth ? [await deps.readEventLogHealth()] : []
      const ofCells = await deps.readCellHealth()
      const components = [...always, ...ofLog, ...(ofCells ? [ofCells] : []), ...ofRealtime].map(toComponentRow)
      const status = components.some((component) => component.status !== 'operational') ? 'degraded' : 'operational'
      return { data: { status, components } as const, message: 'Health of all components.' }
    },
  ),
]
