import pg from 'pg'
import { systemClock } from '../../base/clock.ts'
import { listHosts } from './host-list.ts'
import { buildPrimaryChoice, type PrimaryAnswer, type PrimaryChoice, type ServerProbe } from './primary-choice.ts'

/** Timeout of a query to a server, its connection included. */
const ASK_LIMIT_MS = 2_000

/** A server in recovery cannot name the file of a position. */
const STANDING = `select pg_is_in_recovery() as is_standby,
  current_setting('default_transaction_read_only')::boolean as is_read_only,
  case when not pg_is_in_recovery()
    then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint end as timeline`

/** The choices of this process by connection string, so that its pools and its listener use one primary. */
const choices = new Map<string, PrimaryChoice>()

/** The choice between the servers of a connection string; undefined when it names one: nothing is chosen or watched. */
export function findPrimaryChoice(connectionString: string | undefined): PrimaryChoice | undefined {
  if (!connectionString?.includes(',')) return undefined
  const hosts = listHosts(connectionString)
  if (hosts.length === 1) return undefined
  const known = choices.get(connectionString)
  if (known) return known
  const choice = buildPrimaryChoice(hosts, { buildProbe, clock: systemClock })
  choices.set(connectionString, choice)
  return choice
}

/** Asks a server over a connection of its own, which stays open between two questions. */
function buildProbe(connectionString: string): ServerProbe {
  let opening: Promise<pg.Client> | undefined
  let asking: Promise<PrimaryAnswer | 'standby'> | undefined

  async function open(): Promise<pg.Client> {
    const client = new pg.Client({
      ...{ connectionString, application_name: 'signalbox primary' },
      ...{ connectionTimeoutMillis: ASK_LIMIT_MS, query_timeout: ASK_LIMIT_MS },
    })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  function close(): void {
    // Destroyed at once: the server may not answer a termination message.
    void opening?.then((client) => streamOf(client).destroy()).catch(() => undefined)
    opening = undefined
  }

  async function ask(): Promise<PrimaryAnswer | 'standby'> {
    try {
      opening ??= open()
      const client = await opening
      const { rows } = await client.query<{ is_standby: boolean; is_read_only: boolean; timeline: number }>(STANDING)
      const [row] = rows
      if (!row || row.is_standby) return 'standby'
      return { isReadOnly: row.is_read_only, timeline: Number(row.timeline) }
    } catch (error) {
      close()
      throw error
    }
  }

  return {
    // A server with a pending query is not queried twice.
    ask: () => {
      asking ??= ask().finally(() => {
        asking = undefined
      })
      return asking
    },
    close,
  }
}

const streamOf = (client: pg.Client) => (client as unknown as ClientParts).connection.stream

/** Parts of the driver's client that its types leave out or declare read-only. */
interface ClientParts {
  host: string
  port: number
  connection: {
    stream: { destroyed: boolean; destroy(error?: Error): void }
    on(event: 'parameterStatus', listen: (message: { parameterName: string; parameterValue: string }) => void): void
  }
}

/**
 * The driver's client. Where its connection string names several hosts, which the driver does not know, it connects to
 * the primary among them, refuses a standby, and is ended when another server becomes the primary.
 */
export class HostClient extends pg.Client {
  readonly #choice: PrimaryChoice | undefined
  #hasEnded = false
  #isStandby = false

  constructor(config: pg.ClientConfig = {}) {
    const choice = findPrimaryChoice(config.connectionString)
    super(choice ? { ...config, connectionString: listHosts(config.connectionString ?? '')[0]! } : config)
    this.#choice = choice
    if (!choice) return
    const { connection } = this as unknown as ClientParts
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.#isStandby = parameterValue === 'on'
    })
  }

  override connect(): Promise<pg.Client>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    if (!this.#choice && callback) super.connect(callback)
    else {
      const connected = this.#choice ? this.#connectToPrimary(this.#choice) : super.connect()
      if (!callback) return connected
      connected.then(() => (callback as (error?: Error) => void)(), callback)
    }
    return undefined
  }

  override end(): Promise<void>
  override end(callback: (error: Error) => void): void
  override end(callback?: (error: Error) => void): Promise<void> | undefined {
    this.#hasEnded = true
    if (!callback) return super.end()
    super.end(callback)
    return undefined
  }

  async #connectToPrimary(choice: PrimaryChoice): Promise<pg.Client> {
    const endUse = choice.use()
    let host: string | undefined
    try {
      host = await choice.find()
      const parts = this as unknown as ClientParts
      // A destroyed socket would open again.
      if (this.#hasEnded || parts.connection.stream.destroyed) throw new Error('Connection terminated')
      this.#aim(choice, host, endUse)
      await super.connect()
      if (!this.#isStandby && choice.isPrimary(host)) return this
      throw Object.assign(new Error('the server is not the primary'), { code: '25006' })
    } catch (error) {
      if (host !== undefined) choice.distrust(host)
      streamOf(this).destroy()
      endUse()
      throw error
    }
  }

  /** Sets the server of the connection, and lets the choice know of its life. */
  #aim(choice: PrimaryChoice, host: string, endUse: () => void): void {
    const parts = this as unknown as ClientParts
    const { hostname, port } = new URL(host)
    parts.host = decodeURIComponent(hostname).replace(/^\[(.+)\]$/, '$1')
    parts.port = Number(port || 5432)
    const leave = choice.enter({
      host,
      end: () =>
        streamOf(this).destroy(Object.assign(new Error('another server is the primary'), { code: 'ECONNRESET' })),
    })
    this.on('error', () => choice.distrust(host))
    this.once('end', () => {
      leave()
      endUse()
    })
  }
}
