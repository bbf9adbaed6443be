import { LogError } from '../log/log.ts'
import { connectNats } from './nats-connection.ts'
import { toLogError } from './nats-error.ts'
import type { NatsLogSettings } from './nats-log.ts'
import { findStreamFaults, STREAM_NOT_FOUND } from './nats-stream.ts'

export interface NatsFacts {
  version: string
  isCluster: boolean
  /** Copies of the stream; undefined while there is no stream. */
  replicas: number | undefined
  /** Settings of the stream that the log cannot use. */
  faults: readonly string[]
}

/** Asks the servers, and changes nothing. Throws a `LogError`. */
export async function inspectNats(settings: NatsLogSettings): Promise<NatsFacts> {
  const { jetstreamManager } = await import('@nats-io/jetstream')
  // The server reports a missing permission apart from its answers, and without the one for the inbox none arrives.
  let refusal: Error | undefined
  const onError = (error: Error) => {
    refusal ??= error
  }
  try {
    const link = await connectNats(settings.nats, { name: 'signalbox doctor', onError })
    try {
      const manager = await jetstreamManager(link.connection, { checkAPI: false })
      const stream = await manager.streams.info(settings.stream).catch((error: { code?: number }) => {
        if (error.code === STREAM_NOT_FOUND) return undefined
        throw error
      })
      const { version = '', cluster } = link.connection.info ?? {}
      return {
        version,
        isCluster: Boolean(cluster),
        replicas: stream?.config.num_replicas,
        faults: stream ? findStreamFaults(stream.config) : [],
      }
    } finally {
      await link.close()
    }
  } catch (error) {
    throw error instanceof LogError ? error : toLogError(refusal ?? error)
  }
}

/** Disk sync of a server: `always` is after every message. */
export type SyncFact = { url: string; sync: 'always' | 'later' | 'unknown' }

const ANSWER_LIMIT_BYTES = 1_048_576
const ANSWER_LIMIT_MS = 3_000

/** Reads `sync_interval` at the monitoring port of each server (`/varz`): JetStream itself does not tell clients. */
export function readSync(urls: readonly string[]): Promise<SyncFact[]> {
  return Promise.all(urls.map(async (url) => ({ url, sync: await readOne(url).catch(() => 'unknown' as const) })))
}

async function readOne(url: string): Promise<SyncFact['sync']> {
  const answer = await fetch(`${url}/varz`, { signal: AbortSignal.timeout(ANSWER_LIMIT_MS), redirect: 'error' })
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of answer.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.length > ANSWER_LIMIT_BYTES) return 'unknown'
  }
  const { jetstream } = JSON.parse(text) as { jetstream?: { config?: { sync_always?: boolean } | null } }
  if (!jetstream?.config) return 'unknown'
  return jetstream.config.sync_always === true ? 'always' : 'later'
}
