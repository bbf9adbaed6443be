import { endClient, openClient } from './listener.ts'

/** Why the database cannot be worked with now: it cannot be reached, or takes no changes. Undefined when it can. */
export async function findDatabaseFault(connectionString: string): Promise<unknown> {
  const client = openClient(connectionString, 'signalbox start')
  try {
    await client.connect()
    const { rows } = await client.query("select current_setting('transaction_read_only')::boolean as is_read_only")
    return rows[0].is_read_only ? Object.assign(new Error('the database is read-only'), { code: '25006' }) : undefined
  } catch (error) {
    return error
  } finally {
    endClient(client)
  }
}
