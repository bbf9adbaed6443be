import { Socket } from 'node:net'
import type pg from 'pg'
import { systemClock } from '../../base/clock.ts'
import { HostClient } from './host-client.ts'

/** Idle time before TCP keep-alive probes, which detect a lost peer and keep the connection known to middleboxes. */
export const KEEP_ALIVE_MS = 60_000

/** Keep-alive of the server: locks of a session whose process or path is lost are released within some 20 s. */
export const SERVER_KEEP_ALIVE = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3'

/** Grace after a limit, in which an answer may still be unread: after a stall of the process its timer fires first. */
const READ_FIRST_MS = 50

/** Maximum use of a connection to a read-only server: the next one may reach another server. */
const READ_ONLY_LIFE_MS = 1_000

/** Parameters that the server reports at each change (PostgreSQL, Frontend/Backend Protocol). */
const READ_ONLY_REPORTS = ['in_hot_standby', 'default_transaction_read_only']

/** Parameters of the server on a connection. */
interface Standing {
  openedAtMs: number
  /** Values of these parameters that mean read-only. */
  readOnly: Set<string>
}

const standings = new WeakMap<pg.ClientBase, Standing>()

/** Whether a connection should leave its pool: its server is a standby or read-only, and the next one may find another. */
export function shouldLeave(client: pg.ClientBase): boolean {
  const standing = standings.get(client)
  return (
    standing !== undefined && standing.readOnly.size > 0 && performance.now() - standing.openedAtMs >= READ_ONLY_LIFE_MS
  )
}

interface ParameterStatus {
  parameterName: string
  parameterValue: string
}

/** The socket of a connection and its messages; the driver's types leave them out. */
export interface ClientInternals {
  connection: { stream: Socket; on(event: 'parameterStatus', listen: (message: ParameterStatus) => void): void }
}

export interface ClientOptions {
  silenceLimitMs: number
  /** Whether the connection is idle, so that its silence means nothing. */
  isResting: (client: pg.ClientBase) => boolean
  /** Runs when a connection was found dead, before its statements fail. */
  onSilent: () => void
}

/** The driver's client, on a socket that closes when the server is silent for too long while a statement waits. */
export function buildClient({ silenceLimitMs, isResting, onSilent }: ClientOptions): typeof pg.Client {
  return class extends HostClient {
    constructor(config?: string | pg.ClientConfig) {
      const socket = new Socket()
      super({ ...(config as pg.ClientConfig), stream: () => socket })
      const standing: Standing = { openedAtMs: performance.now(), readOnly: new Set() }
      standings.set(this, standing)
      const { connection } = this as unknown as ClientInternals
      connection.on('parameterStatus', ({ parameterName: name, parameterValue: value }) => {
        if (!READ_ONLY_REPORTS.includes(name)) return
        if (value === 'on') standing.readOnly.add(name)
        else standing.readOnly.delete(name)
      })
      endWhenSilent(socket, silenceLimitMs, () => {
        if (isResting(this)) return false
        onSilent()
        return true
      })
    }
  }
}

/** Closes a socket that received nothing for `limitMs`, if `judge` agrees. */
function endWhenSilent(socket: Socket, limitMs: number, judge: () => boolean): void {
  socket.setTimeout(limitMs)
  // A callback of `setTimeout` would be called once: the first rest of the connection would end its guard.
  socket.on('timeout', () => {
    const { bytesRead, bytesWritten } = socket
    void systemClock.sleep(READ_FIRST_MS).then(() => {
      // A statement that was sent meanwhile has a limit of its own.
      if (socket.bytesRead !== bytesRead || socket.bytesWritten !== bytesWritten) return
      if (socket.destroyed || !judge()) return
      endSilent(socket)
    })
  })
}

/** Closes a socket with the error of a database that did not answer. */
export function endSilent(socket: Socket): void {
  socket.emit('error', Object.assign(new Error('the database did not answer'), { code: 'ETIMEDOUT' }))
  // With a reset: unsent data must not reach the server later, without a waiting caller. TCP only.
  if (socket.remotePort === undefined) socket.destroy()
  else socket.resetAndDestroy()
}
