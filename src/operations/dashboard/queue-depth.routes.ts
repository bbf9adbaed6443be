import { defineRoute, type Routes } from '../../http/route/route.ts'
import { namedObject, nullable, TimestampSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { addDepths } from './add-up.ts'
import { readQueueDepth } from './queue-depth.store.ts'
import { OF_DASHBOARD } from './range.schema.ts'

const Count = Type.Integer()

const LaneSchema = namedObject('QueueLane', {
  waiting: Type.Integer({ description: 'Due deliveries that no process has begun.' }),
  in_flight: Count,
  oldest_due_s: Type.Integer({ description: 'Age of the longest due one, seconds; 0 when none waits.' }),
})

const QueueDepthSchema = namedObject('QueueDepth', {
  unrouted: Type.Integer({ description: 'Events that wait for their routing.' }),
  oldest_unrouted_s: Count,
  lanes: namedObject('QueueLanes', { fast: LaneSchema, slow: LaneSchema, throttled: LaneSchema }),
  retry: namedObject('QueueRetries', {
    waiting: Type.Integer({ description: 'Deliveries whose next attempt is due later.' }),
    next_attempt_at: nullable(TimestampSchema),
  }),
})

/** The work of outbound webhooks by lane (docs/contract/delivery.md#queue-depth). */
export const queueDepthRoutes: Routes<object> = [
  defineRoute(
    {
      ...OF_DASHBOARD,
      path: '/api/v3/webhook/dashboard/queue',
      action: 'dashboard-queue',
      isExpensive: true,
      problems: ['read_too_expensive'],
      summary: 'Deliveries that wait, by lane',
      description:
        'Of active webhooks of all accounts. A webhook is in the slow lane while an attempt to it runs over 2 seconds. Counts end at 10,000, which stands for that many or more.',
      data: QueueDepthSchema,
    },
    async (_deps: object, { readEach, now }) => {
      const { retry, ...depth } = addDepths(await readEach(({ db }) => readQueueDepth(db, now)))
      const next = retry.next_attempt_at?.toISOString() ?? null
      return {
        data: { ...depth, retry: { waiting: retry.waiting, next_attempt_at: next } },
        message: 'Deliveries that wait.',
      }
    },
  ),
]
