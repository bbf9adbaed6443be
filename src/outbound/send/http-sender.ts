import type { CallbackRules } from '../guard/callback-url.ts'
import type { Lookup } from '../guard/dns.ts'
import { resolveTarget } from '../guard/resolve.ts'
import { buildUrlCheck, type UrlCheck } from '../guard/url-check.ts'
import { type LoopWatch, startDeadline, watchLoop } from '../own-fault/loop-watch.ts'
import { OwnFault } from '../own-fault/own-fault.ts'
import { buildConnectionPool, type ConnectionPool } from './connection-pool.ts'
import { buildStopSignals, endPost, type PostEnd, startPostEnd, toSignal } from './post-end.ts'
import type { PostResult } from './post-result.ts'
import { buildFailure, exchange, type PostRequest, type PostRun } from './send-request.ts'

/** Limits of one POST (docs/contract/delivery.md#statuses), in milliseconds: 15 s in total, including 5 s for TCP and TLS. */
export const TOTAL_TIMEOUT_MS = 15_000
const CONNECT_TIMEOUT_MS = 5_000
/** Limit of the look-up before the POST, in milliseconds. It counts towards the total. */
const DNS_TIMEOUT_MS = 5_000

export type { PostRequest } from './send-request.ts'

export interface HttpSenderOptions {
  lookup: Lookup
  rules: CallbackRules
  connectTimeoutMs?: number | undefined
  totalTimeoutMs?: number | undefined
  dnsTimeoutMs?: number | undefined
  /** Certificate authorities in place of the system's, in PEM. For tests and private deployments. */
  ca?: string | undefined
  /** Monotonic milliseconds, for the measured durations. */
  now?: (() => number) | undefined
  watch?: LoopWatch | undefined
}

/** Sends POSTs to subscribers. No other code does. */
export interface HttpSender {
  /**
   * Sends one POST and returns its result. Rejects with an `OwnFault`, and with nothing else, where this process could not
   * send: no byte of the request left it.
   */
  post(request: PostRequest): Promise<PostResult>
  idleConnectionCount(): number
  /** Interrupts POSTs in flight, closes every connection and refuses further POSTs. Resolves when all have results. */
  close(): Promise<void>
}

/**
 * Builds the sender of POSTs (docs/contract/delivery.md#statuses, docs/contract/webhooks.md#callback-guard). Each POST
 * checks the URL again by the current rules, resolves the name once, and dials only checked addresses. No redirect, no
 * proxy of the environment, no retry, no decompression; one deadline covers look-up, connection, handshake, headers and
 * body. The limits are in real time, because they bound the network.
 */
export function buildHttpSender(options: HttpSenderOptions): HttpSender {
  const now = options.now ?? (() => performance.now())
  const watch = options.watch ?? watchLoop()
  const totalTimeoutMs = options.totalTimeoutMs ?? TOTAL_TIMEOUT_MS
  const pool = buildConnectionPool({
    connectTimeoutMs: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    now,
    watch,
    ca: options.ca,
  })
  const deps: SendDeps = { ...options, watch, pool, checkUrl: buildUrlCheck(options.rules) }
  const stops = buildStopSignals()
  const running = new Map<PostEnd, Promise<PostResult>>()
  let isClosed = false

  function post(request: PostRequest): Promise<PostResult> {
    const { signal } = request
    const end = startPostEnd()
    if (isClosed) endPost(end, 'stop')
    if (signal) stops.follow(signal, end)
    const limit = startDeadline(watch, totalTimeoutMs, () =>
      endPost(end, limit.stalledMs() > totalTimeoutMs ? 'stalled' : 'deadline'),
    )
    const run: PostRun = { request, startedAt: now(), now, end, dnsMs: null }
    const result = sendPost(deps, run).finally(() => {
      limit.cancel()
      if (signal) stops.unfollow(signal, end)
      running.delete(end)
    })
    running.set(end, result)
    return result
  }

  return {
    post,
    idleConnectionCount: () => pool.idleCount(),
    close: async () => {
      isClosed = true
      for (const end of running.keys()) endPost(end, 'stop')
      await Promise.allSettled(running.values())
      pool.clear()
      watch.stop()
    },
  }
}

type SendDeps = HttpSenderOptions & { watch: LoopWatch; pool: ConnectionPool; checkUrl: UrlCheck }

async function sendPost(deps: SendDeps, run: PostRun): Promise<PostResult> {
  const checked = deps.checkUrl(run.request.url)
  if (!checked.ok) return buildFailure(run, 'blocked_address', checked.code.toUpperCase())
  const { url, literal } = checked
  const limitMs = deps.dnsTimeoutMs ?? DNS_TIMEOUT_MS
  const resolution =
    checked.literalResolution ??
    (await resolveTarget(deps, url, { rules: deps.rules, signal: toSignal(run.end), limitMs }))
  if (literal === undefined) run.dnsMs = run.now() - run.startedAt
  if (run.end.reason === 'stop') return buildFailure(run, 'interrupted', 'STOPPED')
  if (!resolution.ok) return buildFailure(run, resolution.errorClass, resolution.errorCode)
  if (run.end.reason === 'stalled') throw new OwnFault('STALLED')
  if (run.end.reason) return buildFailure(run, 'dns', 'DNS_TIMEOUT')
  const target = { origin: url.origin, hostname: literal ?? url.hostname, addresses: resolution.addresses }
  const settling = deps.pool.settle(target)
  if (settling) {
    await settling
    if (run.end.reason === 'stop') return buildFailure(run, 'interrupted', 'STOPPED')
  }
  const connection = deps.pool.take(target)
  return exchange({ pool: deps.pool, connection, path: url.pathname + url.search }, run)
}
