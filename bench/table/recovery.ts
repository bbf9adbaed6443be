import { EVENT_TYPE } from '../api-case.ts'
import { monotonicMs } from '../monotonic.ts'
import { makeSubscribers, openStage } from './stage.ts'
import type { TableRow } from './table-row.ts'

const DELIVERIES = 8
/** Longer than a lease, and than any other wait of the service that could be needed here. */
const LIMIT_MS = 60_000
/** How long to look for POSTs beyond the repeated ones. */
const AFTERWARDS_MS = 2_000

/** How soon another process repeats the POSTs that a killed one had in flight. */
export const recovery: TableRow = {
  name: 'recovery',
  title: `kill -9 of a process with ${DELIVERIES} POSTs in flight while a second process lives`,
  measure: async (testbed, stack) => {
    const stage = await openStage(testbed, stack)
    const { sink, publisher, sinkOrigin } = testbed
    const subscribers = await makeSubscribers(stage, DELIVERIES, (n) => `${sinkOrigin}/hang-once/${n}`)
    const accounts = subscribers.map((subscriber) => subscriber.account)
    const run = testbed.nextRun()
    await sink.ask({ do: 'begin', run, numberedBy: 'event' })
    const { origin, jwt } = stage
    const pace = { batch: DELIVERIES, count: DELIVERIES }
    await publisher.ask({ origin, jwt, eventType: EVENT_TYPE, accounts, run, pace })
    const posted = await sink.ask({ do: 'wait', arrivals: DELIVERIES, repeats: 0, stallMs: LIMIT_MS })
    if (posted.arrivals < DELIVERIES) throw new Error(`only ${posted.arrivals} POSTs arrived before the kill`)
    // Started after all POSTs are in flight, so that the first process makes every one.
    await stage.startSecond({ SIGNALBOX_ROLES: 'api,dispatcher,maintenance' })
    const killedAt = monotonicMs()
    await stage.service.kill()
    await sink.ask({ do: 'wait', arrivals: 0, repeats: DELIVERIES, stallMs: LIMIT_MS })
    const state = await sink.ask({ do: 'wait', arrivals: 0, repeats: DELIVERIES + 1, stallMs: AFTERWARDS_MS })
    const seconds = [...state.againAtMs].filter((at) => at > 0).map((at) => (at - killedAt) / 1000)
    return {
      figures: [
        { what: 'kill to the first repeated POST, s', value: seconds.length > 0 ? Math.min(...seconds) : undefined },
        {
          what: 'kill to the last repeated POST, s',
          value: seconds.length > 0 ? Math.max(...seconds) : undefined,
          goal: { value: { atMost: 5 } },
        },
        { what: 'not repeated', value: DELIVERIES - seconds.length, goal: { value: { atMost: 0 } } },
        {
          what: 'POSTs beyond the second',
          value: state.repeats - seconds.length,
          goal: { value: { atMost: 0 } },
        },
      ],
      notes: ['The receiver answers none of the first POSTs.'],
      reasons: [],
    }
  },
}
