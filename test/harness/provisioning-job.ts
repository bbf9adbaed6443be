import type pg from 'pg'
import { waitFor } from './wait.ts'

/**
 * Moves the jobs of provisioning on until none is held back by a transaction of another test: a job waits for every
 * transaction of the server that began before it. What a transaction of this database holds back stays so.
 */
export async function drainJobs(jobs: { drain(): Promise<boolean> }, pool: pg.Pool): Promise<void> {
  await waitFor('jobs of provisioning', async () => {
    await jobs.drain()
    const { rows } = await pool.query(
      `select from provisioning_job j join provisioning_target t on t.document_id = j.target
       where j.status = 'running' and t.is_actived and t.deleted_at is null
         and pg_snapshot_xmin(pg_current_snapshot()) <= j.begun_by
         and not exists (select from pg_stat_activity a where a.datname = current_database() and a.backend_xid is not null)`,
    )
    return rows.length === 0
  })
  // One that was released between the look and the last move.
  await jobs.drain()
}
