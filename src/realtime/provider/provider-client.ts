import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { buildConnector, errors, Pool } from 'undici'
import type { Clock } from '../../base/clock.ts'
import { type LoopWatch, startDeadline, watchLoop } from '../../outbound/own-fault/loop-watch.ts'
import { findClientFault, OwnFault } from '../../outbound/own-fault/own-fault.ts'
import { classifyAnswer, classifyRequestError, type ProviderOutcome } from './provider-outcome.ts'
import type { ProviderApp } from './provider-settings.ts'
import { type ProviderRequest, signRequest } from './provider-signature.ts'

/** Limits of one request, in milliseconds: TCP with TLS, and everything together. */
const CONNECT_TIMEOUT_MS = 2_000
const TOTAL_TIMEOUT_MS = 5_000

/** Maximum number of kept connections to the provider. */
const CONNECTIONS = 8

/** Limit of an answer, in bytes: the list of occupied channels is the longest. */
const ANSWER_LIMIT_BYTES = 4_194_304

export interface ProviderClient {
  /** Never rejects. `signal` ends the request with `failed` by `timeout`, or `own_fault` if it was not sent. */
  send(request: ProviderRequest, options?: { signal?: AbortSignal; timeoutMs?: number }): Promise<ProviderOutcome>
  close(): Promise<void>
}

export interface ProviderClientDeps {
  /** The application; read with each request, because the port of an embedded server is known late. */
  app: () => ProviderApp
  clock: Pick<Clock, 'now'>
  /** Certificate authorities in place of the system's, in PEM. For tests and private deployments. */
  ca?: string | undefined
  watch?: LoopWatch | undefined
}

/** Builds the client: kept connections, signed requests, no redirect. Results contain no URL: its query is signed. */
export function buildProviderClient(deps: ProviderClientDeps): ProviderClient {
  const { clock, ca } = deps
  const watch = deps.watch ?? watchLoop()
  let opened: Pool | undefined
  const open = ({ origin }: ProviderApp) => {
    opened ??= openPool(origin, { ca, watch })
    return opened
  }
  return {
    send: async (request, { signal, timeoutMs = TOTAL_TIMEOUT_MS } = {}) => {
      const deadline = new AbortController()
      const limit = startDeadline(watch, timeoutMs, () => deadline.abort(new DOMException('too late', 'TimeoutError')))
      try {
        const app = deps.app()
        const answer = await open(app).request({
          method: request.method,
          path: signRequest(app, request, new Date(clock.now())),
          headers: { accept: 'application/json', ...(request.body !== undefined && JSON_HEADERS) },
          ...(request.body !== undefined && { body: request.body }),
          signal: signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal,
        })
        return classifyAnswer(answer.statusCode, await answer.body.text())
      } catch (error) {
        // A stall longer than the limit leaves the provider no time of its own.
        const isStalled = deadline.signal.aborted && limit.stalledMs() > timeoutMs
        const fault = isStalled ? new OwnFault('STALLED') : findFault(error)
        if (fault) return { kind: 'own_fault', fault }
        return { kind: 'failed', statusCode: null, errorClass: classifyRequestError(error) }
      } finally {
        limit.cancel()
      }
    },
    close: async () => {
      watch.stop()
      await opened?.destroy()
    },
  }
}

const JSON_HEADERS = { 'content-type': 'application/json' }

function findFault(error: unknown): OwnFault | undefined {
  if (error instanceof OwnFault) return error
  const code = findClientFault(error)
  return code === undefined ? undefined : new OwnFault(code)
}

function openPool(origin: string, { ca, watch }: { ca: string | undefined; watch: LoopWatch }): Pool {
  return new Pool(origin, {
    connections: CONNECTIONS,
    connect: buildDial({ ca, watch }),
    maxResponseSize: ANSWER_LIMIT_BYTES,
    pipelining: 1,
  })
}

/** Dials with a limit that stalls of this process do not shorten. */
function buildDial({ ca, watch }: { ca: string | undefined; watch: LoopWatch }): buildConnector.connector {
  const dial = buildConnector({ timeout: 0, ...(ca !== undefined && { ca }) })
  return (options, callback) => {
    let isOver = false
    const end = (error: Error | null, socket: Socket | TLSSocket | null) => {
      if (isOver) return socket?.destroy()
      isOver = true
      limit.cancel()
      if (error === null && socket !== null) callback(null, socket)
      else callback(error ?? new errors.SocketError('no socket'), null)
    }
    const limit = startDeadline(watch, CONNECT_TIMEOUT_MS, () => {
      const isStalled = limit.stalledMs() > CONNECT_TIMEOUT_MS
      end(isStalled ? new OwnFault('STALLED') : new errors.ConnectTimeoutError(), null)
    })
    // Without a free descriptor the call throws at once.
    try {
      dial(options, (...[error, socket]) => end(error, socket))
    } catch (error) {
      end(error as Error, null)
    }
  }
}
