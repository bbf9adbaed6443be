import { defineRoute, type Routes } from '../../http/route/route.ts'
import { PublishAnswer, PublishBody } from '../occurrence/event.schema.ts'
import { buildAccepted, readPublications } from './publication-form.ts'
import { type PublishDeps, publishEvents } from './publish.ts'
import { checkTenantMayPublish } from './publish-scope.ts'

/** Publishing from outside (docs/contract/events.md#publishing-from-outside). `performPublication` is its path. */
export const publishRoutes: Routes<PublishDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/webhook/publish',
      resource: 'event',
      action: 'publish',
      cell: { by: 'operation' },
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
      handle: async (deps: PublishDeps, { db, body, scope, caller, now, trace }) => {
        const ids = await publishEvents(deps, db, { ...readPublications(body), scope, caller, now, trace })
        const [keptFor = null] = scope === 'all' ? [] : scope
        return { ...buildAccepted(ids), keptFor }
      },
    },
  ),
]
