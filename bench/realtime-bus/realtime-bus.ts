import { mkdtemp, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../src/postgres/migration/migrate.ts'
import { findNatsServer } from '../../test/harness/nats/nats-program.ts'
import { startNatsServers } from '../../test/harness/nats/nats-servers.ts'
import { startProgram } from '../child-process.ts'
import { openDatabaseServer } from '../database-server.ts'
import { untilInterrupted } from '../interruption.ts'
import { findQuantile } from '../quantile.ts'
import { formatTable } from '../text-table.ts'
import type { MemberAnswer, MemberQuestion } from './member.ts'

/** How much is measured. */
export interface BusLoad {
  processes: number
  seconds: number
  /** Publications a second of all processes, one row each, until one is not reached. */
  rates: readonly number[]
}

/** A rate is reached when so much of it was sent in its time, and all arrived. */
const REACHED = 0.7

/**
 * Measures what the processes of the embedded realtime server pass each other: from the call of the sender to the arrival at
 * each other process, through PostgreSQL and by NATS, at rising rates. Prints both.
 */
export async function measureBus(load: BusLoad): Promise<void> {
  await untilInterrupted(async (stack) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    const program = await findNatsServer('PostgreSQL is measured alone')
    const lines: string[][] = []
    for (const carrier of program ? ['PostgreSQL', 'NATS'] : ['PostgreSQL']) {
      const connectionString = await server.createDatabase(carrier.toLowerCase())
      await migrate(connectionString)
      await using servers = carrier === 'NATS' && program ? await startNatsServers({ program }) : undefined
      lines.push(...(await measureCarrier(load, { carrier, connectionString, nats: servers?.url })))
    }
    const head = ['carrier', 'published/s', 'arrivals/s', 'p50 ms', 'p99 ms', 'missing', 'ms of CPU each', 'load']
    console.log(`\n${server.description}; ${load.processes} processes\n\n${formatTable(head, lines)}`)
  })
}

async function measureCarrier(
  { processes, seconds, rates }: BusLoad,
  { carrier, ...given }: { carrier: string; connectionString: string; nats: string | undefined },
): Promise<string[][]> {
  await using stack = new AsyncDisposableStack()
  const members = Array.from({ length: processes }, () =>
    startProgram<MemberQuestion, MemberAnswer>('realtime-bus/member.ts'),
  )
  for (const member of members) stack.defer(() => member.stop())
  const ask = (question: MemberQuestion) => Promise.all(members.map((member) => member.ask(question)))
  await ask({ do: 'join', peers: processes - 1, ...given })
  const runAt = (rate: number, during: number) => {
    const perSecond = Math.max(1, Math.round(rate / processes))
    const expected = perSecond * during * (processes - 1)
    return ask({ do: 'run', perSecond, seconds: during, expected })
  }
  // Compiles what is measured.
  await runAt(rates[0] ?? 1, 2)
  const lines: string[][] = []
  for (const rate of rates) {
    const answers = await runAt(rate, seconds)
    const sent = answers.reduce((sum, answer) => sum + answer.sent, 0)
    const tookS = Math.max(...answers.map(({ ms }) => ms)) / 1000
    const latencies = answers.flatMap(({ latenciesMs }) => [...latenciesMs])
    const missing = sent * (processes - 1) - latencies.length
    const cpuMs = answers.reduce((sum, answer) => sum + answer.cpuMs, 0) / sent
    lines.push([
      ...[carrier, (sent / tookS).toFixed(0), (latencies.length / tookS).toFixed(0)],
      ...[findQuantile(latencies, 0.5).toFixed(1), findQuantile(latencies, 0.99).toFixed(1)],
      ...[String(missing), cpuMs.toFixed(3), (loadavg()[0] ?? 0).toFixed(0)],
    ])
    console.log(lines.at(-1)?.join('  '))
    if (missing > 0 || sent / tookS < rate * REACHED) break
  }
  return lines
}
