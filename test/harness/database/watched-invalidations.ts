import pg from 'pg'
import { waitFor } from '../run/wait.ts'
import type { TestDatabase } from './database.ts'
import { sendSeen } from './statement-end.ts'

/** The channel on which triggers notify of changes (`invalidate` in the migrations). */
const CHANNEL = 'signalbox_change'

/** Changes of one request as triggers and closing statements report them. */
export interface WatchedInvalidations extends AsyncDisposable {
  /** Forgets what was noted until now. Uses no connection of the service. */
  begin(): Promise<void>
  /** The invalidations since `begin`, and those of them that the process which made the change does not get with its last statement. */
  read(): Promise<{ sent: readonly string[]; missing: readonly string[] }>
}

/** Watches the invalidations of a database: those that triggers send, and those that statements of its pool return. */
export async function watchInvalidations(database: TestDatabase): Promise<WatchedInvalidations> {
  let sent: string[] = []
  let returned: string[] = []
  watchAnswers(database.pool, (invalidations) => returned.push(...invalidations))
  const listener = new pg.Client(database.connectionString)
  await listener.connect()
  listener.on('notification', ({ payload = '' }) => sent.push(payload))
  await listener.query(`listen ${CHANNEL}`)
  /** Waits until every notification of earlier commits has arrived: they arrive in the order of the commits. */
  const settle = async () => {
    const mark = `mark ${crypto.randomUUID()}`
    await listener.query('select pg_notify($1, $2)', [CHANNEL, mark])
    await waitFor('the notifications', () => sent.includes(mark))
    sent = sent.filter((note) => note !== mark)
  }
  /** Whether the process drops what a note names: by this note, or by one that names the owner of the session or key. */
  const isReturned = async (note: string): Promise<boolean> => {
    // Wakes the workers of provisioning; nothing is held of it.
    if (note === 'p') return true
    if (returned.includes('*') || returned.includes(note)) return true
    const [kind, id] = note.split(':')
    if (kind !== 's' && kind !== 'k') return false
    const table = kind === 's' ? 'session' : 'api_key'
    const { rows } = await listener.query(`select "user" from ${table} where document_id = $1`, [id])
    return returned.includes(`u:${rows[0]?.user}`)
  }
  return {
    begin: async () => {
      await settle()
      sent = []
      returned = []
    },
    read: async () => {
      await settle()
      const missing: string[] = []
      for (const note of sent) if (!(await isReturned(note))) missing.push(note)
      return { sent: [...sent], missing }
    },
    [Symbol.asyncDispose]: () => listener.end(),
  }
}

/** Passes on the column `invalidations` of all answers that the pool gets. */
function watchAnswers(pool: pg.Pool, onInvalidations: (invalidations: string[]) => void): void {
  const watched = new WeakSet<pg.PoolClient>()
  pool.on('acquire', (client) => {
    if (watched.has(client)) return
    watched.add(client)
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    const watch = (...args: unknown[]) => {
      if (typeof args.at(-1) === 'function') return query(...args)
      return sendSeen(query, args, (error, result) => {
        const invalidations = (result as pg.QueryResult | undefined)?.rows?.[0]?.invalidations
        if (typeof invalidations === 'string') onInvalidations(invalidations.split(','))
        return [error, result]
      })
    }
    Object.assign(client, { query: watch })
  })
}
