import createClient from 'openapi-fetch'
import type { CallOptions, Calls, Operation } from './call.ts'
import { OPERATIONS } from './operations.generated.ts'
import { buildTokens, type TokenProvider } from './token.ts'
import { entityTagOf, send, type Transport } from './transport.ts'

export type { components, operations, paths } from './api.generated.ts'
export type { Call, CallOptions, Input, OperationId, Output, Schemas } from './call.ts'
export {
  ConnectionError,
  isProblem,
  type Problem,
  type ProblemCode,
  ProblemError,
  SignalboxError,
  UnexpectedAnswerError,
} from './error.ts'
export type { TokenProvider } from './token.ts'
export { entityTagOf }

/** Options of a client. */
export interface SignalboxOptions {
  /** Where the service is: `https://id.example.com`. */
  baseUrl: string
  /** An API key or a session JWT, or where they come from. Default: none, for what needs no sign-in. */
  token?: string | TokenProvider
  /** Sent with every request. */
  headers?: Record<string, string>
  /** How often a request is sent again at most, where that is safe. Default: 3. */
  maxRetries?: number
  /** How long one try may take, ms. Default: 30,000. */
  timeoutMs?: number
  /** Default: that of the platform. */
  fetch?: (request: Request) => Promise<Response>
  /** Waits between two tries. Default: real time. */
  sleep?: Transport['sleep']
  /** In [0, 1), for the waits. Default: `Math.random`. */
  random?: () => number
  /** A new idempotency key. Default: a random UUID. */
  createKey?: () => string
}

/** The API of a service, by area. */
export type Signalbox = Calls

interface AnyInput extends CallOptions {
  path?: Record<string, string>
  query?: Record<string, unknown>
  body?: unknown
}

/**
 * Builds the calls of a service: `signalbox.webhook.webhookCreate({ body })`. Each throws a `SignalboxError`. Reads, and
 * changes that take an idempotency key, are sent again when no answer comes or it says to come back; nothing else is.
 */
export function createSignalbox(options: SignalboxOptions): Signalbox {
  const { baseUrl, headers, maxRetries = 3, createKey = () => crypto.randomUUID() } = options
  const transport: Transport = {
    fetch: options.fetch ?? ((request) => fetch(request)),
    tokens: buildTokens(options.token),
    timeoutMs: options.timeoutMs ?? 30_000,
    sleep: options.sleep ?? sleep,
    random: options.random ?? Math.random,
  }
  const http = createClient<Record<string, never>>({ baseUrl, ...(headers && { headers }) })

  async function call(operation: Operation, input: AnyInput = {}): Promise<unknown> {
    const { method, path, isKeyed = false } = operation
    const condition = input.ifMatch === undefined ? {} : { 'if-match': input.ifMatch }
    const key = isKeyed ? { 'idempotency-key': input.idempotencyKey ?? createKey() } : {}
    const rules = { maxRetries, isRepeatable: isKeyed || method === 'GET', signal: input.signal }
    let result: unknown
    const deliver = async (request: Request) => {
      result = await send(transport, request, rules)
      return new Response(null, { status: 204 })
    }
    const init = {
      params: { path: input.path, query: input.query, header: { ...key, ...condition } },
      body: input.body,
      fetch: deliver,
    }
    await http.request(method.toLowerCase() as never, path as never, init as never)
    return result
  }

  async function* each(operation: Operation, input: AnyInput = {}): AsyncGenerator<unknown, void, undefined> {
    let { cursor } = (input.query ?? {}) as { cursor?: string | null }
    do {
      const query = { ...input.query, ...(typeof cursor === 'string' && { cursor }) }
      const page = (await call(operation, { ...input, query })) as {
        data: unknown[]
        pagination: { next_cursor: string | null }
      }
      yield* page.data
      cursor = page.pagination.next_cursor
    } while (cursor !== null)
  }

  const build = (operation: Operation) =>
    Object.assign((input?: AnyInput) => call(operation, input), {
      each: (input?: AnyInput) => each(operation, input),
    })
  const areas = Object.entries(OPERATIONS).map(([area, operations]) => [
    area,
    Object.fromEntries(Object.entries(operations).map(([id, operation]) => [id, build(operation)])),
  ])
  return Object.fromEntries(areas) as unknown as Calls
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
