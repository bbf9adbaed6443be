import { Problem } from '../http/problem/problem.ts'
import { defineRoute, type Routes } from '../http/route/route.ts'
import { type AuthorizationDeps, requireApp } from './authorization/authorization.ts'
import type { ProviderClient } from './provider/provider-client.ts'
import { publishTestEvent } from './provider/test-event.ts'
import { PublishedTestEvent, TestEventBody } from './realtime.schema.ts'

export interface TestEventDeps extends AuthorizationDeps {
  client: Pick<ProviderClient, 'send'> | undefined
  /** Whether operators may publish test events. */
  takesTestEvents: boolean
}

/** The test event of an operator (docs/contract/realtime.md#test-event). */
export const testEventRoutes: Routes<TestEventDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/realtime/realtime/test-event',
      resource: 'realtime',
      action: 'publish-test',
      accountScope: 'none',
      summary: 'Publish a test event on a private channel',
      description:
        'One event `realtime.test` with a text, published at once and once; every client of the channel gets it. Off in production unless `INTEGRATION_REALTIME_TEST_EVENTS` is true.',
      body: TestEventBody,
      data: PublishedTestEvent,
      problems: ['realtime_unavailable', 'conflict'],
    },
    {
      prepare: async (deps: TestEventDeps, { body, now }) => {
        requireApp(deps)
        if (!deps.takesTestEvents)
          throw new Problem('conflict', 'Test events are off here: INTEGRATION_REALTIME_TEST_EVENTS is not true.')
        if (!deps.client) throw new Problem('realtime_unavailable', 'This process has no realtime client.')
        return publishTestEvent(deps.client, { channel: body.channel_name, text: body.text ?? '', now })
      },
      handle: async (_deps, { prepared }) => ({
        data: prepared,
        message: 'Test event published.',
        changed: [{ id: null, account: null, url: null }],
        audit: { channel: prepared.channel },
      }),
    },
  ),
]
