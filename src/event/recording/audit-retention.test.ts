import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'

const DAY_MS = 24 * 3_600_000

/** Writes `count` audit entries of an age. */
const INSERT = `
  insert into audit_log (document_id, action, outcome, created_at)
  select gen_random_uuid(), 'aged', 'success', $1 from generate_series(1, $2::int)`

test('audit entries are deleted in batches once they are older than AUDIT_RETENTION_DAYS, and none with 0', async () => {
  await using app = await createTestApp({ env: { AUDIT_RETENTION_DAYS: '30' } })
  const { pool } = app.database
  const at = (ageMs: number) => new Date(app.clock.now() - ageMs)
  await pool.query(INSERT, [at(30 * DAY_MS + 1), 2_001])
  await pool.query(INSERT, [at(30 * DAY_MS), 1])
  await using keeper = await createTestApp({
    ...{ database: app.database, clock: app.clock },
    env: { AUDIT_RETENTION_DAYS: '0' },
  })
  expect(await keeper.app.maintenance.sweep()).toMatchObject({ auditEntries: 0 })
  expect(await app.app.maintenance.sweep()).toMatchObject({ auditEntries: 2_001 })
  const { rows } = await pool.query("select count(*) as kept from audit_log where action = 'aged'")
  expect(rows).toEqual([{ kept: 1 }])
})

test('audit entries are kept for a year without a setting', async () => {
  await using app = await createTestApp()
  const at = (ageMs: number) => new Date(app.clock.now() - ageMs)
  await app.database.pool.query(INSERT, [at(365 * DAY_MS), 1])
  await app.database.pool.query(INSERT, [at(365 * DAY_MS + 1), 1])
  expect(await app.app.maintenance.sweep()).toMatchObject({ auditEntries: 1 })
})
