import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type buildConnector, Client } from 'undici'
import { parseAddress } from '../guard/address.ts'
import { effectivePort } from '../guard/callback-url.ts'
import type { ResolvedAddress } from '../guard/resolve.ts'
import { type LoopWatch, startDeadline } from '../own-fault/loop-watch.ts'
import { findDialFault, OwnFault } from '../own-fault/own-fault.ts'
import { passOverInterim } from './interim-response.ts'

/** Addresses of an answer that one connection attempt tries, and the delay before it tries the next one as well. */
const MAX_DIALLED_ADDRESSES = 4
const NEXT_ADDRESS_MS = 1_000

/** Idle limit of a connection: under the 5 s of common servers, so that a POST rarely meets a closing connection. */
const KEEP_ALIVE_MS = 4_000
/** A connection is closed this long before the limit that its server announces. */
const KEEP_ALIVE_MARGIN_MS = 500
/** Upper bound on the idle limit that a server announces. */
const KEEP_ALIVE_MAX_MS = 30_000

const MAX_RESPONSE_HEADER_BYTES = 16_384

/** The target of a connection: the origin for name, SNI and Host; the checked addresses for the socket. */
export interface ConnectionTarget {
  origin: string
  hostname: string
  addresses: readonly ResolvedAddress[]
}

/** Options of connections. `now` is monotonic milliseconds. */
export interface ConnectionOptions {
  connectTimeoutMs: number
  now: () => number
  /** Stalls of this process do not shorten the limit. */
  watch: LoopWatch
  /** Certificate authorities in place of the system's, in PEM. For tests and private deployments. */
  ca?: string | undefined
}

/** One connection that carries one POST at a time. */
export interface Connection {
  client: Client
  isTls: boolean
  /** The start of dialling, the end of the TCP handshake, and the readiness for HTTP; null before. */
  marks: { dialledAt: number | null; connectedAt: number | null; readyAt: number | null }
  /** Marks the start of a new response at the next bytes. */
  expectResponse(): void
  destroy(): void
}

/** A failed connection attempt. `code` is a constant for the ledger. */
export class DialError extends Error {
  readonly stage: 'connect' | 'tls'
  readonly code: string
  constructor(stage: 'connect' | 'tls', code: string) {
    super(`${stage}: ${code}`)
    this.name = 'DialError'
    this.stage = stage
    this.code = code
  }
}

/**
 * Opens a connection that dials only the checked addresses (docs/contract/webhooks.md#callback-guard): they are the only
 * result of the socket's look-up, and the peer address is compared once more after the TCP handshake. TLS 1.2 or newer
 * with a verified certificate, HTTP/1.1, no proxy, no redirect, no session resumption (so each connection verifies the
 * certificate). undici does not retry a written POST.
 */
export function openConnection(target: ConnectionTarget, options: ConnectionOptions): Connection {
  const marks: Connection['marks'] = { dialledAt: null, connectedAt: null, readyAt: null }
  let dialling: Socket | undefined
  let expectResponse = () => {}

  const dial: buildConnector.connector = (_origin, callback) => {
    marks.dialledAt = options.now()
    marks.connectedAt = null
    marks.readyAt = null
    // Without a descriptor the connection fails at once, by an exception.
    try {
      dialling = dialSocket(target, options, {
        onConnected: () => {
          marks.connectedAt = options.now()
        },
        onEnd: (error, socket) => {
          dialling = undefined
          if (socket === undefined) return callback(error ?? new DialError('connect', 'FAILED'), null)
          marks.readyAt = options.now()
          expectResponse = passOverInterim(socket)
          callback(null, socket)
        },
      })
    } catch (error) {
      callback(toDialError(error, { stage: 'connect', target }), null)
    }
  }

  const client = new Client(target.origin, {
    connect: dial,
    allowH2: false,
    pipelining: 1,
    // The deadline of the POST covers everything; these two would only measure idle time.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
    keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN_MS,
    maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
  })
  return {
    client,
    isTls: target.origin.startsWith('https:'),
    marks,
    expectResponse: () => expectResponse(),
    destroy: () => {
      dialling?.destroy()
      client.destroy().catch(() => {})
    },
  }
}

/** Dials, and calls `onEnd` exactly once: with a socket that is ready for HTTP, or with the error. */
function dialSocket(
  target: ConnectionTarget,
  options: ConnectionOptions,
  report: { onConnected: () => void; onEnd: (error: DialError | OwnFault | null, socket?: Socket) => void },
): Socket {
  const url = new URL(target.origin)
  const isTls = url.protocol === 'https:'
  const socket = isTls ? connectTls(buildTlsOptions(target, url, options)) : connectTcp(buildTcpOptions(target, url))
  let stage: 'connect' | 'tls' = 'connect'
  let isOver = false
  const end = (error: DialError | OwnFault | null) => {
    if (isOver) return
    isOver = true
    limit.cancel()
    if (error === null) return report.onEnd(null, socket)
    socket.destroy()
    report.onEnd(error)
  }
  const limit = startDeadline(options.watch, options.connectTimeoutMs, () => end(judgeTimeout()))
  const judgeTimeout = () =>
    limit.stalledMs() > options.connectTimeoutMs ? new OwnFault('STALLED') : new DialError(stage, 'CONNECT_TIMEOUT')
  socket.setNoDelay(true)
  // The first listener, so before the TLS handshake: the name must not be sent to an unchecked address.
  socket.prependOnceListener('connect', () => {
    if (!isPinned(socket, target)) return end(new DialError('connect', 'ADDRESS_CHANGED'))
    stage = 'tls'
    report.onConnected()
    if (!isTls) end(null)
  })
  if (isTls) socket.once('secureConnect', () => end(null))
  // Both events repeat when a connection in use closes; creating an error costs a stack trace.
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (!isOver) end(toDialError(error, { stage, target }))
  })
  socket.once('close', () => {
    if (!isOver) end(new DialError(stage, 'CLOSED'))
  })
  return socket
}

function toDialError(
  error: unknown,
  { stage, target }: { stage: DialError['stage']; target: ConnectionTarget },
): DialError | OwnFault {
  const isIpv4 = target.addresses.every(({ family }) => family === 4)
  const own = findDialFault(error, isIpv4)
  return own === undefined ? new DialError(stage, readErrorCode(error)) : new OwnFault(own)
}

function buildTcpOptions(target: ConnectionTarget, url: URL) {
  const dialled = target.addresses.slice(0, MAX_DIALLED_ADDRESSES)
  return {
    // A literal is dialled directly; for a name the socket uses only the look-up below.
    host: dialled.length === 1 ? dialled[0]!.address : target.hostname,
    port: effectivePort(url),
    autoSelectFamily: dialled.length > 1,
    autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    lookup: (_hostname: string, _options: unknown, callback: (error: null, addresses: ResolvedAddress[]) => void) =>
      callback(null, dialled),
  }
}

function buildTlsOptions(target: ConnectionTarget, url: URL, options: ConnectionOptions) {
  const isLiteral = parseAddress(target.hostname) !== undefined
  return {
    ...buildTcpOptions(target, url),
    // SNI allows names only (RFC 6066); a literal is compared with the certificate's addresses.
    servername: isLiteral ? '' : target.hostname,
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2' as const,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot disable it.
    rejectUnauthorized: true,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  }
}

/** Whether the socket's peer is one of the checked addresses. */
function isPinned(socket: Socket, target: ConnectionTarget): boolean {
  const actual = parseAddress(socket.remoteAddress ?? '')
  return target.addresses.some(({ address }) => {
    const checked = parseAddress(address)
    return checked !== undefined && checked.family === actual?.family && checked.value === actual.value
  })
}

/** The code of a Node error, without its text, which contains addresses. */
export function readErrorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : 'FAILED'
}
