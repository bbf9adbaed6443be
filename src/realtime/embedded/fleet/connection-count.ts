import type { Database } from '../../../postgres/statement/database.ts'
import { sumConnections } from './fleet.store.ts'

/** Age of the last heartbeat up to which the connections of a process count. */
const LIVING_MS = 15_000

/** The open connections of the embedded server, over all processes; undefined while no process runs it. */
export async function countOpenConnections(db: Database, now: Date): Promise<number | undefined> {
  const { processes, connections } = await sumConnections(db, { since: new Date(now.getTime() - LIVING_MS) })
  return processes > 0 ? connections : undefined
}
