import { Pool } from 'undici'
import type { Clock } from '../clock.ts'
import { classifyAnswer, classifyRequestError, type ProviderOutcome } from './provider-outcome.ts'
import type { ProviderApp } from './provider-settings.ts'
import { type ProviderRequest, signRequest } from './provider-signature.ts'

/** Limits of one request, in milliseconds: TCP with TLS, and everything together. */
const CONNECT_TIMEOUT_MS = 2_000
const TOTAL_TIMEOUT_MS = 5_000

/** Connections that are kept to the provider. */
const CONNECTIONS = 8

/** Limit of an answer, in bytes: the list of occupied channels is the longest. */
const ANSWER_LIMIT_BYTES = 4_194_304

/** Calls the HTTP API of the provider. */
export interface ProviderClient {
  /** Never rejects. `signal` ends the request; the outcome is then `failed` by `timeout`. */
  send(request: ProviderRequest, options?: { signal?: AbortSignal; timeoutMs?: number }): Promise<ProviderOutcome>
  close(): Promise<void>
}

/** What a client is built from. */
export interface ProviderClientDeps {
  /** The application; read with each request, because the port of an embedded server is known late. */
  app: () => ProviderApp
  clock: Pick<Clock, 'now'>
  /** Certificate authorities in place of the system's, in PEM. For tests and private deployments. */
  ca?: string | undefined
}

/**
 * Builds the client: keep-alive connections, signed anew for each request, no redirect followed, an answer of bounded size
 * within a deadline. What it returns holds no URL, because that has a signature in it.
 */
export function buildProviderClient(deps: ProviderClientDeps): ProviderClient {
  const { clock, ca } = deps
  let opened: Pool | undefined
  const open = ({ origin }: ProviderApp) => {
    opened ??= openPool(origin, ca)
    return opened
  }
  return {
    send: async (request, { signal, timeoutMs = TOTAL_TIMEOUT_MS } = {}) => {
      const deadline = AbortSignal.timeout(timeoutMs)
      try {
        const app = deps.app()
        const answer = await open(app).request({
          method: request.method,
          path: signRequest(app, request, new Date(clock.now())),
          headers: { accept: 'application/json', ...(request.body !== undefined && JSON_HEADERS) },
          ...(request.body !== undefined && { body: request.body }),
          signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
        })
        return classifyAnswer(answer.statusCode, await answer.body.text())
      } catch (error) {
        return { kind: 'failed', statusCode: null, errorClass: classifyRequestError(error) }
      }
    },
    close: async () => opened?.destroy(),
  }
}

const JSON_HEADERS = { 'content-type': 'application/json' }

function openPool(origin: string, ca: string | undefined): Pool {
  return new Pool(origin, {
    connections: CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS, ...(ca !== undefined && { ca }) },
    maxResponseSize: ANSWER_LIMIT_BYTES,
    pipelining: 1,
  })
}
