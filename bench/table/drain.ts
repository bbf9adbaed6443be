import { EVENT_TYPE } from '../api-case.ts'
import { readPeakMemoryMb } from '../process-times.ts'
import { measureBatches } from './batches.ts'
import type { DeliveryCost } from './delivery-cost.ts'
import { fillBacklog } from './ledger-fill.ts'
import { SUBSCRIBERS } from './saturation.ts'
import { makeSubscribers, openStage, withClient } from './stage.ts'
import { meterWork, STALL_MS } from './stage-load.ts'
import type { Testbed } from './testbed.ts'

/** A backlog and who works on it. */
export interface DrainOptions {
  /** Deliveries that are due. */
  count: number
  /** Processes that dispatch. */
  processes: 1 | 2
  /** Events recorded by the batch before, to warm up and to compare with. */
  batchCount: number
  /** Reaction of the sink to a delivery: the first part of its path. */
  behaviour: string
  environment?: Record<string, string>
}

/** Result of a drain. */
export interface Drain extends DeliveryCost {
  /** Deliveries a second from the first arrival to the last. */
  perSecond: number
  /** Deliveries a second of the batch before, from the first request to the last arrival. */
  batchPerSecond: number
  lost: number
  duplicates: number
  /** The most memory the first process had resident, MB. */
  peakMemoryMb: number | undefined
}

/** Writes due rows under running processes, 50 webhooks in turn, and measures until all of them arrived. */
export async function measureDrain(
  testbed: Testbed,
  parent: AsyncDisposableStack,
  options: DrainOptions,
): Promise<Drain> {
  const { count, processes, batchCount, behaviour, environment = {} } = options
  await using stack = parent.use(new AsyncDisposableStack())
  const stage = await openStage(testbed, stack, { environment })
  if (processes === 2) await stage.startSecond({ SIGNALBOX_ROLES: 'api,dispatcher' })
  const urlOf = (n: number) => `${testbed.sinkOrigin}/${behaviour}/${n}`
  const subscribers = await makeSubscribers(stage, SUBSCRIBERS, urlOf)
  const accounts = subscribers.map((subscriber) => subscriber.account)
  const batch = await measureBatches(stage, accounts, batchCount)
  const { result, cost } = await meterWork(stage, async () => {
    const run = testbed.nextRun()
    await testbed.sink.ask({ do: 'begin', run, numberedBy: 'event' })
    await withClient(stage.connectionString, (client) =>
      fillBacklog(client, { count, run, eventType: EVENT_TYPE, subscribers }),
    )
    return testbed.sink.ask({ do: 'wait', arrivals: count, repeats: 0, stallMs: STALL_MS })
  })
  const arrivedAtMs = result.firstAtMs.filter((at) => at > 0).sort()
  const seconds = ((arrivedAtMs.at(-1) ?? 0) - (arrivedAtMs[0] ?? 0)) / 1000
  return {
    ...cost,
    delivered: result.arrivals,
    perSecond: seconds > 0 ? (result.arrivals - 1) / seconds : 0,
    batchPerSecond: batch.perSecond,
    lost: count - result.arrivals,
    duplicates: result.repeats,
    peakMemoryMb: await readPeakMemoryMb(stage.pid),
  }
}
