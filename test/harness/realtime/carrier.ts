import { connectNats } from '../../../src/carriage/nats/nats-connection.ts'
import { parseNatsUrl } from '../../../src/carriage/nats/nats-url.ts'
import { findNatsServer } from '../nats/nats-program.ts'
import { startNatsServers } from '../nats/nats-servers.ts'
import { waitFor } from '../run/wait.ts'

const SUBJECT = 'test.realtime'

const program = await findNatsServer('realtime is tested with PostgreSQL between its processes alone')

/** What carries the events between the processes of a test. */
export const CARRIERS = program ? (['PostgreSQL', 'NATS'] as const) : (['PostgreSQL'] as const)

/** A carrier that runs. */
export interface RunningCarrier extends AsyncDisposable {
  /** Settings of the processes. */
  env: Record<string, string>
  /** Resolves when so many processes send on the bus; at once without one. */
  waitForProcesses(count: number): Promise<void>
  /** Publications that the bus carried. */
  countPublications(): number
  /** Kills the servers of the bus, and starts them again. */
  cut(): Promise<void>
  mend(): Promise<void>
}

/** Starts what carries the events, and watches it. */
export async function startCarrier(carrier: (typeof CARRIERS)[number]): Promise<RunningCarrier> {
  if (carrier === 'PostgreSQL' || !program)
    return {
      ...{ env: {}, waitForProcesses: async () => {}, countPublications: () => 0 },
      ...{ cut: async () => {}, mend: async () => {} },
      [Symbol.asyncDispose]: async () => {},
    }
  const servers = await startNatsServers({ program })
  const watcher = await connectNats({ ...parseNatsUrl(servers.url), tls: {} }, { name: 'watcher' })
  const senders = new Map<string, number>()
  let publications = 0
  watcher.connection.subscribe(`${SUBJECT}.*`, {
    callback: (_error, { subject, data }) => {
      senders.set(subject, (senders.get(subject) ?? 0) + 1)
      if (Buffer.from(data).includes('"kind":"publish"')) publications += 1
    },
  })
  await watcher.connection.flush()
  return {
    env: { EVENT_LOG_URL: servers.url, REALTIME_BUS_SUBJECT: SUBJECT },
    // A second proof follows the first one's return.
    waitForProcesses: async (count) => {
      const has = () => [...senders.values()].filter((sent) => sent > 1).length >= count
      await waitFor('the processes on the bus', has)
    },
    countPublications: () => publications,
    cut: async () => {
      await Promise.all(servers.nodes.map((node) => node.kill()))
    },
    mend: async () => {
      await Promise.all(servers.nodes.map((node) => node.start()))
    },
    [Symbol.asyncDispose]: async () => {
      await watcher.close()
      await servers[Symbol.asyncDispose]()
    },
  }
}
