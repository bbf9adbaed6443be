import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { MessageResult } from './outcome.ts'
import type { ProviderClient } from './provider-client.ts'
import type { ProviderVerdict } from './provider-outcome.ts'

/** Maximum number of items in one call (documentation of Pusher Channels, "HTTP API reference", batch events). */
const BATCH_ITEMS = 10

const CALLS_AT_ONCE = 8

export interface BatchItem {
  channel: string
  name: string
  /** JSON text. */
  data: string
}

export interface Publication {
  /** The account, whose messages are sent in the order of their arrival. */
  group: string
  items: readonly BatchItem[]
}

export interface PublicationResult {
  result: MessageResult | { kind: 'own_fault'; fault: OwnFault }
  durationMs: number
}

export interface Publisher {
  /** Never rejects. */
  publish(publication: Publication): Promise<PublicationResult>
  /** Resumes the messages of these accounts, once the unpublished ones are recorded. */
  resume(groups: Iterable<string>): void
  /** Aborts the calls in flight; waiting messages are not sent. */
  interrupt(): void
}

export interface PublisherDeps {
  client: Pick<ProviderClient, 'send'>
  /** Monotonic milliseconds. */
  now: () => number
  onOutcome?: (outcome: ProviderVerdict) => void
}

interface Waiting extends Publication {
  resolve: (result: PublicationResult) => void
}

/** Builds the publisher: one call of an account at a time. Behind an unpublished message others are `held`. */
export function buildPublisher(deps: PublisherDeps): Publisher {
  const interrupting = new AbortController()
  let waiting: Waiting[] = []
  let calls = 0
  let isPlanned = false
  const busy = new Set<string>()
  const held = new Set<string>()

  function holdBack(groups: ReadonlySet<string>): void {
    for (const group of groups) held.add(group)
    const behind = waiting.filter((waiter) => groups.has(waiter.group))
    waiting = waiting.filter((waiter) => !groups.has(waiter.group))
    for (const publication of behind) publication.resolve({ result: { kind: 'held' }, durationMs: 0 })
  }

  async function call(batch: readonly Waiting[]): Promise<void> {
    const { result, durationMs } = await send(batch)
    const isRefusal = result.kind === 'rejected' && !result.isRetryable
    // One refused item must not fail the others.
    if (isRefusal && batch.length > 1) {
      for (const publication of batch) {
        if (held.has(publication.group)) publication.resolve({ result: { kind: 'held' }, durationMs: 0 })
        else await call([publication])
      }
      return
    }
    if (result.kind !== 'ok' && !isRefusal) holdBack(new Set(batch.map((entry) => entry.group)))
    for (const publication of batch) publication.resolve({ result, durationMs })
  }

  async function send(batch: readonly Waiting[]): Promise<PublicationResult> {
    const startedAt = deps.now()
    const body = JSON.stringify({ batch: batch.flatMap((entry) => entry.items) })
    const request = { method: 'POST', path: '/batch_events', body } as const
    const outcome = await deps.client.send(request, { signal: interrupting.signal })
    const durationMs = deps.now() - startedAt
    if (outcome.kind === 'own_fault') return { result: outcome, durationMs }
    if (interrupting.signal.aborted && outcome.kind === 'failed') return { result: { kind: 'interrupted' }, durationMs }
    deps.onOutcome?.(outcome)
    return { result: outcome, durationMs }
  }

  function run(): void {
    isPlanned = false
    while (calls < CALLS_AT_ONCE && !interrupting.signal.aborted) {
      const { batch, rest } = takeBatch(waiting, busy)
      if (batch.length === 0) return
      waiting = rest
      calls += 1
      for (const publication of batch) busy.add(publication.group)
      void call(batch).finally(() => {
        calls -= 1
        for (const publication of batch) busy.delete(publication.group)
        run()
      })
    }
  }

  return {
    publish: (publication) =>
      new Promise((resolve) => {
        if (interrupting.signal.aborted) return resolve({ result: { kind: 'interrupted' }, durationMs: 0 })
        if (held.has(publication.group)) return resolve({ result: { kind: 'held' }, durationMs: 0 })
        waiting.push({ ...publication, resolve })
        // Messages of one turn of the event loop are sent together.
        if (!isPlanned) queueMicrotask(run)
        isPlanned = true
      }),
    resume: (groups) => {
      for (const group of groups) held.delete(group)
    },
    interrupt: () => {
      interrupting.abort()
      for (const publication of waiting.splice(0))
        publication.resolve({ result: { kind: 'interrupted' }, durationMs: 0 })
    },
  }
}

/** The next call: messages in order, up to ten items, none before an earlier one of its account. Pure. */
export function takeBatch<One extends Publication>(
  waiting: readonly One[],
  busy: ReadonlySet<string>,
): { batch: One[]; rest: One[] } {
  const batch: One[] = []
  const rest: One[] = []
  const passed = new Set(busy)
  let items = 0
  for (const publication of waiting) {
    const isTaken = !passed.has(publication.group) && items + publication.items.length <= BATCH_ITEMS
    if (isTaken) items += publication.items.length
    else passed.add(publication.group)
    ;(isTaken ? batch : rest).push(publication)
  }
  return { batch, rest }
}
