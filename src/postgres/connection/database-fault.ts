import { connectClient } from './connect-limit.ts'
import { endClient, openClient } from './listener.ts'

/** The fault of the database: it cannot be reached, or refuses changes. Undefined without one. */
export async function findDatabaseFault(connectionString: string): Promise<unknown> {
  const client = openClient(connectionString, 'signalbox start')
  try {
    await connectClient(client)
    const { rows } = await client.query("select current_setting('transaction_read_only')::boolean as is_read_only")
    return rows[0].is_read_only ? Object.assign(new Error('the database is read-only'), { code: '25006' }) : undefined
  } catch (error) {
    return error
  } finally {
    endClient(client)
  }
}
