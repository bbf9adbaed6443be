import { INDEX_ONLY_PLANS, openDatabase } from '../../../src/postgres/statement/database.ts'
import type { Break } from '../delivery/queue-under-test.ts'
import { waitFor } from '../run/wait.ts'
import type { TestDatabase } from './database.ts'
import { sendSeen } from './statement-end.ts'

/** As the workers of the service connect. */
export const WORKER_POOL = { applicationName: 'signalbox test', settings: INDEX_ONLY_PLANS, onError: () => {} }

const BREAKING = 'signalbox breaking'

/** A pool of one connection that is cut at a statement, `begin` and `commit` included. */
export function openBreakingDatabase(database: Pick<TestDatabase, 'connectionString' | 'pool'>, point: Break) {
  const { connectionString, pool } = database
  const opened = openDatabase({ ...WORKER_POOL, applicationName: BREAKING, connectionString, size: 1 })
  let sent = 0
  let isBroken = false
  opened.pool.on('connect', (client) => {
    const cut = () => {
      isBroken = true
      ;(client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
    }
    const send = client.query.bind(client) as (...input: unknown[]) => unknown
    const query = (...input: unknown[]) => {
      const isHere = sent === point.statement
      sent += 1
      if (isHere && point.at === 'before') cut()
      if (!isHere || point.at === 'before') return send(...input)
      return sendSeen(send, input, (error, result) => {
        if (error) return [error, result]
        cut()
        return [new Error('Connection terminated: the answer is lost'), undefined]
      })
    }
    Object.assign(client, { query })
  })
  const hasEnded = async () => {
    await waitFor('the end of the connection', async () => {
      const { rows } = await pool.query(
        'select from pg_stat_activity where datname = current_database() and application_name = $1',
        [BREAKING],
      )
      return rows.length === 0
    })
  }
  return { db: opened.db, hasBroken: () => isBroken, hasEnded, [Symbol.asyncDispose]: () => opened.close() }
}
