import { describe, expect, test } from 'vitest'
import { openSharedPull, type PullApp, type Pulled } from '../../../test/harness/delivery/pull-app.ts'
import { untilWaiting, whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { MAX_SCHEDULED_ATTEMPTS, RETRY_DELAYS_MS } from '../delivery/outcome.ts'
import type { SettledAttempts } from '../delivery/settle.ts'
import { acknowledge, LEASE_TOTAL_SECONDS } from './receipt.ts'

const MINUTE_MS = 60_000
const UNKNOWN = '01990000-0000-7000-8000-000000000000:1'

const shared = await openForFile(openSharedPull())

/** A webhook with deliveries that are leased. */
async function openLeased(count = 1) {
  const p = await shared.begin()
  const { id } = await p.makeWebhook()
  await p.emit(count)
  const leased = await p.take(id)
  return { p, id, leased, first: leased[0] as Pulled, [Symbol.asyncDispose]: () => p[Symbol.asyncDispose]() }
}
const statusesOf = async (p: PullApp, id: string, action: 'nack' | 'extend', receipts: string[], more: object = {}) =>
  (await p.change(id, action, { receipts, ...more })).map(({ status }) => status)

describe('a delivery that is given back', () => {
  test('is due at once, by a failed attempt, and the receipt of it is of no use any more', async () => {
    await using open = await openLeased(2)
    const { p, id, first } = open
    p.t.clock.advance(3_000)
    expect(await statusesOf(p, id, 'nack', [first.receipt, UNKNOWN])).toEqual(['returned', 'not_found'])
    expect(await p.listRows()).toMatchObject([
      { status: 'retrying', attempts: 1, last_error: 'returned', next_attempt_at: new Date(p.t.clock.now()) },
      { status: 'pending', attempts: 1, next_attempt_at: null },
    ])
    expect(await statusesOf(p, id, 'nack', [first.receipt])).toEqual(['returned'])
    expect(await p.settle(id, [first.receipt])).toEqual(['expired'])
    expect(await statusesOf(p, id, 'extend', [first.receipt])).toEqual(['expired'])
    const [again, ...others] = await p.take(id)
    expect(others).toEqual([])
    expect(again).toMatchObject({ id: first.id, attempt: 2 })
    expect(await statusesOf(p, id, 'nack', [first.receipt])).toEqual(['expired'])
    expect(await p.settle(id, [again!.receipt])).toEqual(['acknowledged'])
    expect(await statusesOf(p, id, 'nack', [again!.receipt])).toEqual(['expired'])
    // Its answer may have been lost; that of the attempt before was never one.
    expect(await p.settle(id, [again!.receipt, first.receipt])).toEqual(['acknowledged', 'expired'])
    expect((await p.listRows())[0]).toMatchObject({ status: 'success', attempts: 2 })
    const { body } = await p.call('GET', `/api/v3/webhook/dispatch/${first.id}`)
    expect(body.data.attempts_log).toMatchObject([
      { attempt: 1, error_class: 'returned', duration_ms: 3_000 },
      { attempt: 2, error_class: null },
    ])
  })

  test('is exhausted by the fifth, which counts for the webhook, so that a loop of returns ends', async () => {
    await using open = await openLeased()
    const { p, id, first } = open
    let receipt: string | undefined = first.receipt
    let last = ''
    for (let attempt = 1; attempt <= MAX_SCHEDULED_ATTEMPTS; attempt += 1) {
      last = receipt!
      expect(await statusesOf(p, id, 'nack', [last])).toEqual(['returned'])
      receipt = (await p.take(id))[0]?.receipt
    }
    expect(receipt).toBeUndefined()
    expect(await p.listRows()).toMatchObject([{ status: 'exhausted', attempts: 5, last_error: 'returned' }])
    const { body } = await p.call('GET', `/api/v3/webhook/webhook/${id}`)
    expect(body.data.consecutive_failures).toBe(1)
    expect(await statusesOf(p, id, 'nack', [first.receipt, last])).toEqual(['expired', 'returned'])
  })

  test('is no other webhook\u2019s, and none whose lease has ended', async () => {
    await using open = await openLeased()
    const { p, id, first } = open
    const other = await p.makeWebhook()
    for (const action of ['nack', 'extend'] as const)
      expect(await statusesOf(p, other.id, action, [first.receipt])).toEqual(['not_found'])
    p.t.clock.advance(MINUTE_MS)
    expect(await statusesOf(p, id, 'nack', [first.receipt])).toEqual(['expired'])
    await p.pass(0)
    expect(await p.listRows()).toMatchObject([{ last_error: 'lease_expired', attempts: 1 }])
    expect(await statusesOf(p, id, 'nack', [first.receipt])).toEqual(['expired'])
  })

  test('wakes a pull that waits', async () => {
    await using open = await openLeased()
    const { p, id, first } = open
    const waiting = p.take(id, { wait_seconds: 30 })
    await waitFor('the wait', () => p.t.app.pulls.waits.count() > 0)
    expect(await statusesOf(p, id, 'nack', [first.receipt])).toEqual(['returned'])
    let taken: Pulled[] | undefined
    void waiting.then((list) => {
      taken = list
    })
    await waitFor('the answer', () => {
      if (!taken) p.t.clock.advance(1_000)
      return taken !== undefined
    })
    expect(taken).toMatchObject([{ id: first.id, attempt: 2 }])
  })

  test('is one of many requests at once, which all say so, beside acknowledgements that win or lose', async () => {
    await using open = await openLeased(10)
    const { p, id, leased } = open
    const receipts = leased.map(({ receipt }) => receipt)
    const answers = await Promise.all([
      ...Array.from({ length: 4 }, () => statusesOf(p, id, 'nack', receipts)),
      ...Array.from({ length: 4 }, () => p.settle(id, receipts.toReversed()).then((list) => list.toReversed())),
    ])
    for (const row of await p.listRows()) {
      const index = leased.findIndex((item) => item.id === row.document_id)
      const said = new Set(answers.map((answer) => answer[index]))
      expect([...said].sort()).toEqual(row.status === 'success' ? ['acknowledged', 'expired'] : ['expired', 'returned'])
      expect(row.attempts).toBe(1)
    }
  })
})

describe('a lease that is extended', () => {
  test('ends later, is acknowledged until then, and fails at its new end', async () => {
    await using open = await openLeased(2)
    const { p, id, leased, first } = open
    p.t.clock.advance(59_999)
    const until = new Date(p.t.clock.now() + 300_000).toISOString()
    expect(await p.change(id, 'extend', { receipts: [first.receipt, UNKNOWN], lease_seconds: 300 })).toEqual([
      { receipt: first.receipt, status: 'extended', lease_until: until },
      { receipt: UNKNOWN, status: 'not_found', lease_until: null },
    ])
    await p.pass(1)
    expect(await p.listRows()).toMatchObject([{ status: 'pending' }, { status: 'retrying' }])
    expect(await p.change(id, 'extend', { receipts: [leased[1]!.receipt] })).toMatchObject([
      { status: 'expired', lease_until: null },
    ])
    await p.pass(299_998)
    expect(await p.listRows()).toMatchObject([{ status: 'pending' }, {}])
    await p.pass(1)
    const dueAt = new Date(Date.parse(until) + RETRY_DELAYS_MS[0])
    expect(await p.listRows()).toMatchObject([{ last_error: 'lease_expired', next_attempt_at: dueAt }, {}])
  })

  test('never ends earlier than before, nor later than an hour after the pull', async () => {
    await using open = await openLeased()
    const { p, id, first } = open
    const last = new Date(p.t.clock.now() + LEASE_TOTAL_SECONDS * 1_000).toISOString()
    const extend = (seconds: number) => p.change(id, 'extend', { receipts: [first.receipt], lease_seconds: seconds })
    expect(await extend(10)).toMatchObject([{ lease_until: first.lease_until }])
    for (let minutes = 0; minutes < 60; minutes += 9) {
      const [{ status, lease_until: until } = { status: '', lease_until: '' }] = await extend(600)
      expect(status).toBe('extended')
      expect(until! <= last).toBe(true)
      p.t.clock.advance(9 * MINUTE_MS)
    }
    expect(await extend(600)).toMatchObject([{ status: 'expired' }])
    await p.pass(0)
    expect(await p.listRows()).toMatchObject([{ last_error: 'lease_expired', attempts: 1 }])
  })

  test('and given back, or settled, by many requests at once does not block', async () => {
    await using open = await openLeased(10)
    const { p, id, leased } = open
    const receipts = leased.map(({ receipt }) => receipt)
    await Promise.all(
      Array.from({ length: 9 }, (_, turn) => {
        const list = turn % 2 ? receipts : receipts.toReversed()
        return turn < 6 ? statusesOf(p, id, 'extend', list, { lease_seconds: 600 }) : statusesOf(p, id, 'nack', list)
      }),
    )
    expect((await p.listRows()).map(({ last_error: error }) => error)).toEqual(receipts.map(() => 'returned'))
  })
})

describe('a receipt', () => {
  test('is judged behind who changes its webhook, or its row', async () => {
    await using open = await openLeased(3)
    const { p, id, leased } = open
    const { db } = p.t.database
    const ack = (index: number) => () => p.settle(id, [leased[index]!.receipt])
    const lockWebhook = (tx: Database) => tx.selectFrom('webhook').select('url').forUpdate().execute()
    expect(await whileHeld(db, lockWebhook, ack(0))).toEqual(['acknowledged'])
    const endLease = (tx: Database) =>
      tx
        .updateTable('webhook_dispatch_open')
        .set({ leased_until: null, next_attempt_at: new Date(p.t.clock.now()), fence: 2 })
        .where('document_id', '=', leased[1]!.id)
        .execute()
    expect(await whileHeld(db, endLease, ack(1))).toEqual(['expired'])
    const forged = `${leased[2]!.id}:7`
    expect(await statusesOf(p, id, 'extend', [leased[2]!.receipt, forged])).toEqual(['extended', 'expired'])
  })

  test('is told once to log, metrics and notices', async () => {
    await using open = await openLeased()
    const { p, id, first } = open
    const told: string[] = []
    const deps = { ...p.t.app.pulls, onSettled: ({ recorded }: SettledAttempts) => told.push(recorded[0]!.attempt.id) }
    const request = { db: p.t.database.db, id, scope: 'all' as const, receipts: [first.receipt] }
    expect(await acknowledge(deps, request)).toMatchObject([{ status: 'acknowledged' }])
    expect(told).toEqual([first.id])
  })
})

describe.each(['nack', 'extend'] as const)('%s', (action) => {
  test('locks the rows in the order of their ids, whatever that of the receipts', async () => {
    await using open = await openLeased(3)
    const { p, id, leased } = open
    const { db } = p.t.database
    const ordered = (some: readonly Pulled[]) => some.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    for (const isReversed of [false, true]) {
      const given = isReversed ? ordered(leased).toReversed() : ordered(leased)
      const ids = ordered(given).map((row) => row.id)
      const lock = (tx: Database, those: readonly string[]) =>
        tx
          .selectFrom('webhook_dispatch_open')
          .select('document_id')
          .where('document_id', 'in', [...those])
          .forUpdate()
          .skipLocked()
          .execute()
      const { statuses } = await inTransaction(db, async (holder) => {
        expect(await lock(holder, ids.slice(0, 1))).toHaveLength(1)
        const statuses = statusesOf(
          p,
          id,
          action,
          given.map((row) => row.receipt),
        )
        await untilWaiting(db, 1)
        expect(await lock(holder, ids.slice(1))).toHaveLength(2)
        return { statuses }
      })
      expect(new Set(await statuses)).toEqual(new Set([action === 'nack' ? 'returned' : 'extended']))
      leased.splice(0, 3, ...(action === 'nack' ? await p.take(id) : leased))
    }
  })

  test('is taken while the webhook is inactive, and refused once it is deleted', async () => {
    await using open = await openLeased(2)
    const { p, id, leased } = open
    await p.call('PATCH', `/api/v3/webhook/webhook/${id}/active`, { is_actived: false })
    expect(await statusesOf(p, id, action, [leased[0]!.receipt])).toEqual([action === 'nack' ? 'returned' : 'extended'])
    expect(await p.take(id).catch((error: Error) => error.message)).toContain('webhook_inactive')
    await p.call('DELETE', `/api/v3/webhook/webhook/${id}`)
    const path = `/api/v3/webhook/webhook/${id}/${action}`
    expect((await p.call('POST', path, { receipts: [leased[1]!.receipt] })).status).toBe(404)
  })

  test('needs webhook:pull, a webhook that pulls, and 1 to 100 receipts', async () => {
    const p = await shared.begin()
    const { id } = await p.makeWebhook()
    const path = `/api/v3/webhook/webhook/${id}/${action}`
    const made = await p.call('POST', '/api/v3/identity/api-key', { name: 'other', permissions: ['webhook:find-one'] })
    expect((await p.t.callAs(made.body.data.key)('POST', path, { receipts: [UNKNOWN] })).status).toBe(403)
    const pushed = await p.call('POST', '/api/v3/webhook/webhook', {
      ...{ account: p.account, url: 'https://hooks.example.com/' },
    })
    const other = `/api/v3/webhook/webhook/${pushed.body.data.document_id}/${action}`
    expect(await p.call('POST', other, { receipts: [UNKNOWN] })).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    })
    const many = Array.from({ length: 101 }, (_, index) => `${UNKNOWN.slice(0, -1)}${index + 1}`)
    for (const receipts of [[], many, [UNKNOWN, UNKNOWN], ['x'.repeat(20_000)], [`${UNKNOWN}\n`]])
      expect((await p.call('POST', path, { receipts })).status).toBe(422)
  })
})
