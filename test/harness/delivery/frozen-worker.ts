import type { TestDatabase } from '../database/database.ts'
import type { ServiceProcess } from '../process/service-process.ts'

/**
 * Stops a process at what it does now, so that no limit of its attempt passes while a test prepares its end, and gives it a
 * lease that outlasts every test: what it holds can be taken over for the loss of its lock alone.
 */
export async function freezeWorker({ pool }: TestDatabase, { pid, signal }: ServiceProcess): Promise<void> {
  signal('SIGSTOP')
  const text = `update delivery_worker set lease_until = now() + interval '1 hour' where worker_id like $1`
  await pool.query(text, [`%:${pid}:%`])
}
