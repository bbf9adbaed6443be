import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { decideVerdict, NOTHING_SEEN, type OutcomeSource, observe, type Verdict } from '../authorization/verdict.ts'
import { makeMessagesDue } from '../delivery/settle.store.ts'
import type { ProviderClient } from '../provider/provider-client.ts'
import type { ProviderVerdict } from '../provider/provider-outcome.ts'
import { removeWatch, saveWatch } from './watch.store.ts'

/** Time between two probes (docs/contract/realtime.md#health-probe). */
export const PROBE_EVERY_MS = 30_000

const PROBE_TIMEOUT_MS = 2_000

/** A prefix that no channel has, so that the answer of a probe is short. */
const NO_CHANNEL = 'signalbox-probe-'

/** Watches the provider, by a probe and by the outcomes of publishes. */
export interface Watch {
  note(outcome: ProviderVerdict, source: OutcomeSource): void
  probe(): Promise<Verdict>
  read(): Verdict
  run(): Promise<void>
  stop(): Promise<void>
}

export interface WatchDeps {
  db: Database
  clock: Clock
  logger: Logger
  workerId: string
  client: Pick<ProviderClient, 'send'>
  /** Runs when the provider answers again: messages that waited for it are due now. */
  onRecovered: () => void
  /** Runs for each probe that this process could not make, for metrics. */
  onOwnFault?: ((fault: OwnFault) => void) | undefined
  /** Runs with each outcome, for metrics. */
  onOutcome?: (outcome: ProviderVerdict, source: OutcomeSource) => void
}

/** Builds the watch. The verdict is stored for the health of all processes, with each probe and when it changes. */
export function buildWatch(deps: WatchDeps): Watch {
  const { db, clock, logger, workerId, client } = deps
  const stopping = new AbortController()
  let seen = NOTHING_SEEN
  let changed = Promise.withResolvers<void>()
  let wasDown = false

  const now = () => new Date(clock.now())
  const read = () => decideVerdict(seen, now())

  function note(outcome: ProviderVerdict, source: OutcomeSource): void {
    deps.onOutcome?.(outcome, source)
    const before = read().status
    seen = observe(seen, outcome, { source, now: now() })
    if (outcome.kind === 'failed') wasDown = true
    const { status } = read()
    if (status === before && !(wasDown && outcome.kind === 'ok')) return
    if (status !== before)
      logger.warn({ status, ...describe(outcome) }, 'realtime provider: see docs/operations.md, realtime')
    changed.resolve()
  }

  async function save(): Promise<Verdict> {
    const verdict = read()
    await saveWatch(db, { workerId, verdict, now: now() })
    if (wasDown && seen.conclusive.at(-1)?.isSuccess) {
      await makeMessagesDue(db, { now: now() })
      wasDown = false
      deps.onRecovered()
    }
    return verdict
  }

  async function probe(): Promise<Verdict> {
    const query = { filter_by_prefix: NO_CHANNEL }
    const outcome = await client.send({ method: 'GET', path: '/channels', query }, { timeoutMs: PROBE_TIMEOUT_MS })
    if (outcome.kind === 'own_fault') {
      // The outcome does not concern the provider: the verdict is unchanged.
      deps.onOwnFault?.(outcome.fault)
      logger.error(
        { err: outcome.fault, code: outcome.fault.code },
        'realtime provider not probed for a fault of this process: see docs/operations.md, own faults',
      )
      return save()
    }
    note(isListOfChannels(outcome) ? outcome : { kind: 'failed', statusCode: 200, errorClass: 'protocol' }, 'probe')
    return save()
  }

  async function run(): Promise<void> {
    let probedAtMs = Number.NEGATIVE_INFINITY
    while (!stopping.signal.aborted) {
      changed = Promise.withResolvers()
      try {
        const isDue = Math.abs(clock.now() - probedAtMs) >= PROBE_EVERY_MS
        if (isDue) probedAtMs = clock.now()
        await (isDue ? probe() : save())
      } catch (error) {
        logger.error({ err: error }, 'state of the realtime provider not stored: see docs/operations.md, database')
      }
      const sleep = new AbortController()
      const untilMs = Math.max(0, probedAtMs + PROBE_EVERY_MS - clock.now())
      await Promise.race([changed.promise, clock.sleep(Math.min(untilMs, PROBE_EVERY_MS), sleep.signal)])
      sleep.abort('over')
    }
  }

  return {
    note,
    probe,
    read,
    run,
    stop: async () => {
      stopping.abort()
      changed.resolve()
      await removeWatch(db, { workerId }).catch(() => {})
    },
  }
}

/** Whether the answer has the requested channels. A server with another answer lacks the capability. */
function isListOfChannels(outcome: ProviderVerdict): boolean {
  return outcome.kind !== 'ok' || (typeof outcome.body.channels === 'object' && outcome.body.channels !== null)
}

function describe(outcome: ProviderVerdict): { error: string | null; status_code: number | null } {
  if (outcome.kind === 'ok') return { error: null, status_code: 200 }
  return { error: outcome.errorClass, status_code: outcome.statusCode }
}
