import type { NatsConnection, Subscription } from '@nats-io/transport-node'
import { readMonotonicMs, systemClock } from '../../base/clock.ts'
import type { Bus, BusCallbacks } from '../bus/bus.ts'
import { openTexts, SEAL_BYTES, sealTexts } from '../bus/bus-seal.ts'
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

/** Longer than every proof. */
const PROOF_LIMIT_BYTES = 128

/** The first character of a proof; a text begins with the id of its sender. */
const PROOF = '!'

export interface NatsBusOptions extends BusCallbacks {
  settings: NatsSettings
  /** The subject above those of the processes; installations that share servers have different ones. */
  subject: string
  id: string
  /** Keys of the seals; the first one seals. */
  keys: readonly [Buffer, ...Buffer[]]
  /** Runs once when the bus cannot open, until it was open. The error has no secret. */
  onFailed: (error: LogError) => void
  rest?: typeof systemClock.sleep
  monotonicMs?: () => number
}

interface BusContext {
  options: NatsBusOptions & { rest: typeof systemClock.sleep; monotonicMs: () => number }
  /** The subject of this process. */
  own: string
  stopping: AbortController
  stopped: PromiseWithResolvers<void>
  /** Aborted when the bus closes. */
  closed: AbortController
  link: NatsLink | undefined
  subscription: Subscription | undefined
  lastError: unknown
  isOpen: boolean
  /** Whether `onFailed` has run since the bus was open. */
  isTold: boolean
  proofs: number
  provenAtMs: number
}

/**
 * Builds a bus over core NATS: each process publishes on `<subject>.<id>` and reads `<subject>.*`. It counts as open while
 * the process receives its own proofs, so a missing permission, a silent server and a lost connection are one case.
 */
export function buildNatsBus(given: NatsBusOptions): Bus {
  const options = { rest: systemClock.sleep, monotonicMs: readMonotonicMs, ...given }
  const context: BusContext = {
    ...{ options, own: `${options.subject}.${options.id}` },
    ...{ stopping: new AbortController(), stopped: Promise.withResolvers<void>(), closed: new AbortController() },
    ...{ link: undefined, subscription: undefined, lastError: undefined, isOpen: false, isTold: false },
    ...{ proofs: 0, provenAtMs: Number.NEGATIVE_INFINITY },
  }
  return {
    isOpen: () => context.isOpen,
    limitBytes: () => payloadOf(context) - SEAL_BYTES,
    send: async (texts) => {
      if (!context.link || !context.isOpen) throw new LogError('unreachable', 'NATS: the bus is not open')
      const { connection } = context.link
      const packets = sealTexts(options.keys[0], texts, payloadOf(context))
      for (const packet of packets) connection.publish(context.own, packet)
      await confirm(context, connection)
    },
    run: async () => {
      // A server that does not answer holds up no stop; a connection that comes later is closed.
      await Promise.race([connect(context), context.stopped.promise])
      if (context.link) await proveUntilStopped(context, context.link)
    },
    stop: async () => {
      context.stopping.abort()
      context.stopped.resolve()
      setOpen(context, false)
      await context.link?.close()
    },
  }
}

const payloadOf = ({ link }: BusContext) => link?.connection.info?.max_payload ?? DEFAULT_PAYLOAD_BYTES

function setOpen(context: BusContext, isOpen: boolean): void {
  if (isOpen === context.isOpen) return
  context.isOpen = isOpen
  if (isOpen) {
    context.isTold = false
    context.lastError = undefined
    context.closed = new AbortController()
  } else context.closed.abort()
  if (!context.stopping.signal.aborted) context.options.onChange(isOpen)
}

function tell(context: BusContext, error: unknown): void {
  if (context.isTold || context.stopping.signal.aborted) return
  context.isTold = true
  const silent = new LogError('unreachable', 'NATS: nothing that is sent comes back')
  context.options.onFailed(error === undefined ? silent : toLogError(error))
}

const proofOf = ({ options, proofs }: BusContext) => `${PROOF}${options.id} ${proofs}`

function take(context: BusContext, subject: string, data: Uint8Array): void {
  const { options, own } = context
  // Messages of this process are no news, but for its proofs.
  const isOwn = subject === own
  if (isOwn && data.byteLength > PROOF_LIMIT_BYTES) return
  for (const text of openTexts(options.keys, data)) {
    const isProof = text.startsWith(PROOF)
    if (!isOwn && !isProof) options.onText(text)
    if (!isOwn || text !== proofOf(context)) continue
    context.provenAtMs = options.monotonicMs()
    setOpen(context, true)
  }
}

function subscribe(context: BusContext, connection: NatsConnection): void {
  const opened = connection.subscribe(`${context.options.subject}.*`, {
    callback: (error, message) => {
      if (error) context.lastError = error
      else take(context, message.subject, message.data)
    },
  })
  context.subscription = opened
  // A refusal closes it; the server may be corrected.
  void opened.closed.then(() => {
    if (context.subscription === opened) context.subscription = undefined
  })
}

function prove(context: BusContext, connection: NatsConnection): void {
  context.proofs += 1
  try {
    for (const packet of sealTexts(context.options.keys[0], [proofOf(context)], payloadOf(context)))
      connection.publish(context.own, packet)
  } catch (error) {
    context.lastError = error
  }
}

async function connect(context: BusContext): Promise<void> {
  const { options, stopping } = context
  while (!stopping.signal.aborted && !context.link) {
    try {
      const opened = await connectNats(options.settings, {
        name: `signalbox realtime ${options.id}`,
        onStatus: (status) => {
          if (status === 'disconnected') setOpen(context, false)
          else if (context.link) prove(context, context.link.connection)
        },
        onError: (error) => {
          context.lastError = error
        },
      })
      if (stopping.signal.aborted) await opened.close()
      else context.link = opened
    } catch (error) {
      tell(context, error)
      await options.rest(RETRY_MS, stopping.signal)
    }
  }
}

async function proveUntilStopped(context: BusContext, { connection }: NatsLink): Promise<void> {
  const { options, stopping } = context
  const begunAtMs = options.monotonicMs()
  let subscribedAtMs = Number.NEGATIVE_INFINITY
  while (!stopping.signal.aborted) {
    const nowMs = options.monotonicMs()
    if (!context.subscription && nowMs - subscribedAtMs >= RETRY_MS) {
      subscribedAtMs = nowMs
      subscribe(context, connection)
    }
    prove(context, connection)
    await options.rest(PROVE_EVERY_MS, stopping.signal)
    if (options.monotonicMs() - Math.max(context.provenAtMs, begunAtMs) < PROOF_HOLDS_MS) continue
    setOpen(context, false)
    tell(context, context.lastError)
  }
}

/** Resolves when a server has what was published. */
async function confirm({ options, closed }: BusContext, connection: NatsConnection): Promise<void> {
  const limit = new AbortController()
  const late = options.rest(CONFIRM_LIMIT_MS, AbortSignal.any([limit.signal, closed.signal])).then(() => {
    if (!limit.signal.aborted) throw new LogError('unreachable', 'NATS: no server confirmed what was sent')
  })
  try {
    await Promise.race([connection.flush(), late])
  } finally {
    limit.abort()
    late.catch(() => {})
  }
}
