import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Metrics } from './metrics.ts'

/** A scraper sends a request every few seconds, over one connection. */
const CONNECTIONS_LIMIT = 32
const TIME_LIMIT_MS = 10_000

/** The listener of `METRICS_PORT`. */
export interface MetricsListener {
  port: number
  close(): Promise<void>
}

/** Serves `GET /metrics` (and HEAD) on a port of its own, without a token. Rejects when it is taken. */
export async function listenForScrapes(options: {
  host: string
  port: number
  metrics: Pick<Metrics, 'render' | 'contentType'>
  logger: Logger
  /** Whether a request gets an answer. Default: each. */
  isAllowed?: (request: IncomingMessage) => boolean
}): Promise<MetricsListener> {
  const { host, port, metrics, logger, isAllowed = () => true } = options
  const server = createServer(
    { requestTimeout: TIME_LIMIT_MS, headersTimeout: TIME_LIMIT_MS, connectionsCheckingInterval: TIME_LIMIT_MS / 2 },
    (request, response) => {
      if (!isAllowed(request)) return end(response, 404)
      answer(metrics, request, response).catch((error: unknown) => {
        logger.error({ err: error }, 'metrics not rendered: see docs/operations.md, metrics')
        end(response, 500)
      })
    },
  )
  server.maxConnections = CONNECTIONS_LIMIT
  server.timeout = TIME_LIMIT_MS
  server.listen({ host, port })
  await once(server, 'listening')
  const taken = (server.address() as AddressInfo).port
  logger.info({ port: taken }, 'metrics listening')
  return {
    port: taken,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(
  metrics: Pick<Metrics, 'render' | 'contentType'>,
  { method, url = '' }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (url.split('?', 1)[0] !== '/metrics') return end(response, 404)
  if (method !== 'GET' && method !== 'HEAD') return end(response.setHeader('allow', 'GET, HEAD'), 405)
  end(response.setHeader('content-type', metrics.contentType), 200, await metrics.render())
}

function end(response: ServerResponse, status: number, text = ''): void {
  response.writeHead(status, { 'cache-control': 'no-store', 'content-length': Buffer.byteLength(text) }).end(text)
}
