import { defineRoute, type Routes } from '../../http/route/route.ts'
import { namedObject } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { EnvelopeBody } from '../envelope/envelope.schema.ts'
import { acceptDelivery, SINK_PATH, type SinkDeps, sinkSearch } from './sink.ts'

const SINK_LOG_HEADERS = ['x-service-event', 'x-service-delivery', 'x-service-attempt', 'webhook-id', 'user-agent']

const SinkQuery = Type.Object({
  receiver: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9-]{1,80}$',
      description: 'A name that tells several webhooks on the sink apart.',
    }),
  ),
  fails: Type.Optional(
    Type.Literal('true', { description: 'Answers 503 to a signed delivery, to see how a failure looks.' }),
  ),
})

/**
 * The development sink. Mounted in development, and in certification when `WEBHOOK_SINK_SECRET` is set; never in
 * production, even with it (docs/contract/webhooks.md#sink-availability). It emits no event: a global webhook on the
 * sink would loop.
 */
export const sinkRoutes: Routes<SinkDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: SINK_PATH,
      resource: 'webhook-sink',
      action: 'accept',
      accountScope: 'none',
      access: 'public',
      event: 'none',
      summary: 'Take a signed delivery (development and certification)',
      query: SinkQuery,
      body: EnvelopeBody,
      data: namedObject('AcceptedDelivery', { accepted: Type.Literal(true) }),
      problems: ['signature_invalid', 'not_found', 'sink_fails'],
    },
    {
      // The signature is checked before the body, so that unsigned requests learn nothing of the rules.
      row: {
        find: (deps: SinkDeps, { db, headers, rawBody, query, now }) => {
          const signature = headers['x-service-signature']
          const named = SINK_LOG_HEADERS.flatMap((name) => {
            const value = headers[name]
            return typeof value === 'string' ? [[name.replaceAll('-', '_'), value.slice(0, 200)]] : []
          })
          // Within the request's transaction: a second connection for each delivery would exhaust the pool.
          return acceptDelivery(
            { ...deps, db },
            {
              header: typeof signature === 'string' ? signature : undefined,
              body: rawBody,
              search: sinkSearch(query),
              isToFail: query.fails === 'true',
              logFields: Object.fromEntries(named),
              now,
            },
          )
        },
        neededBy: 'handle',
      },
      handle: async (_deps, { target }) => ({ data: target, message: 'Delivery accepted.' }),
    },
  ),
]
