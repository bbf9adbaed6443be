import { setTimeout } from 'node:timers/promises'
import type { LogEntry } from '../../../src/carriage/log/log.ts'
import { connectNats } from '../../../src/carriage/nats/nats-connection.ts'
import { openNatsLog } from '../../../src/carriage/nats/nats-log.ts'
import { parseNatsUrl } from '../../../src/carriage/nats/nats-url.ts'
import type { ServiceProcess } from '../process/service-process.ts'
import { waitFor } from '../run/wait.ts'

export const STREAM = 'signalbox-events'

/** The settings of a service with a log on these servers. */
export const buildLogEnvironment = (url: string) => ({ EVENT_LOG_URL: url, EVENT_LOG_STREAM: STREAM })

const settingsOf = (url: string) => ({
  nats: { ...parseNatsUrl(url), tls: {} },
  stream: STREAM,
  ...{ replicas: undefined, maxAgeMs: 7 * 86_400_000, maxBytes: undefined },
})

/** Everything that the log holds. */
export async function readWholeLog(url: string): Promise<LogEntry[]> {
  const log = await openNatsLog(settingsOf(url), { name: 'test' })
  try {
    const entries: LogEntry[] = []
    const { incarnation, firstSequence } = await log.readState()
    for (;;) {
      const sequence = entries.at(-1)?.sequence ?? firstSequence - 1
      const more = await log.read({ from: { incarnation, sequence }, limit: 1_000 })
      if (more.length === 0) return entries
      entries.push(...more)
    }
  } finally {
    await log.close()
  }
}

/** Runs something with the manager of JetStream. */
export async function manageStreams<Result>(
  url: string,
  run: (manager: import('@nats-io/jetstream').JetStreamManager) => Promise<Result>,
): Promise<Result> {
  const { jetstreamManager } = await import('@nats-io/jetstream')
  const link = await connectNats(settingsOf(url).nats, { name: 'test' })
  try {
    return await run(await jetstreamManager(link.connection))
  } finally {
    await link.close()
  }
}

/**
 * The name of the server that leads the stream. Waits for one: brokers that elect who manages the streams answer no question
 * about them, for longer than the client waits.
 */
export async function findLeader(url: string): Promise<string> {
  let failure: unknown
  const ask = () => manageStreams(url, async ({ streams }) => (await streams.info(STREAM)).cluster?.leader)
  const look = () =>
    ask().catch((error: unknown) => {
      failure = error
      return undefined
    })
  return waitFor('a leader of the stream', look, { limitMs: 120_000, describe: () => String(failure) })
}

/** A publisher of one account: it publishes one event after the other. */
export interface Publisher {
  /** The ids of the events that the API accepted, in this order. */
  accepted: string[]
  account: string
  stop(): Promise<void>
}

/** Registers the event type that publishers use. */
export async function registerEventType(service: Pick<ServiceProcess, 'call'>): Promise<void> {
  const made = await service.call('POST', '/api/v3/webhook/event', {
    internal: 'invoice.create',
    account_scope: 'account',
  })
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
}

/**
 * Pause of a publisher after each event, in milliseconds. An election of brokers takes seconds, in which publishers without a
 * pause would do most of the work of a test; with it some events are under way at any time all the same.
 */
const PAUSE_MS = 100

/** Makes an account, and publishes for it until it is stopped. Refused calls fail the stop. */
export async function startPublisher(service: Pick<ServiceProcess, 'call'>, name: string): Promise<Publisher> {
  const made = await service.call('POST', '/api/v3/identity/account', { name })
  const account: string = made.body.data.document_id
  const accepted: string[] = []
  let isStopped = false
  const running = (async () => {
    while (!isStopped) {
      const answer = await service.call('POST', '/api/v3/webhook/publish', {
        event: 'invoice.create',
        account,
        id: `${accepted.length}`,
      })
      if (answer.status !== 202) throw new Error(`a publication was refused: ${JSON.stringify(answer.body)}`)
      accepted.push(answer.body.data.events[0].event_id)
      await setTimeout(PAUSE_MS)
    }
  })()
  running.catch(() => {})
  return {
    accepted,
    account,
    stop: () => {
      isStopped = true
      return running
    },
  }
}

/** The published events of an account, each id once, in the order of its first place. */
export const firstOf = (entries: readonly LogEntry[], account: string) => [
  ...new Set(entries.filter(({ subject }) => subject === `ev.${account}.invoice.create`).map(({ id }) => id)),
]
