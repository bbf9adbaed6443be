import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { addEnded } from '../../../test/harness/delivery/archived-ledger.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import {
  findReplayedDays,
  hasOpenDelivery,
  listArchivedAccounts,
  listArchivedDays,
  type PageInput,
  readArchivePage,
  takeExportLock,
} from './archive.store.ts'
import type { ArchiveKind } from './archive-kind.ts'

const NIL = '00000000-0000-0000-0000-000000000000'
const START = new Date('2026-09-02T00:00:00Z')
const END = new Date('2026-09-03T00:00:00Z')
const LAST = '2026-09-02T23:59:59.999Z'

let mine: string
let other: string
const database = await openForFile(createTestDatabase())
beforeEach(async () => {
  for (const table of ['webhook_dispatch_open', 'webhook_dispatch_ended', 'event_occurrence'])
    await database.pool.query(`delete from ${table}`)
  ;[mine, other] = [randomUUID(), randomUUID()].sort() as [string, string]
})

const add = (account: string | null, at: string, more: { endedAt?: string; isReplay?: boolean } = {}) =>
  addEnded(database, { account, at, ...more })

async function addOpen(account: string | null, at: Date): Promise<void> {
  await database.pool.query(
    `insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, next_attempt_at, created_at,
       updated_at)
     values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'invoice.paid', $1, 'pending', now(), $2, $2)`,
    [account, at],
  )
}

describe.each<[name: string, ownerOf: () => string | null, othersOf: () => (string | null)[]]>([
  ['an account', () => mine, () => [other, null]],
  ['none', () => null, () => [mine]],
])('the deliveries of %s', (_name, ownerOf, othersOf) => {
  const isOpen = (): Promise<boolean> => hasOpenDelivery(database.db, { account: ownerOf(), start: START, end: END })
  const ms = (at: Date, by: number): Date => new Date(at.getTime() + by)

  test.each([
    ['before the day', ms(START, -1), false],
    ['at its begin', START, true],
    ['at its end', ms(END, -1), true],
    ['on the next day', END, false],
  ])('of a day are open with one that was made %s: %s, %s', async (_when, at, isFound) => {
    expect(await isOpen()).toBe(false)
    for (const account of othersOf()) await addOpen(account, ms(START, 60_000))
    expect(await isOpen()).toBe(false)
    await addOpen(ownerOf(), at)
    expect(await isOpen()).toBe(isFound)
  })

  test('have days, up to the last one that has ended', async () => {
    for (const at of ['2026-08-31T10:00:00Z', '2026-08-31T23:59:59.999Z', '2026-09-02T00:00:00Z', LAST])
      await add(ownerOf(), at)
    await add(ownerOf(), END.toISOString())
    const days = ['2026-08-31', '2026-09-02']
    for (const kind of ['deliveries', 'events'] as const)
      expect(await listArchivedDays(database.db, kind, { account: ownerOf(), before: END })).toEqual(days)
    expect(await listArchivedDays(database.db, 'deliveries', { account: ownerOf(), before: ms(END, 1) })).toEqual([
      ...days,
      '2026-09-03',
    ])
  })

  test('have no days of others, nor any before all have ended', async () => {
    await add(ownerOf(), END.toISOString())
    const daysOf = (kind: ArchiveKind) => listArchivedDays(database.db, kind, { account: ownerOf(), before: END })
    expect([await daysOf('deliveries'), await daysOf('events')]).toEqual([[], []])
    for (const account of othersOf()) await add(account, '2026-09-01T10:00:00Z')
    // Rows of no account are picked from the days of all.
    const days = ownerOf() === null ? ['2026-09-01'] : []
    expect([await daysOf('deliveries'), await daysOf('events')]).toEqual([days, days])
  })

  test('are replayed on the days of their creation, by the last end', async () => {
    const owner = ownerOf()
    await add(owner, '2026-09-01T10:00:00Z', { isReplay: true, endedAt: '2026-09-04T01:00:00Z' })
    await add(owner, '2026-09-01T11:00:00Z', { isReplay: true, endedAt: '2026-09-04T02:00:00Z' })
    await add(owner, '2026-09-01T12:00:00Z', { endedAt: '2026-09-05T02:00:00Z' })
    await add(owner, LAST, { isReplay: true, endedAt: '2026-09-06T00:00:00Z' })
    await add(owner, END.toISOString(), { isReplay: true })
    for (const account of othersOf())
      await add(account, '2026-09-01T10:00:00Z', { isReplay: true, endedAt: '2026-09-09T00:00:00Z' })
    expect([...(await findReplayedDays(database.db, { account: owner, before: END }))]).toEqual([
      ['2026-09-01', new Date('2026-09-04T02:00:00Z')],
      ['2026-09-02', new Date('2026-09-06T00:00:00Z')],
    ])
  })

  test('are read page by page in the order of creation, none of them twice, those of others never', async () => {
    const owner = ownerOf()
    const ids: Record<ArchiveKind, string[]> = { deliveries: [], events: [] }
    for (const at of ['2026-09-02T00:00:00Z', '2026-09-02T10:00:00Z', '2026-09-02T10:00:00Z', LAST]) {
      const { id, event } = await add(owner, at)
      ids.deliveries.push(id)
      ids.events.push(event)
    }
    for (const account of othersOf()) await add(account, '2026-09-02T10:00:00Z')
    await add(owner, END.toISOString())
    for (const kind of ['deliveries', 'events'] as const) {
      const [first, ...more] = ids[kind]
      const sorted = [first, ...more.slice(0, 2).sort(), more[2]]
      const found: unknown[] = []
      let after: PageInput['after'] = { at: START.toISOString(), id: NIL }
      for (;;) {
        const page = await readArchivePage(database.db, kind, {
          ...{ account: owner, after, end: END, since: null, through: '2026-09-10T00:00:00Z', limit: 2 },
        })
        found.push(...page.rows.map((row) => row.document_id))
        expect(page.later).toBe(0)
        if (!page.last) break
        after = page.last
      }
      expect(found).toEqual(sorted)
    }
  })

  test('are of a pass by the time of their end, and those that end later are counted', async () => {
    const owner = ownerOf()
    const at = '2026-09-02T10:00:00Z'
    const [since, through] = ['2026-09-02T11:00:00.000Z', '2026-09-02T12:00:00.000Z']
    await add(owner, at, { endedAt: '2026-09-02T10:59:59.999Z' })
    const wanted = [
      await add(owner, at, { endedAt: since }),
      await add(owner, at, { endedAt: '2026-09-02T11:59:59.999Z' }),
    ]
    await add(owner, at, { endedAt: through })
    await add(owner, at, { endedAt: '2026-09-02T13:00:00Z' })
    for (const account of othersOf()) await add(account, at, { endedAt: '2026-09-02T13:00:00Z' })
    const page = await readArchivePage(database.db, 'deliveries', {
      ...{ account: owner, after: { at: START.toISOString(), id: NIL }, end: END, since, through, limit: 100 },
    })
    expect(page.rows.map((row) => row.document_id).sort()).toEqual(wanted.map(({ id }) => id).sort())
    expect(page.later).toBe(2)
  })
})

test('a delivery has the time at which it delivered, also one that was replayed without success', async () => {
  const [delivered, failed, replayed] = [
    await add(mine, '2026-09-02T10:00:00Z'),
    await add(mine, '2026-09-02T11:00:00Z'),
    await add(mine, '2026-09-02T12:00:00Z'),
  ]
  const set = 'update webhook_dispatch_ended set status = $2, delivered_at = $3 where document_id = $1'
  await database.pool.query(set, [failed.id, 'failed', null])
  await database.pool.query(set, [replayed.id, 'failed', '2026-09-02T09:00:00Z'])
  const { rows } = await readArchivePage(database.db, 'deliveries', {
    ...{ account: mine, after: { at: START.toISOString(), id: NIL }, end: END },
    ...{ since: null, through: '2026-09-10T00:00:00Z', limit: 9 },
  })
  const times = rows.map((row) => [row.document_id, row.delivered_at && new Date(row.delivered_at as string)])
  expect(times).toEqual([
    [delivered.id, new Date('2026-09-02T10:00:00Z')],
    [failed.id, null],
    [replayed.id, new Date('2026-09-02T09:00:00Z')],
  ])
})

test('the accounts of each kind are listed once each, by their ids', async () => {
  await add(other, LAST)
  await add(mine, LAST)
  await add(mine, LAST)
  await add(null, LAST)
  await database.pool.query('delete from webhook_dispatch_ended where account = $1', [other])
  const list = async (kind: ArchiveKind) => {
    const found: string[] = []
    for await (const account of listArchivedAccounts(database.db, kind)) found.push(account)
    return found
  }
  expect(await list('deliveries')).toEqual([mine])
  expect(await list('events')).toEqual([mine, other])
})

test('a thousand accounts and more are listed', async () => {
  const columns = `(document_id, event, account, resource, action, created_at)`
  await database.pool.query(
    `insert into event_occurrence ${columns}
     select gen_random_uuid(), 'invoice.paid', gen_random_uuid(), 'invoice', 'paid', now() from generate_series(1, 2001)`,
  )
  const found: string[] = []
  for await (const account of listArchivedAccounts(database.db, 'events')) found.push(account)
  expect(found).toEqual([...new Set(found)].sort())
  expect(found).toHaveLength(2001)
})

test('one export has the lock at a time, until it is given back', async () => {
  const [first, second] = [await database.pool.connect(), await database.pool.connect()]
  try {
    expect([await takeExportLock(first), await takeExportLock(second)]).toEqual([true, false])
    await first.query('select pg_advisory_unlock_all()')
    expect(await takeExportLock(second)).toBe(true)
  } finally {
    for (const client of [first, second]) client.release(true)
  }
})
