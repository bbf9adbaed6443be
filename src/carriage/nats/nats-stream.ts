import type { JetStreamManager, StreamConfig, StreamInfo } from '@nats-io/jetstream'
import { SUBJECT_PREFIX } from '../log/event-message.ts'
import { LogError, type LogState } from '../log/log.ts'
import type { NatsLink } from './nats-connection.ts'

export interface StreamSettings {
  stream: string
  /** Copies of the stream; undefined: three in a cluster, one on a single server. */
  replicas: number | undefined
  maxAgeMs: number
  /** Undefined: limited by age only. */
  maxBytes: number | undefined
}

const REPLICAS_IN_CLUSTER = 3
const NANOSECONDS_OF_MS = 1_000_000

/** The code of JetStream for a stream that does not exist. */
export const STREAM_NOT_FOUND = 10_059

/** The first version that stores batches as a whole. */
const MIN_VERSION = [2, 12] as const

/**
 * Creates the stream, or changes what differs from the settings. Throws a `LogError` for a server or a stream that cannot
 * hold the log: an operator decides about a stream with other subjects, or one that is not kept on disk.
 */
export async function ensureStream(
  manager: JetStreamManager,
  { connection }: Pick<NatsLink, 'connection'>,
  settings: StreamSettings,
): Promise<StreamInfo> {
  const { version = '', cluster } = connection.info ?? {}
  if (!isRecent(version))
    throw new LogError('unsuitable', `nats-server ${version} is too old: the log needs 2.12 or newer.`)
  const wanted = buildStreamConfig(settings, { isCluster: Boolean(cluster) })
  const existing = await manager.streams.info(settings.stream).catch((error: { code?: number }) => {
    if (error.code === STREAM_NOT_FOUND) return undefined
    throw error
  })
  if (!existing) return manager.streams.add(wanted)
  const faults = findStreamFaults(existing.config)
  if (faults.length > 0)
    throw new LogError('unsuitable', `The stream ${settings.stream} cannot hold the log: ${faults.join('; ')}.`)
  const changes = findChanges(existing.config, wanted)
  return Object.keys(changes).length === 0 ? existing : manager.streams.update(settings.stream, changes)
}

function isRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1])
}

/** The configuration of the stream: on disk, limited by age and size, the oldest messages are removed first. Pure. */
function buildStreamConfig(settings: StreamSettings, { isCluster }: { isCluster: boolean }) {
  return {
    name: settings.stream,
    description: 'Events of Signalbox (docs/contract/event-log.md)',
    subjects: [`${SUBJECT_PREFIX}.>`],
    storage: 'file',
    retention: 'limits',
    discard: 'old',
    num_replicas: settings.replicas ?? (isCluster ? REPLICAS_IN_CLUSTER : 1),
    max_age: settings.maxAgeMs * NANOSECONDS_OF_MS,
    max_bytes: settings.maxBytes ?? -1,
    allow_atomic: true,
    allow_direct: true,
  } as const satisfies Partial<StreamConfig>
}

/** Settings of an existing stream that the log cannot use, as sentences without a full stop. Pure. */
export function findStreamFaults(config: StreamConfig): string[] {
  const subject = `${SUBJECT_PREFIX}.>`
  return [
    ...(config.subjects?.length === 1 && config.subjects[0] === subject ? [] : [`its subjects are not ${subject}`]),
    ...(config.storage === 'file' ? [] : ['it is not stored in files']),
    ...(config.retention === 'limits' ? [] : ['it removes messages that were read']),
    ...(config.discard === 'old' ? [] : ['it refuses messages when it is full']),
  ]
}

const CHANGED = ['num_replicas', 'max_age', 'max_bytes', 'allow_atomic', 'allow_direct'] as const

function findChanges(config: StreamConfig, wanted: ReturnType<typeof buildStreamConfig>): Partial<StreamConfig> {
  return Object.fromEntries(CHANGED.filter((name) => config[name] !== wanted[name]).map((name) => [name, wanted[name]]))
}

/** The state of the log in a stream. A recreated stream differs by its time of creation. Pure. */
export function stateOf({ created, state }: StreamInfo): LogState {
  return {
    incarnation: created,
    sequence: state.last_seq,
    firstSequence: state.first_seq,
    messages: state.messages,
    bytes: state.bytes,
  }
}
