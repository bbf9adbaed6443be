import type { DirectBatchOptions, JetStreamManager, StoredMsg } from '@nats-io/jetstream'
import type { Msg } from '@nats-io/transport-node'
import {
  APPEND_LIMIT,
  checkFingerprint,
  checkOverlap,
  checkPosition,
  type EventLog,
  type LogEntry,
  type LogMessage,
  type LogState,
} from '../log/log.ts'
import { connectNats, type NatsLink, type NatsLinkOptions, type NatsSettings } from './nats-connection.ts'
import { toLogError } from './nats-error.ts'
import { ensureStream, STREAM_NOT_FOUND, type StreamSettings, stateOf } from './nats-stream.ts'

/** Headers of a message (docs/contract/event-log.md#messages). */
const ID = 'Event-Id'
const RECORDED_AT = 'Event-Time'

/** Wait for an answer: a leader that died never answers, and its successor is elected in 4 to 6 s. */
const ANSWER_LIMIT_MS = 5_000

/** Header of a message of a batch: the sequence of the one before it in the same batch; 0 in the first one. */
const PRECEDING = 'Nats-Last-Sequence'

/** The status of a read without a result. */
const NOTHING_FOUND = 404

export interface NatsLogSettings extends StreamSettings {
  nats: NatsSettings
}

export interface NatsLogOptions extends NatsLinkOptions {
  /** Whether it neither creates nor changes the stream. */
  isReader?: boolean
}

/** Connects, and creates or checks the stream. Throws a `LogError`. */
export async function openNatsLog(settings: NatsLogSettings, options: NatsLogOptions): Promise<EventLog> {
  const { jetstreamManager } = await import('@nats-io/jetstream')
  const link = await connectNats(settings.nats, options).catch((error: unknown) => {
    throw toLogError(error)
  })
  try {
    // `checkAPI` would ask a server that may be without a leader.
    const manager = await jetstreamManager(link.connection, { checkAPI: false, timeout: ANSWER_LIMIT_MS })
    const { isReader = false } = options
    if (!isReader) await ensureStream(manager, link, settings)
    return await buildNatsLog({ link, manager, settings, isReader })
  } catch (error) {
    await link.close()
    throw toLogError(error)
  }
}

interface Parts {
  link: NatsLink
  manager: JetStreamManager
  settings: NatsLogSettings
  isReader: boolean
}

async function buildNatsLog({ link, manager, settings, isReader }: Parts): Promise<EventLog> {
  const { headers, nuid } = await import('@nats-io/transport-node')
  const { stream } = settings

  /** The messages of a batch are stored together, at its last one (NATS 2.12, atomic batches). */
  async function publish(messages: readonly LogMessage[], afterSequence: number): Promise<Msg> {
    const batch = nuid.next()
    let answer: Promise<Msg> | undefined
    for (const [index, { subject, id, recordedAt, headers: given, body }] of messages.entries()) {
      const head = headers()
      for (const [name, value] of Object.entries(given)) head.set(name, value)
      head.set(ID, id)
      head.set(RECORDED_AT, recordedAt.toISOString())
      if (index === 0) {
        head.set('Nats-Expected-Stream', stream)
        head.set('Nats-Expected-Last-Sequence', String(afterSequence))
      }
      if (messages.length > 1) {
        head.set('Nats-Batch-Id', batch)
        head.set('Nats-Batch-Sequence', String(index + 1))
      }
      const isLast = index === messages.length - 1
      if (isLast && messages.length > 1) head.set('Nats-Batch-Commit', '1')
      if (isLast) answer = link.connection.request(subject, body, { headers: head, timeout: ANSWER_LIMIT_MS })
      else link.connection.publish(subject, body, { headers: head })
    }
    return answer as Promise<Msg>
  }

  const readState = async () => {
    try {
      return stateOf(await manager.streams.info(stream))
    } catch (error) {
      // A deleted stream is created again, as another incarnation.
      if (isReader || toLogError(error).code !== 'unsuitable') throw error
      return stateOf(await ensureStream(manager, link, settings))
    }
  }

  /**
   * Any server with a copy answers, also one that is behind the others: only entries say something. They end before one
   * that was lost on its way, with the connection of this client or of two servers, after which later ones still come.
   */
  async function readBatch(query: DirectBatchOptions): Promise<LogEntry[]> {
    const entries: LogEntry[] = []
    const found = await manager.direct.getBatch(stream, query)
    try {
      for await (const message of found) {
        if (Number(message.header.last(PRECEDING)) !== (entries.at(-1)?.sequence ?? 0)) break
        entries.push(toEntry(message))
      }
    } catch (error) {
      // None matches.
      if ((error as { code?: number }).code !== NOTHING_FOUND) throw error
    }
    return entries
  }

  /** The first message that matches, as the leader has it. */
  async function readFirst(query: DirectBatchOptions | { seq: number }): Promise<LogEntry | undefined> {
    try {
      // The server takes here what it takes for a batch; the types of the client name the number alone.
      const message = await manager.streams.getMessage(stream, query as { seq: number })
      return message ? toEntry(message) : undefined
    } catch (error) {
      if ((error as { code?: number }).code === STREAM_NOT_FOUND) return undefined
      throw error
    }
  }

  /** At least the first one, which the leader is asked for when a copy has none. */
  async function readSome(query: DirectBatchOptions, limit: number): Promise<LogEntry[]> {
    const entries = await readBatch({ ...query, batch: limit })
    if (entries.length > 0) return entries
    const first = await readFirst(query)
    return first ? [first] : []
  }

  const readAt = (sequence: number) => readFirst({ seq: sequence })

  /** The entries behind a position whose message is compared. */
  async function readBehind(from: { sequence: number; fingerprint: string }, state: LogState, limit: number) {
    const { sequence } = from
    const entries = await readBatch({ seq: sequence, next_by_subj: '>', batch: limit + 1 })
    const behind = checkOverlap(entries, from, state).slice(0, limit)
    if (behind.length > 0) return behind
    checkFingerprint(await readAt(sequence), from, state)
    return readSome({ seq: sequence + 1, next_by_subj: '>' }, limit)
  }

  const log: EventLog = {
    readState,
    append: async (messages, after) => {
      if (messages.length === 0 || messages.length > APPEND_LIMIT) throw new RangeError('1 to 1,000 messages')
      const answer = (await publish(messages, after.sequence)).json<PublishAnswer>()
      if (answer.error) throw toLogError(answer.error)
      return { incarnation: after.incarnation, sequence: answer.seq }
    },
    read: async ({ from, fingerprint, subject = '>', limit }) => {
      const state = await readState()
      if (!(from instanceof Date)) checkPosition(from, state)
      if (state.messages === 0) return []
      if (from instanceof Date) return readSome({ start_time: from, next_by_subj: subject }, limit)
      const { sequence } = from
      if (sequence >= state.sequence) return []
      if (fingerprint !== undefined) return readBehind({ sequence, fingerprint }, state, limit)
      return readSome({ seq: sequence + 1, next_by_subj: subject }, limit)
    },
    readAt,
    readLast: async () => {
      const state = await readState()
      return state.messages === 0 ? undefined : readAt(state.sequence)
    },
    countReconnects: () => link.countReconnects(),
    isConnected: () => link.isConnected(),
    close: () => link.close(),
  }
  return { ...log, ...wrapErrors(log, ['readState', 'append', 'read', 'readAt', 'readLast']) }
}

interface PublishAnswer {
  seq: number
  error?: { code: number; err_code: number; description: string }
}

function toEntry({ subject, seq, header, data, time }: StoredMsg): LogEntry {
  const own = [ID, RECORDED_AT]
  const given = header.keys().filter((name) => !own.includes(name) && !name.startsWith('Nats-'))
  return {
    subject,
    id: header.get(ID),
    recordedAt: new Date(header.get(RECORDED_AT)),
    headers: Object.fromEntries(given.map((name) => [name, header.get(name)])),
    body: new TextDecoder().decode(data),
    sequence: seq,
    storedAt: time,
  }
}

/** The same functions, with each error as a `LogError`. */
function wrapErrors<Name extends keyof EventLog>(log: EventLog, names: readonly Name[]): Pick<EventLog, Name> {
  const wrap =
    (name: Name) =>
    async (...given: unknown[]) => {
      try {
        return await (log[name] as (...given: unknown[]) => unknown)(...given)
      } catch (error) {
        throw error instanceof RangeError ? error : toLogError(error)
      }
    }
  return Object.fromEntries(names.map((name) => [name, wrap(name)])) as unknown as Pick<EventLog, Name>
}
