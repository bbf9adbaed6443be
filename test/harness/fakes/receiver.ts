import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { DEFAULT_LIMIT_MS } from '../run/wait.ts'

/** One received request. */
export interface ReceivedRequest {
  method: string
  path: string
  /** Names in lower case; a repeated header is joined with `, `. */
  headers: Record<string, string>
  body: Buffer
  /** The sender's port: the same for requests of one connection. */
  remotePort: number
  /** The name of the TLS handshake (SNI); `false` without one or without TLS. */
  servername: string | false
}

/** The behaviour for a request, on a real socket. */
export type Behaviour =
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: string | Buffer }
  /** Any bytes, then the connection stays or closes. */
  | { kind: 'raw'; bytes: string | Buffer; thenClose?: boolean }
  | { kind: 'redirect'; location: string; status?: number }
  /** Reads the request and never answers. */
  | { kind: 'hang' }
  /** Headers with a body length, then one byte of the body each `intervalMs`. */
  | { kind: 'drip'; status?: number; intervalMs: number }
  /** Headers with a body length of 10 GB, then as many bytes as the sender reads. */
  | { kind: 'endless'; status?: number }
  /** 10 MB of zeros in gzip: a few KB on the wire. */
  | { kind: 'gzip-bomb' }
  | { kind: 'reset-before-headers' }
  | { kind: 'reset-mid-body' }
  | { kind: 'close-before-headers' }
  | { kind: 'invalid-http' }
  /** Interim responses first, then 200. */
  | { kind: 'interim'; statuses: number[] }
  | { kind: 'no-content' }
  | { kind: 'huge-headers'; bytes: number }
  /** 200 with `connection: close`. */
  | { kind: 'close' }
  /** 200 after the promise, which the test resolves. */
  | { kind: 'wait'; until: Promise<void>; status?: number }

/** A receiver on loopback with switchable answers. */
export interface Receiver {
  port: number
  /** `http://127.0.0.1:<port>` or `https://127.0.0.1:<port>`. */
  origin: string
  /** Everything received, in order. */
  requests: ReceivedRequest[]
  /** The number of accepted connections. */
  connectionCount(): number
  openConnectionCount(): number
  /** Sets the behaviour for every later request. Initially: 200 with `{"ok":true}`. */
  behave(behaviour: Behaviour): void
  /** Sets the behaviour for the next requests, one each. */
  behaveNext(...behaviours: Behaviour[]): void
  /** Bytes of response bodies written by `endless` so far. */
  bytesPoured(): number
  /** The first `count` requests; rejects when there are fewer after `limitMs`, by default a minute. */
  waitFor(count: number, limitMs?: number): Promise<ReceivedRequest[]>
  /** Closes its connections at once, as a receiver does whose idle limit has passed. */
  closeConnections(): void
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Starts a receiver. With `tls` it serves HTTPS with that certificate. */
export async function startReceiver(
  options: { tls?: { key: string; cert: string }; host?: string } = {},
): Promise<Receiver> {
  const host = options.host ?? '127.0.0.1'
  const requests: ReceivedRequest[] = []
  const sockets = new Set<Socket>()
  const next: Behaviour[] = []
  const waiting = new Set<() => void>()
  const poured = { bytes: 0 }
  let behaviour: Behaviour = {
    kind: 'status',
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: '{"ok":true}',
  }
  let connections = 0

  const serve = (socket: Socket) => {
    socket.on('error', () => {})
    readRequests(socket, (request) => {
      requests.push(request)
      for (const wake of waiting) wake()
      respond(socket, next.shift() ?? behaviour, poured)
    })
  }
  const track = (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  }
  const server =
    options.tls === undefined
      ? createTcpServer({ noDelay: true }, serve)
      : createTlsServer({ ...options.tls, noDelay: true }, serve).on('tlsClientError', () => {})
  server.on('connection', track)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo

  const waitFor = (count: number, limitMs = DEFAULT_LIMIT_MS) => {
    const { promise, resolve, reject } = Promise.withResolvers<ReceivedRequest[]>()
    const late = () => reject(new Error(`received ${requests.length} of ${count} requests in ${limitMs} ms`))
    const timer = setTimeout(late, limitMs)
    const wake = () => {
      if (requests.length < count) return
      clearTimeout(timer)
      waiting.delete(wake)
      resolve(requests.slice(0, count))
    }
    waiting.add(wake)
    wake()
    return promise.finally(() => waiting.delete(wake))
  }
  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    port,
    origin: `${options.tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`,
    requests,
    connectionCount: () => connections,
    openConnectionCount: () => sockets.size,
    closeConnections: () => {
      for (const socket of sockets) socket.destroy()
    },
    behave: (value) => {
      behaviour = value
    },
    behaveNext: (...values) => {
      next.push(...values)
    },
    bytesPoured: () => poured.bytes,
    waitFor,
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Reads requests with a `content-length` from a connection, in sequence. */
function readRequests(socket: Socket, onRequest: (request: ReceivedRequest) => void) {
  let pending = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk])
    for (;;) {
      const headEnd = pending.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const [start = '', ...lines] = pending.toString('latin1', 0, headEnd).split('\r\n')
      const headers: Record<string, string> = {}
      for (const line of lines) {
        const colon = line.indexOf(':')
        const name = line.slice(0, colon).toLowerCase()
        const value = line.slice(colon + 1).trim()
        headers[name] = name in headers ? `${headers[name]}, ${value}` : value
      }
      const bodyEnd = headEnd + 4 + Number(headers['content-length'] ?? 0)
      if (pending.length < bodyEnd) return
      const [method = '', path = ''] = start.split(' ')
      const body = Buffer.from(pending.subarray(headEnd + 4, bodyEnd))
      pending = pending.subarray(bodyEnd)
      const servername = (socket as { servername?: string | false }).servername ?? false
      onRequest({ method, path, headers, body, remotePort: socket.remotePort ?? 0, servername })
    }
  })
}

function buildAnswer(status: number, headers: Record<string, string>, body: string | Buffer): Buffer {
  const bytes = Buffer.from(body)
  const lines = Object.entries({ 'content-length': String(bytes.length), ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`, 'latin1'), bytes])
}

function respond(socket: Socket, behaviour: Behaviour, poured: { bytes: number }) {
  switch (behaviour.kind) {
    case 'status':
      return socket.write(buildAnswer(behaviour.status, behaviour.headers ?? {}, behaviour.body ?? ''))
    case 'raw':
      return behaviour.thenClose ? socket.end(behaviour.bytes) : socket.write(behaviour.bytes)
    case 'redirect':
      return socket.write(buildAnswer(behaviour.status ?? 302, { location: behaviour.location }, ''))
    case 'hang':
      return undefined
    case 'drip':
      return drip(socket, behaviour)
    case 'endless':
      return pour(socket, behaviour, poured)
    case 'gzip-bomb':
      return socket.write(buildAnswer(200, { 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(10_000_000))))
    case 'reset-before-headers':
      return socket.resetAndDestroy()
    case 'reset-mid-body':
      return socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf', () =>
        setImmediate(() => socket.resetAndDestroy()),
      )
    case 'close-before-headers':
      return socket.end()
    case 'invalid-http':
      return socket.end('SSH-2.0-OpenSSH_9.9\r\n')
    case 'interim': {
      const interim = behaviour.statuses.map((status) => `HTTP/1.1 ${status} Interim\r\nx-interim: yes\r\n\r\n`)
      return socket.write(Buffer.concat([Buffer.from(interim.join('')), buildAnswer(200, {}, 'after')]))
    }
    case 'no-content':
      return socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    case 'huge-headers':
      return socket.write(buildAnswer(200, { 'x-filler': 'x'.repeat(behaviour.bytes) }, 'ok'))
    case 'close':
      return socket.end(buildAnswer(200, { connection: 'close' }, 'bye'))
    case 'wait':
      return void behaviour.until.then(() => socket.write(buildAnswer(behaviour.status ?? 200, {}, 'late')))
  }
}

function drip(socket: Socket, behaviour: { status?: number; intervalMs: number }) {
  socket.write(`HTTP/1.1 ${behaviour.status ?? 200} OK\r\ncontent-length: 1000000\r\n\r\n`)
  const timer = setInterval(() => socket.write('.'), behaviour.intervalMs)
  socket.on('close', () => clearInterval(timer))
}

function pour(socket: Socket, behaviour: { status?: number }, poured: { bytes: number }) {
  const chunk = Buffer.alloc(65_536, 'x')
  socket.write(`HTTP/1.1 ${behaviour.status ?? 200} OK\r\ncontent-length: 10000000000\r\n\r\n`)
  const more = () => {
    while (!socket.destroyed) {
      poured.bytes += chunk.length
      if (!socket.write(chunk)) return
    }
  }
  socket.on('drain', more)
  more()
}
