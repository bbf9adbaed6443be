import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type buildConnector, Client } from 'undici'
import { parseAddress } from './address.ts'
import { passOverInterim } from './interim-response.ts'
import type { ResolvedAddress } from './resolve.ts'

/** How many addresses of an answer are tried in one connection attempt, and how long each before the next is tried too. */
const MAX_DIALLED_ADDRESSES = 4
const NEXT_ADDRESS_MS = 1_000

/** An idle connection is closed after this long: under the 5 s after which common servers close theirs, so that a POST seldom meets one that is closing. */
const KEEP_ALIVE_MS = 4_000
/** At most this long when a server announces a longer one. */
const KEEP_ALIVE_MAX_MS = 30_000

/** Largest response head taken, in bytes. */
const MAX_RESPONSE_HEADER_BYTES = 16_384

/** Where a connection goes: the origin for name, SNI and Host; the checked addresses for the socket. */
export interface ConnectionTarget {
  origin: string
  hostname: string
  addresses: readonly ResolvedAddress[]
}

/** How connections are made. `now` is monotonic milliseconds. */
export interface ConnectionOptions {
  connectTimeoutMs: number
  now: () => number
  /** Certificate authorities in place of the system's, in PEM. For tests and private deployments. */
  ca?: string | undefined
}

/** One connection that carries one POST at a time. */
export interface Connection {
  client: Client
  isTls: boolean
  /** When dialling began, the TCP connection stood, and it was ready for HTTP; null before. */
  marks: { dialledAt: number | null; connectedAt: number | null; readyAt: number | null }
  /** Says that a new response begins with the next bytes. */
  expectResponse(): void
  /** Ends it at once, also while it is still being made. */
  destroy(): void
}

/** A connection that did not come about. `code` is a constant fit for the ledger. */
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
 * Makes a connection that dials nothing but the checked addresses (docs/contract/webhooks.md#callback-guard): they are the only result of the socket's look-up, and the
 * address at the other end is compared once more when it stands. TLS 1.2 or newer with a verified certificate, HTTP/1.1, no proxy, no redirect, no session
 * resumption (so a certificate is looked at on each connection). undici never sends a written POST a second time.
 */
export function openConnection(target: ConnectionTarget, options: ConnectionOptions): Connection {
  const marks: Connection['marks'] = { dialledAt: null, connectedAt: null, readyAt: null }
  let dialling: Socket | undefined
  let expectResponse = () => {}

  const dial: buildConnector.connector = (_origin, callback) => {
    marks.dialledAt = options.now()
    marks.connectedAt = null
    marks.readyAt = null
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
  }

  const client = new Client(target.origin, {
    connect: dial,
    allowH2: false,
    pipelining: 1,
    // The deadline of the POST holds over all of it; these two would only measure silence.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
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

/** Dials, and calls `onEnd` exactly once: with a socket that is ready for HTTP, or with why not. */
function dialSocket(
  target: ConnectionTarget,
  options: ConnectionOptions,
  report: { onConnected: () => void; onEnd: (error: DialError | null, socket?: Socket) => void },
): Socket {
  const url = new URL(target.origin)
  const isTls = url.protocol === 'https:'
  const socket = isTls ? connectTls(buildTlsOptions(target, url, options)) : connectTcp(buildTcpOptions(target, url))
  let stage: 'connect' | 'tls' = 'connect'
  let isOver = false
  const end = (error: DialError | null) => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    if (error === null) return report.onEnd(null, socket)
    socket.destroy()
    report.onEnd(error)
  }
  const timer = setTimeout(() => end(new DialError(stage, 'CONNECT_TIMEOUT')), options.connectTimeoutMs)
  socket.setNoDelay(true)
  // First of all listeners, so before the handshake: a name must not even be said to an address that was not checked.
  socket.prependOnceListener('connect', () => {
    if (!isPinned(socket, target)) return end(new DialError('connect', 'ADDRESS_CHANGED'))
    stage = 'tls'
    report.onConnected()
    if (!isTls) end(null)
  })
  if (isTls) socket.once('secureConnect', () => end(null))
  socket.on('error', (error: NodeJS.ErrnoException) => end(new DialError(stage, readErrorCode(error))))
  socket.once('close', () => end(new DialError(stage, 'CLOSED')))
  return socket
}

function buildTcpOptions(target: ConnectionTarget, url: URL) {
  const dialled = target.addresses.slice(0, MAX_DIALLED_ADDRESSES)
  return {
    // A literal is dialled as it is; for a name the socket asks the look-up below and nothing else.
    host: dialled.length === 1 ? dialled[0]!.address : target.hostname,
    port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
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
    // SNI takes names only (RFC 6066); a literal is compared with the certificate's addresses.
    servername: isLiteral ? '' : target.hostname,
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2' as const,
    // Written out, so that NODE_TLS_REJECT_UNAUTHORIZED can't turn it off.
    rejectUnauthorized: true,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  }
}

/** Whether the socket's other end is one of the checked addresses. */
function isPinned(socket: Socket, target: ConnectionTarget): boolean {
  const actual = parseAddress(socket.remoteAddress ?? '')
  return target.addresses.some(({ address }) => {
    const checked = parseAddress(address)
    return checked !== undefined && checked.family === actual?.family && checked.value === actual.value
  })
}

/** The constant of a Node error, without its text, which names addresses. */
export function readErrorCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : 'FAILED'
}
