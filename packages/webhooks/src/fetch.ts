import { DEFAULT_MAX_BODY_BYTES, type ReceiveOptions, readChunks, receiveDelivery } from './receive-delivery.ts'

export type { ReceiveOptions } from './receive-delivery.ts'

/**
 * Builds a handler from web-standard `Request` to `Response`: for Deno, Bun, workers, service workers and any framework
 * that speaks them. Other methods than POST are answered 405.
 */
export function receiveWebhook(options: ReceiveOptions<Request>): (request: Request) => Promise<Response> {
  return async (request) => {
    if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } })
    return answerRequest(options, { request, context: request })
  }
}

/** Verifies one `Request` with an unread body, and builds the `Response`. */
export async function answerRequest<Context>(
  options: ReceiveOptions<Context>,
  incoming: { request: Request; context: Context; readBody?: () => Promise<unknown> },
): Promise<Response> {
  const { request, context } = incoming
  const readBody = incoming.readBody ?? (() => readRequestBody(request, options.maxBodyBytes))
  const answer = await receiveDelivery(options, { headers: request.headers, readBody, context })
  return Response.json(answer.body, { status: answer.status })
}

/** The raw bytes of a request, up to a limit; `undefined` (refused as `body_not_raw`) when the body was already read. */
async function readRequestBody(
  request: Request,
  maxBodyBytes: number = DEFAULT_MAX_BODY_BYTES,
): Promise<Uint8Array | undefined> {
  if (request.bodyUsed) return undefined
  if (request.body === null) return new Uint8Array()
  return readChunks(iterateStream(request.body), maxBodyBytes)
}

/** Like `for await` over the stream, which some browsers lack. Leaving the loop early cancels the stream. */
async function* iterateStream(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
  }
}
