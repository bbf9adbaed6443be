import type { NatsConnection, Subscription } from '@nats-io/transport-node'
import { readMonotonicMs, systemClock } from '../../base/clock.ts'
import type { Bus, BusCallbacks } from '../bus/bus.ts'
import { openText, SEAL_BYTES, sealText } from '../bus/bus-seal.ts'
import { LogError } from '../log/log.ts'
import { connectNats, type NatsLink, type NatsSettings } from './nats-connection.ts'
import { toLogError } from './nats-error.ts'

/** Pause between two proofs, and time without an answer to them after which the bus is closed. */
const PROVE_EVERY_MS = 500
const PROOF_HOLDS_MS = 2_000

/** Pause before a first connection, or a refused subscription, is tried again. */
const RETRY_MS = 2_000

/** Wait for a server to confirm that it has what was sent. */
const CONFIRM_LIMIT_MS = 1_000

/** `max_payload` of nats-server, where it does not say. */
const DEFAULT_PAYLOAD_BYTES = 1_048_576

/** The first character of a proof; a text begins with the id of its sender. */
const PROOF = '!'

/** Options of a bus over NATS. */
export interface NatsBusOptions extends BusCallbacks {
  settings: NatsSettings
  /** The subject above those of the processes; installations that share servers have different ones. */
  subject: string
  /** The id of this process, the last token of its subject. */
  id: string
  /** Keys of the seals; the first one seals. */
  keys: readonly [Buffer, ...Buffer[]]
  /** Runs once when the bus cannot open, until it was open. The error has no secret. */
  onFailed: (error: LogError) => void
  rest?: typeof systemClock.sleep
  monotonicMs?: () => number
}

/**
 * Builds a bus over core NATS: each process publishes on `<subject>.<id>` and reads `<subject>.*`. It counts as open while
 * the process receives its own proofs, so a missing permission, a silent server and a lost connection are one case.
 */
export function buildNatsBus(options: NatsBusOptions): Bus {
  const { rest = systemClock.sleep, monotonicMs = readMonotonicMs, id, keys } = options
  const own = `${options.subject}.${id}`
  const stopping = new AbortController()
  let link: NatsLink | undefined
  let subscription: Subscription | undefined
  let lastError: unknown
  let isOpen = false
  let isTold = false
  let proofs = 0
  let provenAtMs = Number.NEGATIVE_INFINITY
  let closed = new AbortController()

  function setOpen(next: boolean): void {
    if (next === isOpen) return
    isOpen = next
    if (next) {
      isTold = false
      lastError = undefined
      closed = new AbortController()
    } else closed.abort()
    if (!stopping.signal.aborted) options.onChange(next)
  }

  function tell(error: unknown): void {
    if (isTold || stopping.signal.aborted) return
    isTold = true
    options.onFailed(
      error === undefined ? new LogError('unreachable', 'NATS: nothing that is sent comes back') : toLogError(error),
    )
  }

  function take(subject: string, data: Uint8Array): void {
    const text = openText(keys, data)
    if (text === undefined) return
    if (subject !== own) {
      if (!text.startsWith(PROOF)) options.onText(text)
    } else if (text === `${PROOF}${id} ${proofs}`) {
      provenAtMs = monotonicMs()
      setOpen(true)
    }
  }

  function subscribe(connection: NatsConnection): void {
    const opened = connection.subscribe(`${options.subject}.*`, {
      callback: (error, message) => {
        if (error) lastError = error
        else take(message.subject, message.data)
      },
    })
    subscription = opened
    // A refusal closes it; the server may be corrected.
    void opened.closed.then(() => {
      if (subscription === opened) subscription = undefined
    })
  }

  function prove(connection: NatsConnection): void {
    proofs += 1
    try {
      connection.publish(own, sealText(keys[0], `${PROOF}${id} ${proofs}`))
    } catch (error) {
      lastError = error
    }
  }

  async function connect(): Promise<void> {
    while (!stopping.signal.aborted && !link) {
      try {
        const opened = await connectNats(options.settings, {
          name: `signalbox realtime ${id}`,
          onStatus: (status) => {
            if (status === 'disconnected') setOpen(false)
            else if (link) prove(link.connection)
          },
          onError: (error) => {
            lastError = error
          },
        })
        if (stopping.signal.aborted) await opened.close()
        else link = opened
      } catch (error) {
        tell(error)
        await rest(RETRY_MS, stopping.signal)
      }
    }
  }

  async function proveUntilStopped({ connection }: NatsLink): Promise<void> {
    const begunAtMs = monotonicMs()
    let subscribedAtMs = Number.NEGATIVE_INFINITY
    while (!stopping.signal.aborted) {
      const nowMs = monotonicMs()
      if (!subscription && nowMs - subscribedAtMs >= RETRY_MS) {
        subscribedAtMs = nowMs
        subscribe(connection)
      }
      prove(connection)
      await rest(PROVE_EVERY_MS, stopping.signal)
      if (monotonicMs() - Math.max(provenAtMs, begunAtMs) < PROOF_HOLDS_MS) continue
      setOpen(false)
      tell(lastError)
    }
  }

  return {
    isOpen: () => isOpen,
    limitBytes: () => (link?.connection.info?.max_payload ?? DEFAULT_PAYLOAD_BYTES) - SEAL_BYTES,
    send: async (texts) => {
      if (!link || !isOpen) throw new LogError('unreachable', 'NATS: the bus is not open')
      const { connection } = link
      for (const text of texts) connection.publish(own, sealText(keys[0], text))
      const limit = new AbortController()
      const { signal } = closed
      const late = rest(CONFIRM_LIMIT_MS, AbortSignal.any([limit.signal, signal])).then(() => {
        if (!limit.signal.aborted) throw new LogError('unreachable', 'NATS: no server confirmed what was sent')
      })
      try {
        await Promise.race([connection.flush(), late])
      } finally {
        limit.abort()
        late.catch(() => {})
      }
    },
    run: async () => {
      await connect()
      if (link) await proveUntilStopped(link)
    },
    stop: async () => {
      stopping.abort()
      setOpen(false)
      await link?.close()
    },
  }
}
