import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, namedObject, nullable, TimestampSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { FIXED_RULES, type ServiceFacts } from './service-facts.ts'

export interface ServiceDeps {
  readFacts: () => Promise<ServiceFacts>
}

const ServiceSchema = namedObject('Service', {
  version: Type.String(),
  node: Type.String(),
  environment: Type.String({ description: '`APP_ENV`.' }),
  roles: Type.Array(Type.String(), { description: 'Of the process that answers.' }),
  started_at: TimestampSchema,
  publishing: Type.Boolean({ description: '`ENABLE_API_EVENT_QUEUE`: false while no event is recorded.' }),
  realtime: enumSchema(['provider', 'embedded', 'log-only'], { description: 'How realtime messages are published.' }),
  schema: namedObject('ServiceSchemaState', {
    applied: Type.Integer({ description: 'Migrations that ran.' }),
    latest: nullable(Type.String()),
    latest_at: nullable(TimestampSchema),
    pending: Type.Array(Type.String(), { description: 'Migrations of this release that have not run.' }),
    ahead: Type.Array(Type.String(), { description: 'Migrations of a newer release.' }),
  }),
  rules: namedObject(
    'FixedRules',
    {
      attempts: Type.Integer({ description: 'POSTs of one delivery by schedule.' }),
      retry_delays_s: Type.Array(Type.Number(), { description: 'Waits between them, seconds.' }),
      attempt_timeout_s: Type.Number({ description: 'Limit of one POST, seconds.' }),
      auto_disable_after: Type.Integer({ description: 'Failed deliveries in a row that disable a webhook.' }),
      provisioning_attempts: Type.Integer({ description: 'POSTs of one delivery to a provisioning target.' }),
    },
    { description: 'Fixed by the contract; no setting changes them.' },
  ),
})

function toServiceRow({ schema, startedAt, isPublishing, ...facts }: ServiceFacts): Static<typeof ServiceSchema> {
  const { version, node, environment, realtime } = facts
  return {
    ...{ version, node, environment, realtime },
    roles: [...facts.roles],
    started_at: startedAt.toISOString(),
    publishing: isPublishing,
    schema: {
      applied: schema.applied,
      latest: schema.latest,
      latest_at: schema.latestAt?.toISOString() ?? null,
      pending: schema.pending,
      ahead: schema.ahead,
    },
    rules: FIXED_RULES,
  }
}

export const serviceRoutes: Routes<ServiceDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/health/service',
      resource: 'health',
      action: 'service',
      accountScope: 'none',
      summary: 'Build, settings and schema of the service',
      description: 'Of the process that answers: a rolling release has two versions at once.',
      data: ServiceSchema,
    },
    async ({ readFacts }: ServiceDeps) => ({
      data: toServiceRow(await readFacts()),
      message: 'The service.',
    }),
  ),
]
