import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { readSummary } from '../../operations/dashboard/dashboard.store.ts'
import { foldWebhookCounts } from './webhook-count.store.ts'

const EVERY = 1_000

const database = await openForFile(createTestDatabase({ content: 'migrated' }))
beforeEach(() => query('truncate webhook cascade'))

const query = async (text: string, values: unknown[] = []) => (await database.pool.query(text, values)).rows

const readCounts = async () =>
  (await readSummary(database.db, { now: new Date(0), failures: 1, scope: 'all' })).webhooks

/** The same by the webhooks themselves. */
async function countThem() {
  const [row] = await query(`
    select count(*) filter (where is_actived)::int as active, count(*) filter (where not is_actived)::int as inactive,
      count(*) filter (where not is_actived and disabled_reason = 'consecutive-failures')::int as auto_disabled
    from webhook where deleted_at is null`)
  return row
}

const add = (count: number, isActived: boolean) =>
  query(
    `insert into webhook (document_id, url, is_global, is_actived, created_at, updated_at)
     select gen_random_uuid(), 'https://hooks.example.com/', true, $2, now(), now() from generate_series(1, $1::int)`,
    [count, isActived],
  )

/** Changes of up to two webhooks, by name. */
const CHANGES = {
  disable: `is_actived = false, disabled_reason = 'consecutive-failures'`,
  deactivate: 'is_actived = false, disabled_reason = null',
  activate: 'is_actived = true, disabled_reason = null',
  delete: 'deleted_at = now()',
  restore: 'deleted_at = null',
  rename: `name = 'renamed', consecutive_failures = consecutive_failures + 1`,
}

const SOME = '(select document_id from webhook order by document_id desc limit 2)'

const STEPS: Readonly<Record<string, () => Promise<unknown>>> = {
  ...Object.fromEntries(
    Object.entries(CHANGES).map(([name, change]) => [
      name,
      () => query(`update webhook set ${change} where document_id in ${SOME}`),
    ]),
  ),
  'add active ones': () => add(3, true),
  'add an inactive one': () => add(1, false),
  'add none': () => add(0, true),
  purge: () => query(`delete from webhook where document_id in ${SOME}`),
  fold: () => foldWebhookCounts(database.db, { limit: EVERY }),
}

describe('the counts of webhooks', () => {
  test('are zeros without any', async () => {
    expect(await readCounts()).toEqual({ active: 0, inactive: 0, auto_disabled: 0 })
  })

  test('agree with the webhooks after any changes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...Object.keys(STEPS)), { maxLength: 12 }), async (names) => {
        await query('truncate webhook cascade')
        for (const name of names) await STEPS[name]?.()
        expect(await readCounts()).toEqual(await countThem())
      }),
      { numRuns: 40 },
    )
  })

  test('of a change that is rolled back stay as they were', async () => {
    await add(2, true)
    const client = await database.pool.connect()
    await client.query('begin')
    await client.query('update webhook set is_actived = false')
    await client.query('rollback')
    client.release()
    expect(await readCounts()).toEqual({ active: 2, inactive: 0, auto_disabled: 0 })
  })
})

describe('folding', () => {
  const countRows = async () => (await query('select count(*)::int as rows from webhook_count'))[0].rows

  test('leaves one row with the same sums, and then does nothing', async () => {
    for (let count = 0; count < 5; count += 1) await add(1, count % 2 === 0)
    const before = await readCounts()
    expect(await foldWebhookCounts(database.db, { limit: EVERY })).toBe(5)
    expect(await countRows()).toBe(1)
    expect(await foldWebhookCounts(database.db, { limit: EVERY })).toBe(0)
    expect(await readCounts()).toEqual(before)
    expect(before).toEqual({ active: 3, inactive: 2, auto_disabled: 0 })
  })

  test('takes no more rows than it may', async () => {
    for (let count = 0; count < 4; count += 1) await add(1, true)
    expect(await foldWebhookCounts(database.db, { limit: 3 })).toBe(3)
    expect(await countRows()).toBe(2)
    expect(await readCounts()).toMatchObject({ active: 4 })
  })

  test('in several processes at once, beside changes, loses and doubles nothing', async () => {
    const changes = Array.from({ length: 12 }, () => add(1, true))
    const folds = Array.from({ length: 6 }, () => foldWebhookCounts(database.db, { limit: EVERY }))
    await Promise.all([...changes, ...folds])
    expect(await readCounts()).toEqual({ active: 12, inactive: 0, auto_disabled: 0 })
    await foldWebhookCounts(database.db, { limit: EVERY })
    expect(await readCounts()).toEqual(await countThem())
  })
})
