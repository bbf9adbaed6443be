import type { Envelope } from './envelope.ts'
import type { SecretInput } from './secret.ts'
import { verifyDelivery } from './verify-delivery.ts'

export { WebhookVerificationError } from './verification-error.ts'

/** A delivery under a lease (docs/contract/pull.md#pull). */
export type PulledDelivery = {
  readonly id: string
  /** Names this attempt in an acknowledgement. */
  readonly receipt: string
  /** The number of this attempt, from 1. */
  readonly attempt: number
  /** The end of the lease, ISO 8601. */
  readonly lease_until: string
  readonly headers: Readonly<Record<string, string>>
  /** The raw body that is signed. */
  readonly body: string
}

/** The lease of a delivery that is being handled. */
export type PullLease = {
  /**
   * Extends the lease to `leaseSeconds` (10 to 600, default that of the loop) from now, an hour after the pull at most.
   * Returns its end, ISO 8601. Rejects with a `PullError`: of the code `lease_expired` when it had ended.
   */
  readonly extend: (leaseSeconds?: number) => Promise<string>
  /**
   * Gives the delivery back: it is due at once, five attempts in all, and not acknowledged when `onDelivery` returns.
   * Rejects like `extend`.
   */
  readonly nack: () => Promise<void>
}

/** Options of a loop of pulls. */
export type PullOptions = {
  /** Origin of the service: `https://signalbox.example.com`. */
  readonly baseUrl: string
  /** An API key with the permission `webhook:pull`. */
  readonly token: string
  /** The id of a webhook of the mode `pull`. */
  readonly webhook: string
  readonly secret: SecretInput
  /** Handles a genuine delivery, which is acknowledged when it returns. If it throws, the delivery comes again by the retry schedule. */
  readonly onDelivery: (envelope: Envelope, delivery: PulledDelivery, lease: PullLease) => unknown
  /** Ends the loop: what is handled is finished and acknowledged first. */
  readonly signal?: AbortSignal | undefined
  /** Deliveries handled at once, 1 to 100. Default 10. */
  readonly concurrency?: number | undefined
  /** Length of a lease, 10 to 600: longer than `onDelivery` takes. Default 60. */
  readonly leaseSeconds?: number | undefined
  /** How long a pull waits for a delivery, 0 to 30. Default 20. */
  readonly waitSeconds?: number | undefined
  /**
   * Reports what went wrong: a delivery that was not genuine, not handled, or not acknowledged, with it; a call that is
   * made again, without one. Default: nothing.
   */
  readonly onError?: ((error: unknown, delivery?: PulledDelivery) => void) | undefined
  /** Default: the `fetch` of the runtime. */
  readonly fetch?: typeof fetch | undefined
}

/** A call that the service refused, or did not answer. */
export class PullError extends Error {
  /** The status of the answer; undefined without one. */
  readonly status: number | undefined
  /** The code of the problem (docs/contract/api.md#errors); `lease_expired` for a lease that ended before its acknowledgement. */
  readonly code: string | undefined
  /** The delay of `Retry-After`. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, facts: { status?: number; code?: string; retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, { cause: facts.cause })
    this.name = 'PullError'
    this.status = facts.status
    this.code = facts.code
    this.retryAfterMs = facts.retryAfterMs
  }

  /** Whether the same call may succeed later: no answer, too many calls, a fault of the service, an inactive webhook. */
  get isTemporary(): boolean {
    return this.status === undefined || this.status === 429 || this.status >= 500 || this.code === 'webhook_inactive'
  }
}

/** Time to answer beside the wait, and delays after a failed call: doubled from the first to the last. */
const ANSWER_LIMIT_MS = 15_000
const FIRST_DELAY_MS = 1_000
const LAST_DELAY_MS = 30_000

/**
 * Pulls deliveries, verifies each, calls `onDelivery` and acknowledges it, until `signal` aborts. Calls that fail for a
 * time are made again with growing delays; rejects with a `PullError` when the service refuses: a wrong token, no
 * permission, no such webhook.
 */
export async function pullDeliveries(options: PullOptions): Promise<void> {
  const { signal, concurrency = 10, leaseSeconds = 60, waitSeconds = 20, onError } = options
  const running = new Set<Promise<void>>()
  let failures = 0
  while (!signal?.aborted) {
    if (running.size >= concurrency) {
      await Promise.race(running)
      continue
    }
    const max = Math.min(100, concurrency - running.size)
    // With deliveries in hand a pull does not wait: their end makes room for more.
    const body = { max, lease_seconds: leaseSeconds, wait_seconds: running.size > 0 ? 0 : waitSeconds }
    let pulled: readonly PulledDelivery[]
    try {
      const limitMs = waitSeconds * 1_000 + ANSWER_LIMIT_MS
      const data = await call<{ deliveries: readonly PulledDelivery[] }>(options, 'pull', { body, limitMs, signal })
      pulled = data.deliveries
      failures = 0
    } catch (error) {
      if (signal?.aborted) break
      if (!(error instanceof PullError) || !error.isTemporary) {
        await Promise.all(running)
        throw error
      }
      onError?.(error)
      failures += 1
      await sleep(findDelay(error, failures), signal)
      continue
    }
    for (const delivery of pulled) {
      const run = handle(options, delivery).finally(() => running.delete(run))
      running.add(run)
    }
    if (pulled.length === 0 && running.size > 0) await Promise.race([...running, sleep(FIRST_DELAY_MS, signal)])
  }
  await Promise.all(running)
}

/** Handles one delivery. Never rejects. */
async function handle(options: PullOptions, delivery: PulledDelivery): Promise<void> {
  try {
    const { headers, body } = delivery
    const envelope = await verifyDelivery({ headers, body, secret: options.secret })
    const lease = openLease(options, delivery)
    await options.onDelivery(envelope, delivery, lease)
    if (!lease.isGivenBack())
      await changeLease(options, { action: 'ack', receipt: delivery.receipt, until: lease.until })
  } catch (error) {
    options.onError?.(error, delivery)
  }
}

function openLease(
  options: PullOptions,
  { receipt, lease_until: first }: PulledDelivery,
): PullLease & { until: () => string; isGivenBack: () => boolean } {
  let end = first
  let isGivenBack = false
  const until = () => end
  return {
    until,
    isGivenBack: () => isGivenBack,
    extend: async (leaseSeconds = options.leaseSeconds ?? 60) => {
      const more = { lease_seconds: leaseSeconds }
      const { lease_until: later } = await changeLease(options, { action: 'extend', receipt, until, more })
      end = later ?? end
      return end
    },
    nack: async () => {
      await changeLease(options, { action: 'nack', receipt, until })
      isGivenBack = true
    },
  }
}

/** The status of a receipt whose change was made. */
const DONE = { ack: 'acknowledged', nack: 'returned', extend: 'extended' } as const

/** Makes a change of one lease, and repeats that until the lease ends: a repeat answers the same. */
async function changeLease(
  options: PullOptions,
  { action, receipt, until, more }: { action: keyof typeof DONE; receipt: string; until: () => string; more?: object },
): Promise<{ lease_until?: string | null }> {
  for (let failures = 1; ; failures += 1) {
    try {
      const body = { receipts: [receipt], ...more }
      const { receipts } = await call<{ receipts: { status: string; lease_until?: string | null }[] }>(
        options,
        action,
        {
          body,
          limitMs: ANSWER_LIMIT_MS,
        },
      )
      if (receipts[0]?.status === DONE[action]) return receipts[0]
      throw new PullError(`The lease ended before the ${action}: the delivery comes again, or was settled.`, {
        status: 200,
        code: 'lease_expired',
      })
    } catch (error) {
      if (!(error instanceof PullError) || !error.isTemporary) throw error
      const delayMs = findDelay(error, failures)
      if (Date.now() + delayMs >= Date.parse(until())) throw error
      await sleep(delayMs)
    }
  }
}

async function call<Data>(
  { baseUrl, token, webhook, fetch: send = fetch }: PullOptions,
  action: 'pull' | keyof typeof DONE,
  { body, limitMs, signal }: { body: object; limitMs: number; signal?: AbortSignal | undefined },
): Promise<Data> {
  const limit = AbortSignal.timeout(limitMs)
  let response: Response
  let content: { data?: unknown; code?: unknown; detail?: unknown }
  try {
    response = await send(`${baseUrl.replace(/\/$/, '')}/api/v3/webhook/webhook/${webhook}/${action}`, {
      method: 'POST',
      // A redirect would send the token to another URL.
      redirect: 'error',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    })
    content = await response.json()
  } catch (cause) {
    throw new PullError(`The service did not answer the ${action}.`, { cause })
  }
  if (response.ok) return content.data as Data
  const { code, detail } = content
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  throw new PullError(
    typeof detail === 'string' ? detail : `The service answered ${response.status} to the ${action}.`,
    {
      status: response.status,
      ...(typeof code === 'string' && { code }),
      ...(Number.isFinite(retryAfter) && { retryAfterMs: retryAfter * 1_000 }),
    },
  )
}

function findDelay({ retryAfterMs }: PullError, failures: number): number {
  return retryAfterMs ?? Math.min(LAST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1))
}

/** Resolves after `ms`, or when `signal` aborts. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end, { once: true })
  })
}
