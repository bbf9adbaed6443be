import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { DEFAULT_LIMIT_MS } from '../run/wait.ts'

/** A received span, in OTLP terms. */
export interface CollectedSpan {
  name: string
  traceId: string
  spanId: string
  /** Empty or absent for the first span of a trace. */
  parentSpanId?: string
  /** The `tracestate`; absent when there is none. */
  traceState?: string
  kind: number
  attributes: Record<string, unknown>
  /** 0 unset, 2 error. */
  statusCode: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  /** The resource of the sending process. */
  resource: Record<string, unknown>
}

/** A collector of traces on loopback for OTLP/HTTP with JSON, as the exporter sends. */
export interface Collector {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  origin: string
  spans: CollectedSpan[]
  /** The received bodies, with their paths. */
  bodies: string[]
  paths: string[]
  /** The behaviour for later requests: accept, never answer, or refuse with this status. */
  behave(behaviour: 'take' | 'hang' | number): void
  /** The first `count` spans; rejects when there are fewer after `limitMs`, by default a minute. */
  waitFor(count: number, limitMs?: number): Promise<CollectedSpan[]>
  /** Resolves when `count` requests were received, with any answer; rejects after `limitMs`, by default a minute. */
  waitForRequests(count: number, limitMs?: number): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts a collector. */
export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const bodies: string[] = []
  const paths: string[] = []
  const sockets = new Set<Socket>()
  const looks = new Set<() => void>()
  let behaviour: 'take' | 'hang' | number = 'take'
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    paths.push(request.url ?? '')
    bodies.push(body)
    if (behaviour === 'take') spans.push(...readSpans(JSON.parse(body)))
    for (const look of looks) look()
    if (behaviour === 'hang') return
    response.writeHead(behaviour === 'take' ? 200 : behaviour, { 'content-type': 'application/json' }).end('{}')
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  const waitUntil = (what: () => string, isTrue: () => boolean, limitMs: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => reject(new Error(`the collector has ${what()} after ${limitMs} ms`)), limitMs)
    const look = () => isTrue() && resolve()
    looks.add(look)
    look()
    return promise.finally(() => {
      clearTimeout(timer)
      looks.delete(look)
    })
  }
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    paths,
    behave: (value) => {
      behaviour = value
    },
    waitFor: async (count, limitMs = DEFAULT_LIMIT_MS) => {
      await waitUntil(
        () => `${spans.length} of ${count} spans`,
        () => spans.length >= count,
        limitMs,
      )
      return spans.slice(0, count)
    },
    waitForRequests: (count, limitMs = DEFAULT_LIMIT_MS) =>
      waitUntil(
        () => `${bodies.length} of ${count} requests`,
        () => bodies.length >= count,
        limitMs,
      ),
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

interface OtlpAttribute {
  key: string
  value: Record<string, unknown>
}

interface OtlpBody {
  resourceSpans: {
    resource: { attributes: OtlpAttribute[] }
    scopeSpans: {
      spans: (Omit<CollectedSpan, 'attributes' | 'statusCode' | 'resource'> & {
        attributes: OtlpAttribute[]
        status: { code?: number }
      })[]
    }[]
  }[]
}

function readSpans(body: OtlpBody): CollectedSpan[] {
  return body.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap((scope) =>
      scope.spans.map(({ attributes, status, ...span }) => ({
        ...span,
        attributes: readAttributes(attributes),
        statusCode: status.code ?? 0,
        resource: readAttributes(resource.attributes),
      })),
    ),
  )
}

function readAttributes(attributes: OtlpAttribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}
