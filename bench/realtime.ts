import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from './child-process.ts'
import { openDatabaseServer } from './database-server.ts'
import { untilInterrupted } from './interruption.ts'
import { findMedian, findQuantile } from './quantile.ts'
import type { ClientsAnswer, ClientsQuestion } from './realtime-clients.ts'
import type { SideQuestion, SideState } from './realtime-side.ts'
import { formatTable } from './text-table.ts'

/** How much is measured. */
export interface RealtimeLoad {
  /** Clients of the measurements of connections and memory. */
  idle: number
  /** Clients that receive each event. */
  fanOut: number
  /** Events of a fan-out. */
  publishes: number
  /** Events a second of the measurement of latency, to ten clients. */
  perSecond: number
  seconds: number
  rounds: number
}

const SIDES = ['embedded', 'bare'] as const

/** Clients of the measurement of latency. */
const LATENCY_CLIENTS = 10

/** Measurement of one side in one round. */
interface Measured {
  connectionsPerSecond: number
  /** With all idle clients, and what each added. */
  idleMegabytes: number
  kilobytesEach: number
  deliveriesPerSecond: number
  medianMs: number
  p99Ms: number
}

/**
 * Measures the embedded realtime server beside a bare `ws` broadcast, which checks nothing, in turn: connections a second,
 * memory of idle clients, fan-out of one event, and the time from publish to arrival at a steady rate. Prints each with the
 * ratio.
 */
export async function measureRealtime(load: RealtimeLoad): Promise<void> {
  await untilInterrupted(async (stack) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    const measured: Record<(typeof SIDES)[number], Measured[]> = { embedded: [], bare: [] }
    for (let round = 1; round <= load.rounds; round += 1)
      for (const side of SIDES) {
        const connectionString = await server.createDatabase(`${side}${round}`)
        measured[side].push(await measureSide({ side, connectionString }, load))
        console.log(`round ${round}, ${side}: ${JSON.stringify(measured[side].at(-1))}`)
      }
    console.log(`\n${server.description}\n\n${format(measured)}`)
  })
}

async function measureSide(
  { side, connectionString }: { side: (typeof SIDES)[number]; connectionString: string },
  load: RealtimeLoad,
): Promise<Measured> {
  await using stack = new AsyncDisposableStack()
  const server = startProgram<SideQuestion, SideState>('realtime-side.ts')
  stack.defer(() => server.stop())
  const clients = startProgram<ClientsQuestion, ClientsAnswer>('realtime-clients.ts')
  stack.defer(() => clients.stop())
  const { port } = await server.ask({ do: 'start', side, connectionString })
  // Compiles what is measured.
  await clients.ask({ do: 'open', port, count: 200 })
  await clients.ask({ do: 'fan-out', port, publishes: 20 })
  await clients.ask({ do: 'close' })
  const before = await server.ask({ do: 'memory' })
  const opened = await clients.ask({ do: 'open', port, count: load.idle })
  const after = await server.ask({ do: 'memory' })
  await clients.ask({ do: 'close' })
  await clients.ask({ do: 'open', port, count: load.fanOut })
  const spread = await clients.ask({ do: 'fan-out', port, publishes: load.publishes })
  await clients.ask({ do: 'close' })
  await clients.ask({ do: 'open', port, count: LATENCY_CLIENTS })
  const steady = await clients.ask({ do: 'rate', port, perSecond: load.perSecond, seconds: load.seconds })
  return {
    connectionsPerSecond: load.idle / (opened.ms / 1000),
    idleMegabytes: after.rssBytes / 1e6,
    kilobytesEach: (after.rssBytes - before.rssBytes) / 1e3 / load.idle,
    deliveriesPerSecond: spread.arrivals / (spread.ms / 1000),
    medianMs: findQuantile(steady.latenciesMs, 0.5),
    p99Ms: findQuantile(steady.latenciesMs, 0.99),
  }
}

const ROWS: readonly { member: keyof Measured; title: string; goal: string; digits: number }[] = [
  { member: 'connectionsPerSecond', title: 'connections a second', goal: '', digits: 0 },
  { member: 'idleMegabytes', title: 'MB with all idle clients', goal: 'under 200 for 4,000', digits: 0 },
  { member: 'kilobytesEach', title: 'KB of an idle client', goal: '', digits: 1 },
  { member: 'deliveriesPerSecond', title: 'deliveries a second of a fan-out', goal: 'ratio 0.7', digits: 0 },
  { member: 'medianMs', title: 'publish to arrival, median, ms', goal: '', digits: 2 },
  { member: 'p99Ms', title: 'publish to arrival, p99, ms', goal: '', digits: 2 },
]

function format(measured: Record<(typeof SIDES)[number], Measured[]>): string {
  const lines = ROWS.map(({ member, title, goal, digits }) => {
    const of = (side: (typeof SIDES)[number]) => findMedian(measured[side].map((item) => item[member]))
    const [embedded, bare] = [of('embedded'), of('bare')]
    return [title, embedded.toFixed(digits), bare.toFixed(digits), (embedded / bare).toFixed(2), goal]
  })
  return formatTable(['', 'embedded', 'bare ws', 'ratio', 'goal'], lines)
}
