import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, DispatchId, WebhookId } from '../../base/id.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { deleteOldTold, endLeasedTurn, giveTurnBack, leaseDueTurn, noteTold, takeNotices } from './cell-notice.store.ts'
import { type DueNotice, listDueNotices, noteMails, queueTurns } from './notice.store.ts'

const NOW = new Date('2026-11-27T12:00:00.000Z')
const at = (seconds: number) => new Date(NOW.getTime() + seconds * 1000)

let account: AccountId
let other: AccountId

const database = await openForFile(createTestDatabase())
const { db } = database
beforeEach(async () => {
  for (const table of ['webhook_mail_notice', 'webhook_mail_turn', 'webhook_mail_told', 'account_fence'])
    await run(`delete from ${table}`)
  ;[account, other] = [await addAccount(), await addAccount()]
})

const run = async (text: string, ...values: unknown[]) => (await database.pool.query(text, values)).rows

async function addAccount(): Promise<AccountId> {
  const id = randomUUID() as AccountId
  await run(`insert into account (document_id, name, created_at, updated_at) values ($1, 'Acme', $2, $2)`, id, NOW)
  return id
}

/** A failing webhook of an account, noticed so many seconds behind `NOW`. */
async function fail(of = account, seconds = 0): Promise<WebhookId> {
  const webhook = randomUUID() as WebhookId
  await run(
    `insert into webhook (document_id, url, account, secret_encrypted, created_at, updated_at)
     values ($1, 'https://example.test/', $2, '', $3, $3)`,
    ...[webhook, of, NOW],
  )
  const notice = { webhook, account: of, dispatch: randomUUID() as DispatchId, lastError: null, lastStatusCode: 410 }
  await noteMails(db, [{ ...notice, kind: 'failing' }], at(seconds))
  await queueTurns(db, { collectS: 10, paceS: 100, limit: 100 })
  return webhook
}

const lease = (now: Date, on: Database = db) => leaseDueTurn(on, { now, leaseEnd: at(1_000) })
const list = (of = account) => inTransaction(db, (tx) => listDueNotices(tx, { account: of, limit: 100 }))
const end = (notices: readonly DueNotice[], now = at(20)) =>
  inTransaction(db, (tx) => endLeasedTurn(tx, { account, notices, now, nextAt: at(500) }))
const readTurn = async (of = account) =>
  (await run('select due_at, mailed_at from webhook_mail_turn where account = $1', of))[0]
const readNotices = () =>
  run('select webhook, kind, is_taken, mailed_at from webhook_mail_notice order by created_at, kind')

describe('the lease of a turn', () => {
  test('is of the account that is due first, at its time, and moves that turn alone', async () => {
    await fail(other, 5)
    await fail(account, 3)
    expect(await lease(at(12.999))).toBeUndefined()
    expect(await lease(at(13))).toBe(account)
    expect([(await readTurn()).due_at, (await readTurn(other)).due_at]).toEqual([at(1_000), at(15)])
    expect(await lease(at(14.999))).toBeUndefined()
    await run('update webhook_mail_turn set due_at = $2 where account = $1', account, at(14))
    expect([await lease(at(15)), await lease(at(15)), await lease(at(15))]).toEqual([account, other, undefined])
  })

  test('is given once, without a wait: the next process gets the next account', async () => {
    await fail(account)
    await fail(other, 1)
    await inTransaction(db, async (first) => {
      expect(await lease(at(20), first)).toBe(account)
      await inTransaction(db, async (second) => {
        await sql`set local lock_timeout = '1s'`.execute(second)
        expect(await lease(at(20), second)).toBe(other)
        expect(await lease(at(20), second)).toBeUndefined()
      })
    })
  })

  test('is not given of an account that is being moved', async () => {
    await fail()
    await run(`insert into account_fence (account, version, state) values ($1, 1, 'closed')`, account)
    expect(await lease(at(20))).toBeUndefined()
  })

  test('that is given back ends at the time given, or before, and frees its notices alone', async () => {
    const [mine] = [await fail(), await fail(account, 1), await fail(other)]
    await lease(at(20))
    const notices = await list()
    await takeNotices(db, [...notices, ...(await list(other))])
    const changed = notices.map((notice) => (notice.webhook === mine ? notice : { ...notice, noticedAt: at(2) }))
    await run('update webhook_mail_turn set due_at = $2 where account = $1', other, at(900))
    await giveTurnBack(db, { account, notices: changed, dueAt: at(40) })
    expect((await readNotices()).filter(({ is_taken: isTaken }) => !isTaken)).toMatchObject([{ webhook: mine }])
    expect([(await readTurn()).due_at, (await readTurn(other)).due_at]).toEqual([at(40), at(900)])
    await giveTurnBack(db, { account, notices, dueAt: at(50) })
    expect((await readTurn()).due_at).toEqual(at(40))
  })
})

describe('notices that are being told', () => {
  test('are those of these webhooks, kinds and times', async () => {
    const [taken, later, ofOther] = [await fail(), await fail(account, 1), await fail(other)]
    await run(
      `insert into webhook_mail_notice (webhook, kind, account, dispatch, created_at) values ($1, 'disabled', $2, $1, $3)`,
      ...[taken, account, NOW],
    )
    const keys = (await list()).map(({ webhook, kind }) => ({ webhook, kind, noticedAt: NOW }))
    await takeNotices(db, keys)
    const found = (await readNotices()).map((row) => [row.webhook, row.kind, row.is_taken])
    expect(found).toContainEqual([taken, 'failing', true])
    expect(found).toContainEqual([taken, 'disabled', false])
    expect(found).toContainEqual([later, 'failing', false])
    expect(found).toContainEqual([ofOther, 'failing', false])
  })

  test('are noted in home once each, by webhook, kind and time', async () => {
    const [first, second] = [await fail(), await fail(account, 1)]
    const [one, two] = (await list()) as [DueNotice, DueNotice]
    expect(await noteTold(db, [], NOW)).toEqual([])
    expect(await noteTold(db, [one], NOW)).toEqual([one])
    expect(await noteTold(db, [one, two], at(1))).toEqual([two])
    const again = { ...one, noticedAt: at(9) }
    const disabled = { ...two, kind: 'disabled' as const }
    expect(await noteTold(db, [two, again, disabled], at(2))).toEqual([again, disabled])
    expect(
      await run('select webhook, kind, noticed_at, told_at from webhook_mail_told order by told_at, kind'),
    ).toEqual([
      { webhook: first, kind: 'failing', noticed_at: NOW, told_at: NOW },
      { webhook: second, kind: 'failing', noticed_at: at(1), told_at: at(1) },
      { webhook: second, kind: 'disabled', noticed_at: at(1), told_at: at(2) },
      { webhook: first, kind: 'failing', noticed_at: at(9), told_at: at(2) },
    ])
  })

  test('are forgotten in home when they were told long ago', async () => {
    await fail()
    await fail(account, 1)
    const [one, two] = (await list()) as [DueNotice, DueNotice]
    await noteTold(db, [one], at(1))
    await noteTold(db, [two], at(2))
    expect(await deleteOldTold(db, at(1), 5)).toBe(0)
    expect(await deleteOldTold(db, at(2), 5)).toBe(1)
    expect(await run('select webhook from webhook_mail_told')).toEqual([{ webhook: two.webhook }])
  })
})

describe('the end of a leased turn', () => {
  test('keeps the notice of a webhook that fails, deletes what holds no more, and leaves all others', async () => {
    const [failing, gone, changed, ofOther] = [
      await fail(),
      await fail(account, 1),
      await fail(account, 2),
      await fail(other, 3),
    ]
    await run('update webhook set is_actived = false where document_id = $1', gone)
    await lease(at(20))
    const notices = await list()
    await takeNotices(db, notices)
    await run('update webhook_mail_notice set created_at = $2 where webhook = $1', changed, at(2.5))
    await end(notices)
    expect(await readNotices()).toEqual([
      { webhook: failing, kind: 'failing', is_taken: false, mailed_at: at(20) },
      { webhook: changed, kind: 'failing', is_taken: true, mailed_at: null },
      { webhook: ofOther, kind: 'failing', is_taken: false, mailed_at: null },
    ])
    // The notice that came meanwhile gets a turn.
    expect(await readTurn()).toEqual({ due_at: at(500), mailed_at: at(20) })
    expect(await readTurn(other)).toEqual({ due_at: at(13), mailed_at: null })
  })

  test('is the last one when no open notice of the account has a place in it', async () => {
    const [first, second] = [await fail(), await fail(account, 1)]
    await fail(other)
    await end((await list()).filter(({ webhook }) => webhook === first))
    expect((await readTurn()).due_at).toEqual(at(500))
    await run('update webhook_mail_notice set is_queued = false where webhook = $1', second)
    await end([])
    expect((await readTurn()).due_at).toBeNull()
    await run('update webhook_mail_notice set is_queued = true where webhook = $1', second)
    await end(await list(), at(30))
    expect(await readTurn()).toEqual({ due_at: null, mailed_at: at(30) })
  })

  test('ends the notices of these webhooks and kinds alone, of which only that of a failing one lasts', async () => {
    const [mine, beside] = [await fail(), await fail()]
    const add = (webhook: WebhookId, kind: string) =>
      run(
        `insert into webhook_mail_notice (webhook, kind, account, dispatch, is_queued, created_at)
         values ($1, $2, $3, $1, true, $4)`,
        ...[webhook, kind, account, NOW],
      )
    const disabled = await fail()
    await run(`delete from webhook_mail_notice where webhook = $1`, disabled)
    await run(
      `update webhook set is_actived = false, disabled_reason = 'consecutive-failures' where document_id = $1`,
      disabled,
    )
    await add(mine, 'recovered')
    await add(disabled, 'disabled')
    const notices = await list()
    expect(notices.every(({ holds }) => holds)).toBe(true)
    await end(
      notices.filter(({ webhook, kind }) => (webhook === mine && kind === 'failing') || webhook === disabled),
      at(20),
    )
    const left = (await readNotices()).map((row) => [row.webhook, row.kind, row.mailed_at])
    expect(left).toHaveLength(3)
    expect(left).toContainEqual([mine, 'failing', at(20)])
    expect(left).toContainEqual([mine, 'recovered', null])
    expect(left).toContainEqual([beside, 'failing', null])
  })

  test('locks the turn of its account alone', async () => {
    await fail()
    await fail(other)
    const notices = await list()
    await inTransaction(db, async (tx) => {
      await endLeasedTurn(tx, { account, notices, now: at(20), nextAt: at(500) })
      const free = await run('select account from webhook_mail_turn for update skip locked')
      expect(free).toEqual([{ account: other }])
    })
  })

  test('waits for a notice that another transaction gives the account a turn for', async () => {
    await fail()
    const notices = await list()
    const late = randomUUID()
    await whileHeld(
      db,
      async (holder) => {
        await sql`select from webhook_mail_turn where account = ${account} for update`.execute(holder)
        await sql`insert into webhook (document_id, url, account, secret_encrypted, created_at, updated_at)
          values (${late}, 'https://example.test/', ${account}, '', now(), now())`.execute(holder)
        await sql`insert into webhook_mail_notice (webhook, kind, account, dispatch, is_queued, created_at)
          values (${late}, 'failing', ${account}, ${late}, true, ${at(5)})`.execute(holder)
      },
      () => end(notices),
    )
    expect((await readTurn()).due_at).toEqual(at(500))
  })
})
