import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, Id } from '../../base/id.ts'
import { defineRecord, type RecordOf, selectRecord } from './record.ts'
import { statement } from './statement.ts'

const member = defineRecord('account_member', ['document_id', 'account', 'user', 'created_at'], { user: 'userId' })
const contract = defineRecord('contract', ['document_id', 'status', 'deleted_at']).typed<{
  status: 'draft' | 'ended'
}>()
const NOW = new Date('2026-11-02T10:00:00.000Z')

const ID = '01990000-0000-7000-8000-000000000001'
const MEMBER = '01990000-0000-7000-8000-000000000002'

const database = await openForFile(createTestDatabase())
await database.pool.query(
  `with a as (insert into account (document_id, name, created_at, updated_at) values ($1, 'Own', $3, $3)),
       u as (insert into "user" (document_id, email, created_at, updated_at) values ($1, 'a@example.com', $3, $3))
     insert into account_member (document_id, account, "user", created_at, updated_at) values ($2, $1, $1, $3, $3)`,
  [ID, MEMBER, NOW],
)

const FOUND = { id: MEMBER, account: ID, userId: ID, createdAt: NOW }

test('a record has lists of its columns and members, each with the alias of its table', () => {
  expect(member.select()).toBe('document_id, account, "user", created_at')
  expect(member.select('m')).toBe('m.document_id, m.account, m."user", m.created_at')
  expect(member.members('m')).toBe('m.document_id as id, m.account, m."user" as "userId", m.created_at as "createdAt"')
  expect(contract.members()).toBe('document_id as id, status, deleted_at as "deletedAt"')
})

test('a statement and a query of the builder return the same record, also of an alias', async () => {
  const found = statement<RecordOf<typeof member>>(`select ${member.members('m')} from account_member m`)
  expect(await found(database.db)).toEqual([FOUND])
  const alone = selectRecord(database.db.selectFrom('account_member'), member)
  expect(await alone.execute()).toEqual([FOUND])
  const joined = database.db.selectFrom('account_member as m').innerJoin('account as a', 'a.document_id', 'm.account')
  expect(await selectRecord(joined, member, 'm').select('a.name').execute()).toEqual([{ ...FOUND, name: 'Own' }])
})

test('the types of a record are those of its keys, its checks and what is declared', () => {
  const typed: RecordOf<typeof member> = FOUND as RecordOf<typeof member>
  const account: AccountId = typed.account
  const ended: RecordOf<typeof contract> = { id: MEMBER as Id<'contract'>, status: 'ended', deletedAt: null }
  // @ts-expect-error A status that the declaration does not name.
  ended.status = 'unknown'
  // @ts-expect-error An id of another noun.
  typed.userId = account
  expect(account).toBe(ID)
})
