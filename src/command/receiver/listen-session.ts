import type { Clock } from '../../base/clock.ts'
import type { IdMaker } from '../../base/id.ts'
import { type ApiClient, ApiError } from './api-client.ts'
import { type EventRow, openEventFeed } from './event-feed.ts'
import { type EventPatterns, findUnmatched } from './event-pattern.ts'
import { buildDelivery, type Delivery, type ForwardResult, forwardDelivery } from './forward.ts'

const POLL_MS = 500
/** Delay after a failed poll, unless the service asks for more. */
const RECONNECT_MS = 2_000
/** Limit of deliveries in flight. A hanging receiver delays others only when that many hang. */
const CONCURRENCY = 16

/** Dependencies of listening. `out` prints a line about an event, `note` a line about the session. */
export interface ListenDeps {
  client: ApiClient
  clock: Clock
  ids: IdMaker
  out: (line: string) => void
  note: (line: string) => void
}

interface SessionInput {
  /** The URL that deliveries are posted to; without it they are only printed. */
  forwardUrl?: string
  /** Prints each envelope as a line of JSON on `out`; the line about it then goes to `note`. */
  printJson: boolean
  signal: AbortSignal
}

export interface ListenInput extends SessionInput {
  patterns: EventPatterns
  account?: string
  secret: string
  /** Whether the secret was generated for this session: then it is printed. */
  isSecretNew: boolean
}

/**
 * Prints, and forwards, every event from now on until `signal` aborts. Reports a lost connection once and reconnects;
 * events in between follow. Throws an `ApiError` when the service is unreachable at the start, or refuses.
 */
export async function listen(deps: ListenDeps, input: ListenInput): Promise<void> {
  const { client, note } = deps
  const { patterns, account, signal } = input
  const filters = [...patterns.filters, ...(account === undefined ? [] : [`account|eq|${account}`])]
  const feed = await openEventFeed(deps, filters)
  for (const text of await findUnknownPatterns(client, patterns)) note(`No event type matches ${text} yet.`)
  note(describeStart(client, input))
  const running = new Set<Promise<void>>()
  while (!signal.aborted) {
    const rows = await readPatiently(deps, () => feed.readNew(), signal)
    for (const row of rows) {
      if (!patterns.matches(row.event)) continue
      if (running.size >= CONCURRENCY) await Promise.race(running)
      if (signal.aborted) break
      const run = deliver(deps, row, input).finally(() => running.delete(run))
      running.add(run)
    }
    await deps.clock.sleep(POLL_MS, signal)
  }
  await Promise.all(running)
}

function describeStart({ url }: ApiClient, { forwardUrl, secret, isSecretNew }: ListenInput): string {
  const start = `Listening for events of ${url}.`
  if (forwardUrl === undefined) return start
  return `${start} Forwarding to ${forwardUrl}, signed with ${isSecretNew ? secret : 'the given secret'}`
}

/** Optional: a token without the permission to read event types can still listen. */
async function findUnknownPatterns(client: ApiClient, patterns: EventPatterns): Promise<string[]> {
  if (patterns.texts.length === 0) return []
  try {
    const eventTypes = await client.listAll<{ internal: string }>('/api/v3/webhook/event', { sort: 'internal' })
    return findUnmatched(
      patterns,
      eventTypes.map((row) => row.internal),
    )
  } catch (error) {
    if (error instanceof ApiError && error.code === 'permission_denied') return []
    throw error
  }
}

/** Reads what is new, and retries until the service answers; nothing when `signal` aborts. */
async function readPatiently<Row>(
  deps: ListenDeps,
  readNew: () => Promise<Row[]>,
  signal: AbortSignal,
): Promise<Row[]> {
  let isLost = false
  while (!signal.aborted) {
    try {
      const rows = await readNew()
      if (isLost) deps.note('The service is reachable again.')
      return rows
    } catch (error) {
      if (signal.aborted) break
      if (!(error instanceof ApiError) || error.kind === 'refused') throw error
      if (!isLost) deps.note(`${error.message} Retrying; no event is lost.`)
      isLost = true
      await deps.clock.sleep(error.retryAfterMs ?? RECONNECT_MS, signal)
    }
  }
  return []
}

async function deliver(deps: ListenDeps, row: EventRow, input: ListenInput): Promise<void> {
  const { forwardUrl, signal } = input
  const delivery = buildDelivery(deps, row, input.secret)
  const result =
    forwardUrl === undefined ? undefined : await forwardDelivery(deps, delivery, { url: forwardUrl, signal })
  if (!signal.aborted) report(deps, input, { delivery, event: row.event, id: row.document_id, result })
}

function report(
  deps: ListenDeps,
  { printJson }: SessionInput,
  done: { delivery: Delivery; event: string; id: string; result: ForwardResult | undefined },
): void {
  const { delivery, event, id, result } = done
  const parts = [new Date(deps.clock.now()).toISOString(), event.padEnd(24), id]
  if (result) parts.push(result.text, `${result.durationMs} ms`)
  const line = parts.join('  ')
  deps.out(printJson ? delivery.body : line)
  if (printJson) deps.note(line)
}

/** A delivery as a pull answers it (docs/contract/pull.md#pull). */
interface PulledDelivery extends Delivery {
  id: string
  receipt: string
}

/** Wait of a pull, within the time limit of a call. */
const PULL_WAIT_SECONDS = 20
/** Length of a lease and of each extension: short, so that another consumer soon gets what a killed process had. */
const LEASE_SECONDS = 30
/** Interval between extensions: two of them may fail before a lease ends. */
const EXTEND_MS = 10_000
/** Time limit of the receiver: less than a lease may last in all (docs/contract/pull.md#extension). */
const PULLED_LIMIT_MS = 3_540_000

interface PullInput extends SessionInput {
  webhook: string
  /** Gives back at once what the receiver does not answer with a 2xx. */
  givesBack: boolean
}

/** A session of pulls, with the deliveries whose leases it holds; an answered one has a success that is to be acknowledged. */
interface PullSession {
  deps: ListenDeps
  input: PullInput
  held: Map<PulledDelivery, 'open' | 'answered'>
}

/**
 * Pulls, prints and forwards the deliveries of a webhook until `signal` aborts, as they are signed, and extends their
 * leases while the receiver works. Acknowledges those whose receiver answers a 2xx, and without a receiver all; the
 * others come again by the retry schedule, or with `givesBack` at once. At the end `lastClient`, which `signal` does not
 * interrupt, gives back what the receiver has not answered. Throws an `ApiError` when the service refuses.
 */
export async function listenByPull(deps: ListenDeps & { lastClient: ApiClient }, input: PullInput): Promise<void> {
  const { client, note } = deps
  const { webhook, forwardUrl, signal } = input
  const failed = new AbortController()
  const session: PullSession = {
    deps,
    input: { ...input, signal: AbortSignal.any([signal, failed.signal]) },
    held: new Map(),
  }
  const forwarding = forwardUrl === undefined ? '' : ` Forwarding to ${forwardUrl}, signed with its secret.`
  let first: PulledDelivery[] | undefined = await pull(session, { max: CONCURRENCY, waitSeconds: 0 })
  note(`Pulling the deliveries of the webhook ${webhook} from ${client.url}.${forwarding}`)
  const running = new Set<Promise<void>>()
  const run = (work: Promise<void>) => work.catch((error: unknown) => failed.abort(error))
  const extending = run(keepExtending(session))
  try {
    while (!session.input.signal.aborted) {
      if (running.size >= CONCURRENCY) await Promise.race(running)
      const asked = { max: CONCURRENCY - running.size, waitSeconds: PULL_WAIT_SECONDS }
      const pulled = first ?? (await readPatiently(deps, () => pull(session, asked), session.input.signal))
      first = undefined
      for (const delivery of pulled) {
        session.held.set(delivery, 'open')
        const work: Promise<void> = run(handle(session, delivery)).finally(() => running.delete(work))
        running.add(work)
      }
    }
  } finally {
    failed.abort()
    await Promise.all([...running, extending])
    await settleLast(session, deps.lastClient)
  }
  if (!signal.aborted) throw failed.signal.reason
}

async function pull({ deps, input }: PullSession, asked: { max: number; waitSeconds: number }) {
  const body = { max: asked.max, wait_seconds: asked.waitSeconds, lease_seconds: LEASE_SECONDS }
  const path = `/api/v3/webhook/webhook/${input.webhook}/pull`
  return (await deps.client.call<{ deliveries: PulledDelivery[] }>('POST', path, body)).data.deliveries
}

async function settle(
  { input }: PullSession,
  client: ApiClient,
  { action, deliveries }: { action: 'ack' | 'nack' | 'extend'; deliveries: readonly PulledDelivery[] },
): Promise<void> {
  if (deliveries.length === 0) return
  const receipts = deliveries.map(({ receipt }) => receipt)
  const body = { receipts, ...(action === 'extend' && { lease_seconds: LEASE_SECONDS }) }
  await client.call('POST', `/api/v3/webhook/webhook/${input.webhook}/${action}`, body)
}

/** Forwards, prints and settles one delivery. What the end interrupts stays held. */
async function handle(session: PullSession, delivery: PulledDelivery): Promise<void> {
  const { deps, input, held } = session
  const { forwardUrl, givesBack, signal } = input
  const { body, headers } = delivery
  const target = forwardUrl === undefined ? undefined : { url: forwardUrl, signal, limitMs: PULLED_LIMIT_MS }
  const result = target && (await forwardDelivery(deps, { body, headers }, target))
  const isDone = result?.isSuccess ?? true
  if (signal.aborted && !(result && isDone)) return
  if (isDone) held.set(delivery, 'answered')
  report(deps, input, { delivery, event: headers['x-service-event'] ?? '', id: delivery.id, result })
  const action = isDone ? 'ack' : 'nack'
  if (isDone || givesBack)
    await readPatiently(
      deps,
      () => settle(session, deps.client, { action, deliveries: [delivery] }).then(() => []),
      signal,
    )
  if (!signal.aborted) held.delete(delivery)
}

async function keepExtending(session: PullSession): Promise<void> {
  const { deps, input, held } = session
  while (!input.signal.aborted) {
    await deps.clock.sleep(EXTEND_MS, input.signal)
    if (input.signal.aborted) return
    try {
      await settle(session, deps.client, { action: 'extend', deliveries: [...held.keys()] })
    } catch (error) {
      if (input.signal.aborted) return
      if (!(error instanceof ApiError) || error.kind === 'refused') throw error
      // The next call comes before the leases end; `pull` tells of a lost connection.
    }
  }
}

/** Acknowledges at the end what the receiver has, and gives the rest back: it comes again at once, also elsewhere. */
async function settleLast(session: PullSession, client: ApiClient): Promise<void> {
  const held = [...session.held]
  const listOf = (state: 'open' | 'answered') => held.flatMap(([delivery, is]) => (is === state ? [delivery] : []))
  try {
    await settle(session, client, { action: 'ack', deliveries: listOf('answered') })
    await settle(session, client, { action: 'nack', deliveries: listOf('open') })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    session.deps.note(`${error.message} The leases of ${held.length} deliveries end within ${LEASE_SECONDS} s.`)
  }
}
