import { type NodeRequest, type NodeResponse, readNodeBody, respondJson } from './node-request.ts'
import { checkKeys, type ReceiveOptions, receiveDelivery } from './receive-delivery.ts'

export type { ReceiveOptions } from './receive-delivery.ts'

/**
 * Builds an Express (or Connect) handler: `app.post('/webhooks/signalbox', receiveWebhook({ ... }))`.
 *
 * Put it before `app.use(express.json())`; it reads the body itself. `express.raw()` before it is fine as well. Where
 * `express.json()` must come first, keep the bytes: `express.json({ verify: (req, _res, bytes) => { req.rawBody = bytes } })`.
 * A body that was parsed without that goes to Express's error handler as `body_not_raw`, as do errors of `onDelivery`.
 *
 * Throws `WebhookVerificationError` at once when a key is missing or malformed, so that a wrong setting stops the start.
 */
export function receiveWebhook<Request extends NodeRequest>(
  options: ReceiveOptions<Request>,
): (request: Request, response: NodeResponse, next: (error?: unknown) => void) => Promise<void> {
  checkKeys(options)
  return async (request, response, next) => {
    try {
      const readBody = () => readNodeBody(request, options.maxBodyBytes)
      respondJson(response, await receiveDelivery(options, { headers: request.headers, readBody, context: request }))
    } catch (error) {
      next(error)
    }
  }
}
