import type { TestApp } from './app.ts'

/** The values of a ledger row. Times are ages in milliseconds before the clock of the app. */
export interface LedgerRowSpec {
  webhook: string
  status: string
  isTest?: boolean
  createdAgeMs?: number
  endedAgeMs?: number
  dueAgeMs?: number
  leasedForMs?: number
}

/** Writes one ledger row in any state; returns its id. */
export async function addLedgerRow(app: TestApp, spec: LedgerRowSpec): Promise<string> {
  const at = (ageMs: number | undefined) => (ageMs === undefined ? null : new Date(app.clock.now() - ageMs))
  const { rows } = await app.database.pool.query(
    `insert into webhook_dispatch (document_id, webhook, event, event_id, status, attempts, is_test, next_attempt_at,
       ended_at, lease_until, created_at, updated_at)
     values (gen_random_uuid(), $1, 'contract.create', gen_random_uuid(), $2, 1, $3, $4, $5, $6, $7, $7)
     returning document_id as id`,
    [
      spec.webhook,
      spec.status,
      spec.isTest ?? false,
      at(spec.dueAgeMs),
      at(spec.endedAgeMs),
      spec.leasedForMs === undefined ? null : at(-spec.leasedForMs),
      at(spec.createdAgeMs ?? 0),
    ],
  )
  return rows[0].id
}

/** Creates a global webhook; returns its id. */
export async function addWebhook(app: TestApp): Promise<string> {
  const body = { url: 'https://hooks.example.com/', is_global: true }
  return (await app.admin('POST', '/api/v3/webhook/webhook', body)).body.data.document_id
}

/** Empties the ledger, the events and the webhooks, for an empty start of a test. */
export async function clearLedger(app: TestApp): Promise<void> {
  await app.database.pool.query('truncate webhook, event_occurrence, webhook_delivery_total cascade')
}
