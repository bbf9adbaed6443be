import { isRawBody } from './raw-body.ts'
import { readChunks } from './receive-delivery.ts'

/** The part of Node's `IncomingMessage` that is used, with what Express, Next and body parsers put on it. */
export type NodeRequest = AsyncIterable<Uint8Array | string> & {
  readonly headers: { readonly [name: string]: string | string[] | undefined }
  readonly readableDidRead?: boolean
  readonly body?: unknown
  readonly rawBody?: unknown
}

/** The part of Node's `ServerResponse` that is used. */
export type NodeResponse = {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(body: string): unknown
}

/**
 * Finds the raw body of a Node request: `rawBody` where a parser's `verify` hook or the platform kept it, a `body` that
 * is still bytes or text (`express.raw()`), else the stream itself, up to the limit. When a parser has read the stream
 * without keeping the bytes, returns the parsed body, which is refused as `body_not_raw`.
 */
export async function readNodeBody(request: NodeRequest, maxBodyBytes: number | undefined): Promise<unknown> {
  if (isRawBody(request.rawBody)) return request.rawBody
  if (isRawBody(request.body)) return request.body
  if (request.readableDidRead) return request.body
  return readChunks(request, maxBodyBytes)
}

/** Writes a JSON answer. */
export function respondJson(response: NodeResponse, answer: { status: number; body: unknown }): void {
  response.statusCode = answer.status
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(answer.body))
}
