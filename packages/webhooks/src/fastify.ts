import { checkKeys, DEFAULT_MAX_BODY_BYTES, type ReceiveOptions, receiveDelivery } from './receive-delivery.ts'

export type { ReceiveOptions } from './receive-delivery.ts'

/** The part of a Fastify request that is used. */
export type FastifyRequestLike = {
  readonly headers: { readonly [name: string]: string | string[] | undefined }
  readonly body: unknown
}

type FastifyReplyLike = { code(status: number): { send(body: unknown): unknown } }

/** The part of a Fastify instance that is used; declared here so that there is no dependency. */
export type FastifyScope = {
  removeAllContentTypeParsers(): unknown
  addContentTypeParser(
    contentType: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    parser: (request: never, body: Uint8Array, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown
  post(path: string, handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => Promise<unknown>): unknown
}

/**
 * Builds a Fastify plugin with one POST route: `app.register(receiveWebhook({ path: '/webhooks/signalbox', ... }))`.
 *
 * Inside the plugin's own scope, and only there, bodies stay bytes; the JSON parsers of the rest of the application are
 * untouched. Do not wrap it with `fastify-plugin`, which would lift that scope. Bodies over the limit are Fastify's 413.
 *
 * Throws `WebhookVerificationError` at once when a key is missing or malformed, so that a wrong setting stops the start.
 */
export function receiveWebhook(
  options: ReceiveOptions<FastifyRequestLike> & { readonly path: string },
): (scope: FastifyScope) => Promise<void> {
  checkKeys(options)
  return async (scope) => {
    scope.removeAllContentTypeParsers()
    const parsing = { parseAs: 'buffer', bodyLimit: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES } as const
    scope.addContentTypeParser('*', parsing, (_request, body, done) => done(null, body))
    scope.post(options.path, async (request, reply) => {
      const readBody = async () => request.body ?? new Uint8Array()
      const answer = await receiveDelivery(options, { headers: request.headers, readBody, context: request })
      return reply.code(answer.status).send(answer.body)
    })
  }
}
