import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { systemClock } from '../../src/base/clock.ts'
import { buildIdMaker } from '../../src/base/id.ts'
import { systemRandom } from '../../src/base/random.ts'
import type { OpenBus } from '../../src/carriage/bus/bus.ts'
import { buildNatsBus } from '../../src/carriage/nats/nats-bus.ts'
import { parseNatsUrl } from '../../src/carriage/nats/nats-url.ts'
import { openDatabase } from '../../src/postgres/statement/database.ts'
import { buildFleet, type Fleet } from '../../src/realtime/embedded/fleet/fleet.ts'
import { answerParent } from '../child-process.ts'
import { monotonicMs } from '../monotonic.ts'

/** One of the processes of the embedded realtime server, without its sockets: what they send each other is measured. */

/** Next command of the process. */
export type MemberQuestion =
  | { do: 'join'; connectionString: string; nats: string | undefined; peers: number }
  /** Publishes at a steady rate, and waits until what the others published has arrived, some seconds at most. */
  | { do: 'run'; perSecond: number; seconds: number; expected: number }

/** Measurement. */
export interface MemberAnswer {
  sent: number
  /** Time in which they were sent. */
  ms: number
  /** From the call of the sender to the arrival here. */
  latenciesMs: Float64Array
  cpuMs: number
}

/** Time after which a message that is still missing has not kept up. */
const ARRIVAL_LIMIT_MS = 10_000

/** Publications that wait for their confirmation at most: a publisher of HTTP waits for its answer. */
const IN_FLIGHT = 256

const FILLER = 'x'.repeat(300)

let fleet: Fleet
let latencies: number[] = []
let peers = 0

async function join(question: Extract<MemberQuestion, { do: 'join' }>): Promise<void> {
  const { connectionString, nats } = question
  const database = openDatabase({ connectionString, size: 4, applicationName: 'bench', onError: () => {} })
  const openBus: OpenBus | undefined = nats
    ? (id, callbacks) =>
        buildNatsBus({
          ...{ settings: { ...parseNatsUrl(nats), tls: {} }, subject: 'bench', id, keys: [Buffer.alloc(32)] },
          ...{ ...callbacks, onFailed: (error) => console.error(error.message) },
        })
    : undefined
  fleet = buildFleet({
    ...{ id: buildIdMaker(systemClock, systemRandom).next<'process'>(), db: database.db, connectionString, openBus },
    ...{ clock: systemClock, isTrusted: () => true, logger: pino({ level: 'error' }) },
    onMessage: (_process, message) => {
      if (message.kind === 'publish') latencies.push(monotonicMs() - Number(message.events[0]?.event))
    },
    onPeer: () => {
      peers += 1
    },
    onPeerGone: () => {
      peers -= 1
    },
    ...{ onLost: () => {}, onBeat: () => {}, countConnections: () => 0 },
  })
  void fleet.run()
  await fleet.joined
  while (peers < question.peers || (nats && !fleet.isOnBus())) await sleep(20)
  // The others know by their next look that this one is on the bus.
  await sleep(2_000)
}

async function run({ perSecond, seconds, expected }: Extract<MemberQuestion, { do: 'run' }>): Promise<number> {
  const total = perSecond * seconds
  const startMs = monotonicMs()
  const waiting = new Set<Promise<void>>()
  for (let n = 0; n < total; ) {
    const due = Math.min(total, Math.floor(((monotonicMs() - startMs) * perSecond) / 1000))
    for (; n < due; n += 1) {
      const event = { event: monotonicMs().toFixed(4), channels: ['c'], data: FILLER, source: 'api' as const }
      const sent = fleet.send({ kind: 'publish', app: 'bench', events: [event] })
      waiting.add(sent)
      void sent.finally(() => waiting.delete(sent))
      if (waiting.size >= IN_FLIGHT) await Promise.race(waiting)
    }
    await sleep(1)
  }
  await Promise.all(waiting)
  const ms = monotonicMs() - startMs
  const endAt = monotonicMs() + ARRIVAL_LIMIT_MS
  while (latencies.length < expected && monotonicMs() < endAt) await sleep(5)
  return ms
}

answerParent<MemberQuestion, MemberAnswer>(async (question) => {
  const before = process.cpuUsage()
  if (question.do === 'join') await join(question)
  const ms = question.do === 'run' ? await run(question) : 0
  const { user, system } = process.cpuUsage(before)
  const sent = question.do === 'run' ? question.perSecond * question.seconds : 0
  const latenciesMs = Float64Array.from(latencies)
  // Not at the next question: what others send may be here before it.
  latencies = []
  return { sent, ms, latenciesMs, cpuMs: (user + system) / 1000 }
})
