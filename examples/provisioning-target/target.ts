import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
// In a platform of your own: '@signalbox/webhooks/provisioning'.
import { verifyProvisioning, WebhookVerificationError } from '../../packages/webhooks/src/provisioning.ts'
import type { UserStore } from './user-store.ts'

/** Bodies are some 300 bytes; nothing longer is read. */
const BODY_LIMIT_BYTES = 16_384

/**
 * A platform that keeps its users in step: `POST /users` takes deliveries, `GET /users` shows the users to whoever has the
 * token.
 */
export function buildTarget(options: { secret: string; token: string; users: UserStore }): Server {
  return createServer((request, response) => {
    const path = `${request.method} ${request.url}`
    if (path === 'GET /users')
      return isAllowed(request, options.token) ? answer(response, 200, options.users.list()) : answer(response, 401)
    if (path !== 'POST /users') return answer(response, 404)
    // A 5xx is tried again, so a fault of this program loses nothing.
    receive(options, request, response).catch(() => answer(response, 500))
  })
}

async function receive(
  { secret, users }: { secret: string; users: UserStore },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(request)
  if (body === undefined) return answer(response, 413)
  try {
    const { created_at, data } = await verifyProvisioning({ headers: request.headers, body, secret })
    // The body has the whole state, so the same one twice does no harm, and its type need not be looked at.
    users.apply({ ...data.user, as_of: created_at })
    answer(response, 204)
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error
    answer(response, 401)
  }
}

/** Compares digests, which have one length, in constant time. */
function isAllowed({ headers }: IncomingMessage, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(headers.authorization ?? ''), digest(`Bearer ${token}`))
}

/** The raw bytes, which the signature is over; undefined when they are too many. */
async function readBody(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > BODY_LIMIT_BYTES) return undefined
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

function answer(response: ServerResponse, status: number, body?: unknown): void {
  if (response.headersSent) return
  if (status === 413) response.setHeader('connection', 'close')
  response.writeHead(status, body === undefined ? {} : { 'content-type': 'application/json' })
  response.end(body === undefined ? undefined : JSON.stringify(body))
}
