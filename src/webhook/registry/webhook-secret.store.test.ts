import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { MADE_AT, newId } from '../../../test/harness/database/identity-rows.ts'
import { countWaiting, whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { WebhookId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { secretsIn } from './webhook-secret.store.ts'

const COLUMNS = ['secret_encrypted', 'headers_encrypted', 'signing_key_encrypted'] as const
type Column = (typeof COLUMNS)[number]

const database = await openForFile(createTestDatabase())
const { db } = database
beforeEach(() => database.pool.query('delete from webhook'))

async function make(column: Column, sealed: string | null, id = newId<WebhookId>()): Promise<WebhookId> {
  // Names and public keys stand beside what is sealed.
  const open = {
    ...{ secret_encrypted: {}, headers_encrypted: { header_names: ['a'] } },
    signing_key_encrypted: { public_key: 'public' },
  }[column]
  const row = { document_id: id, url: 'https://a.test/', is_global: true, [column]: sealed, ...(sealed && open) }
  await db
    .insertInto('webhook')
    .values({ ...row, created_at: MADE_AT, updated_at: MADE_AT })
    .execute()
  return id
}
const read = (id: WebhookId) =>
  db.selectFrom('webhook').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()

describe.each(COLUMNS)('the ciphertexts of %s', (column) => {
  const { list, replace } = secretsIn(column)
  const seek = (after: string | null = null, limit = 10) =>
    inTransaction(db, (tx) => list(tx, { prefix: 'v1.new.', after, limit }))

  test('of older keys are listed by id, after one and up to a number', async () => {
    const ids = [newId<WebhookId>(), newId<WebhookId>(), newId<WebhookId>()].sort()
    for (const id of ids.toReversed()) await make(column, `v1.old.${id}`, id)
    await make(column, 'v1.new.a')
    await make(column, null)
    const all = ids.map((id) => ({ id, secretEncrypted: `v1.old.${id}` }))
    expect(await seek()).toEqual(all)
    expect(await seek(null, 2)).toEqual(all.slice(0, 2))
    expect(await seek(ids[0])).toEqual(all.slice(1))
    expect(await seek(ids[2])).toEqual([])
  })

  test('are replaced in one row alone, without another change of it', async () => {
    const [id, beside] = [await make(column, 'v1.old.a'), await make(column, 'v1.old.b')]
    const [before, besideBefore] = [await read(id), await read(beside)]
    await replace(db, id, 'v1.new.a')
    expect(await read(id)).toEqual({ ...before, [column]: 'v1.new.a' })
    expect(await read(beside)).toEqual(besideBefore)
  })

  test('are locked until the transaction ends', async () => {
    const id = await make(column, 'v1.old.a')
    await whileHeld(
      db,
      async (tx) => {
        await list(tx, { prefix: 'v1.new.', after: null, limit: 10 })
      },
      () => replace(db, id, 'v1.new.a'),
    )
    expect(await countWaiting(db)).toBe(0)
    expect((await read(id))[column]).toBe('v1.new.a')
  })
})
