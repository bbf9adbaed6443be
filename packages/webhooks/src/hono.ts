import { answerRequest } from './fetch.ts'
import type { ReceiveOptions } from './receive-delivery.ts'

export type { ReceiveOptions } from './receive-delivery.ts'

/** The part of Hono's `Context` that is used; declared here so that there is no dependency. */
export type HonoContext = { readonly req: { readonly raw: Request; arrayBuffer(): Promise<ArrayBuffer> } }

/**
 * Builds a Hono handler: `app.post('/webhooks/signalbox', receiveWebhook({ ... }))`.
 * When an earlier middleware has read the body, Hono's own copy is taken; a middleware that replaced the body shows as
 * `signature_mismatch`. `secret` may be a function of the context: `(c) => c.env.SIGNALBOX_SECRET`.
 */
export function receiveWebhook<Context extends HonoContext>(
  options: ReceiveOptions<Context>,
): (context: Context) => Promise<Response> {
  return (context) => {
    const request = context.req.raw
    if (!request.bodyUsed) return answerRequest(options, { request, context })
    return answerRequest(options, { request, context, readBody: () => context.req.arrayBuffer() })
  }
}
