import type { Clock } from '../../base/clock.ts'
import type { IdMaker } from '../../base/id.ts'
import { type ApiClient, ApiError } from './api-client.ts'
import { type EventRow, openEventFeed } from './event-feed.ts'
import { type EventPatterns, findUnmatched } from './event-pattern.ts'
import { buildDelivery, type Delivery, type ForwardResult, forwardDelivery } from './forward.ts'

/** Poll interval for new events. */
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

/** Input of both ways of listening. */
interface SessionInput {
  /** The URL that deliveries are posted to; without it they are only printed. */
  forwardUrl?: string
  /** Prints each envelope as a line of JSON on `out`; the line about it then goes to `note`. */
  printJson: boolean
  /** Ends the session. */
  signal: AbortSignal
}

export interface ListenInput extends SessionInput {
  patterns: EventPatterns
  /** Only events of this account. */
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

/** Prints the line of a delivery. */
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

/**
 * Pulls, prints and forwards the deliveries of a webhook until `signal` aborts, as they are signed. Acknowledges those
 * whose receiver answers a 2xx, and without a receiver all; the others come again by the retry schedule, or with
 * `givesBack` at once. Throws an `ApiError` when the service
 * refuses.
 */
export async function listenByPull(
  deps: ListenDeps,
  input: SessionInput & { webhook: string; givesBack: boolean },
): Promise<void> {
  const { client, note } = deps
  const { webhook, forwardUrl, givesBack, signal } = input
  const path = `/api/v3/webhook/webhook/${webhook}`
  const pull = async (waitSeconds: number) => {
    const body = { max: CONCURRENCY, wait_seconds: waitSeconds }
    return (await client.call<{ deliveries: PulledDelivery[] }>('POST', `${path}/pull`, body)).data.deliveries
  }
  const settle = async (action: 'ack' | 'nack', deliveries: readonly PulledDelivery[]) => {
    const receipts = deliveries.map(({ receipt }) => receipt)
    if (receipts.length > 0)
      await readPatiently(deps, () => client.call('POST', `${path}/${action}`, { receipts }).then(() => []), signal)
  }
  const forwarding = forwardUrl === undefined ? '' : ` Forwarding to ${forwardUrl}, signed with its secret.`
  let first: PulledDelivery[] | undefined = await pull(0)
  note(`Pulling the deliveries of the webhook ${webhook} from ${client.url}.${forwarding}`)
  while (!signal.aborted) {
    const pulled = first ?? (await readPatiently(deps, () => pull(PULL_WAIT_SECONDS), signal))
    first = undefined
    const done = await Promise.all(pulled.map((delivery) => passOn(deps, delivery, input)))
    await settle(
      'ack',
      pulled.filter((_, index) => done[index]),
    )
    if (givesBack)
      await settle(
        'nack',
        pulled.filter((_, index) => !done[index]),
      )
  }
}

/** Forwards and prints one pulled delivery. Returns whether it is done. */
async function passOn(deps: ListenDeps, delivery: PulledDelivery, input: SessionInput): Promise<boolean> {
  const { forwardUrl, signal } = input
  const { body, headers } = delivery
  const result =
    forwardUrl === undefined ? undefined : await forwardDelivery(deps, { body, headers }, { url: forwardUrl, signal })
  if (signal.aborted) return false
  report(deps, input, { delivery, event: headers['x-service-event'] ?? '', id: delivery.id, result })
  return result?.isSuccess ?? true
}
