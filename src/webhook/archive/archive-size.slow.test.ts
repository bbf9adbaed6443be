import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { explainStatements, type PlanNode } from '../../../test/harness/plan/explain.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  findReplayedDays,
  hasOpenDelivery,
  listArchivedAccounts,
  listArchivedDays,
  readArchivePage,
} from './archive.store.ts'
import { exportArchive } from './export-archive.ts'
import { type ArchiveQuery, readArchive } from './read-archive.ts'
import { openFolder } from './storage/folder-storage.ts'
import type { Storage } from './storage/storage.ts'

/** Rows of one account on one day, in five row groups; beside them an account with few. */
const ROWS = 20_000
const GROUP_ROWS = 4_000
const DAY = { start: new Date('2026-09-01T00:00:00Z'), end: new Date('2026-09-02T00:00:00Z') }
const LIMIT = 100

const [large, small] = ['0190a5c0-0000-7000-8000-00000000000a', '0190a5c0-0000-7000-8000-00000000000b']

let database: TestDatabase
let folder: string

/** Ids that begin with the time, as those of the service. */
const ID = `(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid`

beforeAll(async () => {
  database = await createTestDatabase({ isOwn: true })
  folder = await mkdtemp(join(tmpdir(), 'signalbox-archive-'))
  await database.pool.query(
    `insert into webhook_dispatch_ended (document_id, webhook, event_id, event, account, status, attempts, is_test, created_at,
       updated_at, ended_at, last_attempt_at, last_status_code, last_duration_ms, worker)
     select ${ID}, gen_random_uuid(), ${ID}, 'a.b', case when n % 400 = 0 then $2::uuid else $1::uuid end, 'success', 1, false,
       at, at, at, at, 200, 12, 'w'
     from (select n, $3::timestamptz + n * interval '1 s' as at from generate_series(1, ${ROWS}) n) r`,
    [large, small, DAY.start],
  )
  await database.pool.query('vacuum analyze')
})
afterAll(async () => {
  await database[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** Rows that the statements of `work` read of a table and its indexes. */
async function countRead(work: (db: Database) => Promise<unknown>): Promise<number> {
  const read = (node: PlanNode) =>
    node['Relation Name'] || node['Index Name']
      ? ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1)
      : 0
  const explained = await explainStatements(database, work)
  return explained.flatMap(({ nodes }) => nodes).reduce((sum, node) => sum + read(node), 0)
}

test('each statement of an export reads a page, however large the ledger and the other accounts are', async () => {
  const after = { at: '2026-09-01T03:00:00Z', id: small }
  const given = { after, end: DAY.end, since: null, through: '2027-01-01T00:00:00Z', limit: LIMIT }
  for (const account of [large, small, null])
    for (const kind of ['deliveries', 'events'] as const)
      expect(await countRead((db) => readArchivePage(db, kind, { ...given, account }))).toBeLessThanOrEqual(6 * LIMIT)
  const before = new Date('2026-10-01T00:00:00Z')
  expect(await countRead((db) => Array.fromAsync(listArchivedAccounts(db, 'deliveries')))).toBeLessThan(20)
  for (const account of [large, small, null]) {
    expect(await countRead((db) => listArchivedDays(db, 'deliveries', { account, before }))).toBeLessThan(20)
    expect(await countRead((db) => findReplayedDays(db, { account, before }))).toBeLessThan(20)
    expect(await countRead((db) => hasOpenDelivery(db, { account, ...DAY }))).toBeLessThan(20)
  }
})

test('one row of a large day is found without reading the others', async () => {
  const storage = await openFolder(folder, { isWritten: true })
  const given = { db: database.db, database: 'home', createdBy: 'signalbox version 1.0.0', onFile: () => {} }
  const limits = { groupRows: GROUP_ROWS }
  const now = () => new Date('2026-09-03T12:00:00Z')
  const totals = await exportArchive({ ...given, storage, now, limits }, DAY.end)
  expect(totals).toEqual({ files: 2, rows: ROWS })
  let bytes = 0
  const counting: Storage = {
    ...storage,
    readRange: (name, start, end) => {
      bytes += end - start
      return storage.readRange(name, start, end)
    },
  }
  const read = async (query: Omit<ArchiveQuery, 'kinds'>) => {
    bytes = 0
    const found = await Array.fromAsync(readArchive(counting, { kinds: ['deliveries'], ...query }))
    return { found: found.length, bytes }
  }
  const all = await read({})
  expect(all.found).toBe(ROWS)
  const { rows } = await database.pool.query(
    'select document_id, event_id, webhook from webhook_dispatch_ended where account = $1 order by 1 offset 12000 limit 1',
    [large],
  )
  const [{ document_id: delivery, event_id: event, webhook }] = rows
  for (const query of [{ delivery }, { event }, { account: large, since: new Date('2026-09-01T05:00:00Z') }])
    expect((await read(query)).bytes).toBeLessThan(all.bytes / 3)
  expect((await read({ delivery })).found).toBe(1)
  expect((await read({ event })).found).toBe(1)
  expect((await read({ webhook })).found).toBe(1)
  expect((await read({ account: small })).bytes).toBeLessThan(all.bytes / 10)
  expect(await read({ delivery: randomUUID() })).toEqual({ found: 0, bytes: 0 })
  expect(await read({ until: DAY.start })).toEqual({ found: 0, bytes: 0 })
})
