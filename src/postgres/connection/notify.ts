import type pg from 'pg'
import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { connectClient } from './connect-limit.ts'
import type { Invalidation } from './invalidated-cache.ts'
import { buildListener, closeClient, endClient, openClient } from './listener.ts'

/** The channel on which processes notify each other of work. */
const WORK_CHANNEL = 'signalbox_work'

/** The channel on which triggers notify of changes to rows that processes cache (`invalidate` in the migrations). */
const CHANGE_CHANNEL = 'signalbox_change'

/** Notifications within this time become one: NOTIFY locks the database at commit. Milliseconds. */
const COALESCE_MS = 20

/** Interval between proofs of the listening connection. */
const PROOF_EVERY_MS = 250

/** Validity of a proof, from the time it was sent. */
const PROOF_HOLDS_MS = 1_000

/** Time without a received proof, while proofs are sent, after which the listening connection is replaced. */
const UNPROVEN_LIMIT_MS = 5_000

/** Best-effort notifications between the processes of one database; workers also poll. */
export interface Notifier {
  /** Notifies the workers of this process now and those of others within milliseconds. Never throws. */
  notify(): void
  /** Whether a notification of the last `withinMs` (1 s) has arrived: every change before it was reported. */
  isLive(withinMs?: number): boolean
  /** Whether the listening connection, which holds the lock of the worker, is believed to be open. */
  isListening(): boolean
  /** Number of replacements of an ended or silent listening connection. */
  countReconnects(): number
  /** Listens until stopped; reconnects by itself. */
  run(): Promise<void>
  stop(): Promise<void>
}

export interface NotifierOptions {
  /** For LISTEN and NOTIFY: PostgreSQL itself, or a pooler in session mode. */
  connectionString: string
  clock: Clock
  random: Random
  /** Monotonic milliseconds, real time also in tests: they bound network delays. */
  monotonicMs?: () => number
  /** Runs when this or another process notifies of work, and after each reconnect. Without it, no LISTEN. */
  onWork?: () => void
  /** The worker of this process, which holds a lock of this name while the listening connection is open. */
  workerId?: string
  /** Whether other processes must be notified; default yes. */
  hasPeers?: () => boolean
  /** Runs for each change that a trigger reports; with `*` when notifications may have been missed. */
  onChange?: (change: Invalidation) => void
  /** Runs when the listening connection was lost and another one is open: the server may be another one. */
  onReconnect?: () => void
  onError: (error: unknown) => void
}

/** Builds a `Notifier`. Without `onWork` and `onChange` it opens no listening connection. */
export function buildNotifier(options: NotifierOptions): Notifier {
  const { clock, onWork, onChange, onError, workerId, hasPeers = () => true } = options
  const proof = buildProof(options)
  const sender = buildSender(options)
  const stopping = new AbortController()
  let isSending = false
  let isListening = false
  let connections = 0

  const listener = buildListener({
    connectionString: options.connectionString,
    applicationName: 'signalbox listen',
    clock,
    channels: [...(onWork ? [WORK_CHANNEL] : []), ...(onChange ? [CHANGE_CHANNEL, proof.channel] : [])],
    onNotification: (channel, payload) => {
      if (channel === WORK_CHANNEL) onWork?.()
      else if (channel === CHANGE_CHANNEL) onChange?.(payload as Invalidation)
      else proof.receive(payload)
    },
    ...(workerId !== undefined && { lock: workerId }),
    onListening: () => {
      isListening = true
      connections += 1
      proof.begin()
      if (connections > 1) options.onReconnect?.()
      onWork?.()
      onChange?.('*')
    },
    onLost: () => {
      isListening = false
      proof.withdraw()
    },
    onError,
  })

  async function sendWork(): Promise<void> {
    isSending = true
    await clock.sleep(COALESCE_MS, stopping.signal)
    isSending = false
    if (!stopping.signal.aborted) await sender.send(WORK_CHANNEL, '').catch(onError)
  }

  async function prove(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Without a new proof the last one expires.
      const isSent = await sender.send(proof.channel, proof.next()).then(
        () => true,
        () => false,
      )
      if (isSent && isListening && proof.isMissing()) {
        onError(new Error('the listening connection reports nothing: a new one is opened'))
        listener.reconnect()
      }
      await clock.sleep(PROOF_EVERY_MS, stopping.signal)
    }
  }

  return {
    notify: () => {
      onWork?.()
      if (!isSending && hasPeers()) void sendWork()
    },
    isListening: () => isListening,
    countReconnects: () => Math.max(0, connections - 1),
    isLive: (withinMs) => proof.holds(withinMs),
    run: async () => {
      if (!onWork && !onChange) return
      await Promise.all([listener.run(), onChange && prove()])
    },
    stop: async () => {
      stopping.abort()
      await Promise.all([listener.stop(), sender.stop()])
    },
  }
}

/** Proves that this process receives notifications: each proof is a notification to itself on a channel of its own. */
function buildProof({ random, monotonicMs = () => performance.now() }: NotifierOptions) {
  const channel = `signalbox_proof_${random.bytes(8).toString('hex')}`
  let provenAtMs = Number.NEGATIVE_INFINITY
  let begunAtMs = Number.NEGATIVE_INFINITY
  let sent = { id: '', atMs: 0 }
  let count = 0
  return {
    channel,
    next: (): string => {
      count += 1
      sent = { id: String(count), atMs: monotonicMs() }
      return sent.id
    },
    receive: (id: string): void => {
      if (id === sent.id) provenAtMs = sent.atMs
    },
    begin: (): void => {
      begunAtMs = monotonicMs()
    },
    isMissing: (): boolean => monotonicMs() - Math.max(begunAtMs, provenAtMs) >= UNPROVEN_LIMIT_MS,
    withdraw: (): void => {
      provenAtMs = Number.NEGATIVE_INFINITY
      sent = { id: '', atMs: 0 }
    },
    holds: (withinMs = PROOF_HOLDS_MS): boolean => monotonicMs() - provenAtMs < withinMs,
  }
}

/** Sends notifications over a dedicated connection, opened at the first use and again after a loss. */
function buildSender({ connectionString, clock }: NotifierOptions) {
  let connecting: Promise<pg.Client> | undefined
  let isStopped = false

  function connect(): Promise<pg.Client> {
    // A lost notification loses no data, so its commit need not wait for the disk.
    const client = openClient(connectionString, 'signalbox notify', '-c synchronous_commit=off')
    const forget = () => {
      connecting = undefined
    }
    client.on('error', forget)
    client.on('end', forget)
    return connectClient(client).then(
      () => client,
      (error: unknown) => {
        forget()
        throw error
      },
    )
  }

  return {
    send: async (channel: string, payload: string): Promise<void> => {
      if (isStopped) return
      connecting ??= connect()
      const client = await connecting
      try {
        await client.query(`notify "${channel}", '${payload}'`)
      } catch (error) {
        connecting = undefined
        endClient(client)
        throw error
      }
    },
    stop: async (): Promise<void> => {
      isStopped = true
      const client = await connecting?.catch(() => undefined)
      if (client) await closeClient(client, clock)
    },
  }
}
