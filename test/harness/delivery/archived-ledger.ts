import { randomUUID } from 'node:crypto'
import type { TestDatabase } from '../database/database.ts'

/** A delivery that ended, with its event. Instants are texts of UTC. */
export interface EndedSpec {
  account?: string | null
  webhook?: string
  at: string
  /** Instead of `at`. */
  endedAt?: string
  status?: string
  /** Attempts before the one in the row. */
  earlier?: number
  isReplay?: boolean
}

/** Writes an event and its ended delivery; the last attempt is in the row. Returns their ids. */
export async function addEnded(
  { pool }: Pick<TestDatabase, 'pool'>,
  { account = null, webhook = randomUUID(), at, endedAt = at, status = 'success', earlier = 0, isReplay }: EndedSpec,
): Promise<{ id: string; event: string; webhook: string }> {
  const [id, event] = [randomUUID(), randomUUID()]
  await pool.query(
    `insert into event_occurrence (document_id, event, account, resource, action, resource_id, url, created_at, routed_at,
       publish_address, publish_detail)
     values ($1, 'invoice.paid', $2, 'invoice', 'paid', 'in_1', 'https://platform.example/in_1', $3, $3, '192.0.2.77',
       '{"note": "not-for-archives"}')`,
    [event, account, at],
  )
  await pool.query(
    `insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, is_test, created_at,
       updated_at, ended_at, last_attempt_at, last_status_code, last_duration_ms, worker, response_excerpt, response_headers,
       total_ms, first_byte_ms, attempt_trigger)
     values ($1, $2, $3, 'invoice.paid', $4, $5, $6, false, $7, $8, $8, $8, 200, 12, 'w', 'own-secret-echoed',
       '{"x-own": "own-secret-echoed"}', 12.5, 9.25, $9)`,
    [id, webhook, event, account, status, earlier + 1, at, endedAt, isReplay ? 'replay' : null],
  )
  await pool.query(
    `insert into webhook_attempt (dispatch, attempt, attempt_trigger, worker, started_at, duration_ms, status_code,
       error_class, response_excerpt, timings)
     select $1, n, 'schedule', 'w', $3, 7, 500, 'status', 'own-secret-echoed', '{"totalMs": 7.5}'
     from generate_series(1, $2::int) n`,
    [id, earlier, at],
  )
  return { id, event, webhook }
}
