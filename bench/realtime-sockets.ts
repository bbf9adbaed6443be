import { mkdtemp, rm } from 'node:fs/promises'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOpenFileLimit } from '../src/app/doctor/open-files.ts'
import { startProgram } from './child-process.ts'
import { openDatabaseServer } from './database-server.ts'
import { untilInterrupted } from './interruption.ts'
import type { ClientsAnswer, ClientsQuestion } from './realtime-clients.ts'
import type { SideQuestion, SideState } from './realtime-side.ts'
import { formatTable } from './text-table.ts'

/** Descriptors that a process has besides its sockets. */
const OTHERS = 200

/** Clients of one process: two of them have more local ports than one needs. */
const OF_A_PROCESS = 10_000

/** Events that reach all clients. */
const PUBLISHES = 5

const SIDES = ['embedded', 'bare'] as const

/**
 * Measures one process of the embedded realtime server with many clients, and a bare `ws` broadcast with as many, each in a
 * process of its own: connections a second, memory, and the time of an event to all of them.
 */
export async function measureSockets(counts: readonly number[]): Promise<void> {
  const most = (readOpenFileLimit() ?? Number.POSITIVE_INFINITY) - OTHERS
  await untilInterrupted(async (stack) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = await openDatabaseServer(dataDir)
    stack.defer(() => server.close())
    const lines: string[][] = []
    for (const asked of counts) {
      const count = Math.min(asked, most)
      if (count < asked) console.log(`${count} clients in place of ${asked}: the limit of open files`)
      for (const side of SIDES) {
        const connectionString = await server.createDatabase(`${side}${count}`)
        const cells = await measureSide({ side, count, connectionString })
        lines.push([`${side}, ${count}`, ...cells])
        console.log(lines.at(-1)?.join('  '))
      }
    }
    const head = ['', 'connections a second', 'MB', 'KB each', 'ms of an event to all', 'load']
    console.log(`\n${server.description}\n\n${formatTable(head, lines)}`)
  })
}

async function measureSide(of: { side: (typeof SIDES)[number]; count: number; connectionString: string }) {
  const { side, count, connectionString } = of
  await using stack = new AsyncDisposableStack()
  const server = startProgram<SideQuestion, SideState>('realtime-side.ts')
  stack.defer(() => server.stop())
  const { port } = await server.ask({ do: 'start', side, connectionString })
  const groups = Array.from({ length: Math.ceil(count / OF_A_PROCESS) }, () => {
    const program = startProgram<ClientsQuestion, ClientsAnswer>('realtime-clients.ts')
    stack.defer(() => program.stop())
    return program
  })
  const share = Math.floor(count / groups.length)
  // Compiles what is measured.
  for (const group of groups) await group.ask({ do: 'open', port, count: 200 })
  for (const group of groups) await group.ask({ do: 'close' })
  const before = await server.ask({ do: 'memory' })
  let ms = 0
  for (const group of groups) ms += (await group.ask({ do: 'open', port, count: share })).ms
  const after = await server.ask({ do: 'memory' })
  // The other groups receive the events too, and wait for none.
  const spread = await groups[0]!.ask({ do: 'fan-out', port, publishes: PUBLISHES })
  return [
    ((share * groups.length) / (ms / 1_000)).toFixed(0),
    (after.rssBytes / 1e6).toFixed(0),
    ((after.rssBytes - before.rssBytes) / 1e3 / (share * groups.length)).toFixed(1),
    (spread.ms / PUBLISHES).toFixed(1),
    loadavg()[0]!.toFixed(0),
  ]
}
