import type { AccountScope } from '../route/route.ts'
import type { JsonSchema, Operation, Parameter, Response } from './openapi-document.ts'

/** An event type of the document. */
export interface EventTypeDescription {
  /** `webhook.create` */
  name: string
  accountScope: AccountScope
  description: string
}

function header(name: string, description: string, schema: JsonSchema = { type: 'string' }): Parameter {
  return { name, in: 'header', required: true, description, schema }
}

/** The headers of every delivery (docs/contract/webhooks.md#signature, docs/contract/webhooks.md#delivery-headers), under the names they have in `components.parameters`. */
export const DELIVERY_HEADERS: Readonly<Record<string, Parameter>> = {
  ServiceSignature: header(
    'x-service-signature',
    '`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`, keyed with the whole secret. Refuse when `t` is over 300 s off.',
  ),
  WebhookId: header('webhook-id', 'The id of the event: the same for every attempt. Deduplicate on it.'),
  WebhookTimestamp: header('webhook-timestamp', 'The time of the attempt in Unix seconds.'),
  WebhookSignature: header(
    'webhook-signature',
    '`v1,<base64>`: the signature of Standard Webhooks, keyed with the 32 bytes that the secret encodes.',
  ),
  ServiceEvent: header('x-service-event', 'The event type, as in `type`.'),
  ServiceDelivery: header('x-service-delivery', 'The id of the dispatch.'),
  ServiceAttempt: header('x-service-attempt', 'Which POST of this dispatch it is, from 1.', {
    type: 'integer',
    minimum: 1,
  }),
  Traceparent: header(
    'traceparent',
    'W3C Trace Context: the trace of the request that caused the event, and a span of its own for each attempt.',
  ),
}

/** Meanings of a subscriber's answer, under their names in `components.responses`. */
export const DELIVERY_RESPONSES: Readonly<Record<string, Response>> = {
  DeliveryReceived: { description: 'Received. Answer within 15 seconds.' },
  DeliveryRedirected: { description: 'Ends the delivery as failed: redirects are never followed.' },
  DeliveryRetried: { description: 'Any other status is retried after 1 min, 5 min, 30 min and 2 h.' },
}

/** One entry of the top-level `webhooks` section: what a subscriber receives for this event type (docs/contract/webhooks.md#envelope). */
export function buildWebhook({ name, accountScope, description }: EventTypeDescription): { post: Operation } {
  const reach =
    accountScope === 'account'
      ? 'Delivered to webhooks of the owning account and to global ones.'
      : 'Has no owner: delivered to global webhooks only.'
  const schema = {
    allOf: [{ $ref: '#/components/schemas/Envelope' }, { type: 'object', properties: { type: { const: name } } }],
  }
  const respond = (response: string) => ({ $ref: `#/components/responses/${response}` })
  return {
    post: {
      operationId: `on${`.${name}`.replace(/[.-]+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())}`,
      summary: name,
      description: `${description}\n\n${reach}`,
      tags: ['events'],
      security: [],
      parameters: Object.keys(DELIVERY_HEADERS).map((key) => ({ $ref: `#/components/parameters/${key}` })),
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: {
        '2XX': respond('DeliveryReceived'),
        '3XX': respond('DeliveryRedirected'),
        default: respond('DeliveryRetried'),
      },
    },
  }
}
