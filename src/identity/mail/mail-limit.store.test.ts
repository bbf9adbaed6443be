import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { systemClock } from '../../base/clock.ts'
import type { UserId } from '../../base/id.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { listWebhookMailRooms } from './mail-limit.store.ts'
import { insertMails } from './outbox.store.ts'

const ids = buildIdMaker(systemClock, systemRandom)
const ADA = 'ada@b.test'

const database = await openForFile(createTestDatabase())
const { db } = database
beforeEach(() => database.pool.query('delete from mail_outbox'))

const query = (text: string, values: unknown[] = []) => database.pool.query(text, values)
const insert = (tx: Database, to: readonly string[], kind = 'webhook') =>
  insertMails(
    tx,
    to.map((email) => ({ id: ids.next<'mail'>(), kind, to: email, content: 'sealed', expiresAt: new Date() })),
    // The clock of a process, which no limit reads.
    new Date('2020-01-01T00:00:00.000Z'),
  )
const repeat = (email: string, count: number) => Array.from({ length: count }, () => email)
const list = async (tx: Database, emails: readonly string[]) =>
  (await listWebhookMailRooms(tx, { users: emails.map(() => ids.next() as UserId), emails })).map(({ room }) => room)
const roomOf = async (email = ADA) => (await inTransaction(db, (tx) => list(tx, [email])))[0]
const age = (interval: string) => query(`update mail_outbox set queued_at = queued_at - $1::interval`, [interval])

test('an address gets 12 mails of a kind in an hour, in every spelling, whatever another one or kind gets', async () => {
  expect(await roomOf()).toBe(12)
  await insert(db, [...repeat(ADA, 4), ...repeat('Ada@B.test', 3), ...repeat('bob@b.test', 9)])
  await insert(db, repeat(ADA, 5), 'reset')
  expect([await roomOf(), await roomOf('ADA@b.test'), await roomOf('bob@b.test')]).toEqual([5, 5, 3])
  await insert(db, repeat(ADA, 9))
  expect(await roomOf()).toBe(0)
})

test('an hour and a day are those of the database, whatever the clock of the writing process says', async () => {
  await insert(db, repeat(ADA, 12))
  await age('59 minutes')
  expect(await roomOf()).toBe(0)
  await age('1 minute')
  expect(await roomOf()).toBe(12)
  for (let hour = 0; hour < 3; hour += 1) {
    await insert(db, repeat(ADA, 12))
    await age('2 hours')
  }
  expect(await roomOf()).toBe(0)
  await age('16 hours 59 minutes')
  expect(await roomOf()).toBe(0)
  await age('1 minute')
  expect(await roomOf()).toBe(12)
})

test('parallel transactions pass the limit by none, and those with the same addresses in another order do not block', async () => {
  const write = (emails: readonly string[]) =>
    inTransaction(db, async (tx) => {
      const rooms = await listWebhookMailRooms(tx, { users: emails.map(() => ids.next() as UserId), emails })
      if (rooms.every(({ room }) => room > 0)) await insert(tx, emails)
    })
  const both = [ADA, 'bob@b.test']
  await Promise.all(Array.from({ length: 20 }, (_, index) => write(index % 2 ? both : both.toReversed())))
  const { rows } = await query('select recipient, count(*)::int as mails from mail_outbox group by 1 order by 1')
  expect(rows).toEqual(both.map((recipient) => ({ recipient, mails: 12 })))
})

test('the count reads no more rows than the limit, by the index', async () => {
  await query(`insert into mail_outbox (document_id, kind, recipient, status, due_at, expires_at, created_at, ended_at)
    select gen_random_uuid(), 'webhook', 'user' || n || '@b.test', 'sent', now(), now(), now(), now() from generate_series(1, 5000) n`)
  await query('analyze mail_outbox')
  const { rows } = await query(`explain (format json) select m.queued_at from mail_outbox m
    where email_key(m.recipient) = email_key('${ADA}') and m.kind = 'webhook' and m.queued_at > now() - interval '1 day'
    order by m.queued_at desc limit 48`)
  expect(JSON.stringify(rows)).toContain('mail_outbox_recipient_idx')
  expect(JSON.stringify(rows)).not.toContain('Seq Scan')
})
