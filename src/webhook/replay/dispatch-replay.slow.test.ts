import { describe, expect, test } from 'vitest'
import { type DeliveryApp, openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { endRows } from '../../../test/harness/delivery/ledger-rows.ts'
import { passRetrySchedule } from '../../../test/harness/delivery/retry-schedule.ts'
import type { Behaviour } from '../../../test/harness/fakes/receiver.ts'
import { RETRY_DELAYS_MS } from '../delivery/outcome.ts'

const FAILING: Behaviour = { kind: 'status', status: 500 }
const REDIRECT: Behaviour = { kind: 'redirect', location: '/x' }

/** Brings one delivery of a new webhook into a state, through the service itself. */
async function bringInto(d: DeliveryApp, status: string) {
  const { id } = await d.makeWebhook()
  await d.emit()
  await d.t.app.router.drain()
  if (status === 'success') await d.t.settle()
  if (status === 'failed') {
    d.receiver.behaveNext(REDIRECT)
    await d.t.settle()
  }
  if (status === 'retrying') {
    d.receiver.behaveNext(FAILING)
    await d.t.settle()
  }
  if (status === 'exhausted') {
    d.receiver.behaveNext(FAILING, FAILING, FAILING, FAILING, FAILING)
    await d.t.settle()
    await passRetrySchedule(d.t)
  }
  if (status === 'cancelled') await endRows(d.t, status)
  const [row] = await d.listRows()
  expect(row!.status).toBe(status)
  return { webhook: id, id: row!.document_id, attempts: row!.attempts, posts: d.receiver.requests.length }
}

const NEEDS_CONFIRMATION = ['pending', 'retrying', 'success']

describe('replay', () => {
  test.each(['pending', 'retrying', 'success', 'exhausted', 'failed', 'cancelled'])(
    'of a row that is %s makes one POST, with the confirmation that this needs',
    async (status) => {
      await using d = await openDelivery()
      const row = await bringInto(d, status)
      const first = await d.replay(row.id)
      if (NEEDS_CONFIRMATION.includes(status)) {
        expect(first).toMatchObject({ status: 409, body: { code: 'duplicate_not_confirmed' } })
        expect((await d.replay(row.id, { confirm_duplicate: false })).status).toBe(409)
        expect(await d.listRows()).toMatchObject([{ status, attempts: row.attempts }])
        expect((await d.replay(row.id, { confirm_duplicate: true })).status).toBe(202)
      } else {
        expect(first).toMatchObject({ status: 202, body: { data: { document_id: row.id, status: 'retrying' } } })
      }
      await d.t.settle()
      await d.pass(86_400_000)
      expect(await d.listRows()).toMatchObject([
        { status: 'success', attempts: row.attempts + 1, next_attempt_at: null },
      ])
      expect(d.receiver.requests).toHaveLength(row.posts + 1)
      expect(d.receiver.requests.at(-1)!.headers['x-service-attempt']).toBe(String(row.attempts + 1))
    },
  )

  test('of an exhausted row that fails again leaves it exhausted with six attempts, and no retry follows', async () => {
    await using d = await openDelivery()
    const { id, webhook } = await bringInto(d, 'exhausted')
    d.receiver.behave(FAILING)
    const before = await d.readWebhook(webhook)
    await d.replay(id)
    await d.t.settle()
    expect(await d.listRows()).toMatchObject([{ status: 'exhausted', attempts: 6, next_attempt_at: null }])
    await d.replay(id)
    await d.t.settle()
    await d.pass(86_400_000)
    expect(await d.listRows()).toMatchObject([{ status: 'exhausted', attempts: 7, next_attempt_at: null }])
    expect(d.receiver.requests).toHaveLength(7)
    expect((await d.readWebhook(webhook)).consecutive_failures).toBe(before.consecutive_failures)
    const log = await d.t.database.db
      .selectFrom('webhook_attempt_log')
      .select('attempt_trigger')
      .orderBy('attempt')
      .execute()
    expect(log.map((line) => line.attempt_trigger)).toEqual([...Array(5).fill('schedule'), 'replay', 'replay'])
  })

  test.each(['pending', 'retrying'])(
    'of a row that is %s makes its next attempt now, and what is left of the schedule goes on after it',
    async (status) => {
      await using d = await openDelivery()
      const { id, attempts, webhook } = await bringInto(d, status)
      d.receiver.behave(FAILING)
      for (let made = attempts + 1; made <= 4; made += 1) {
        await d.replay(id, { confirm_duplicate: true })
        await d.t.settle()
        const delayMs = RETRY_DELAYS_MS[made - 1] as number
        const [row] = await d.listRows()
        expect(row).toMatchObject({ status: 'retrying', attempts: made })
        expect(row!.next_attempt_at!.getTime() - row!.updated_at.getTime()).toBe(delayMs)
        // Half of the wait goes by, then it is hurried once more.
        await d.pass(delayMs / 2)
        expect(await d.listRows()).toMatchObject([{ attempts: made }])
      }
      await d.pass(86_400_000)
      expect(await d.listRows()).toMatchObject([{ status: 'exhausted', attempts: 5, next_attempt_at: null }])
      expect(d.receiver.requests).toHaveLength(5)
      // The last POST was one of the schedule, so the delivery counts.
      expect((await d.readWebhook(webhook)).consecutive_failures).toBe(1)
      const log = await d.t.database.db
        .selectFrom('webhook_attempt_log')
        .select('attempt_trigger')
        .orderBy('attempt')
        .execute()
      const replayed = Array(4 - attempts).fill('replay')
      expect(log.map((line) => line.attempt_trigger)).toEqual([
        ...Array(attempts).fill('schedule'),
        ...replayed,
        'schedule',
      ])
    },
  )

  test('that is redirected ends as failed', async () => {
    await using d = await openDelivery()
    const { id } = await bringInto(d, 'exhausted')
    d.receiver.behave(REDIRECT)
    await d.replay(id)
    await d.t.settle()
    expect(await d.listRows()).toMatchObject([{ status: 'failed', attempts: 6 }])
  })

  test('that is asked for twice at the same time is one POST', async () => {
    await using d = await openDelivery()
    const { id } = await bringInto(d, 'failed')
    const answers = await Promise.all([d.replay(id), d.replay(id)])
    // The second one finds a row that waits, and that needs a confirmation.
    expect(answers.map((answer) => answer.status).sort()).toEqual([202, 409])
    await d.t.settle()
    expect(d.receiver.requests).toHaveLength(2)
  })

  test('while an attempt is in flight is refused, and the attempt is recorded', async () => {
    await using d = await openDelivery()
    const answer = Promise.withResolvers<void>()
    await d.makeWebhook()
    d.receiver.behaveNext({ kind: 'wait', until: answer.promise })
    await d.emit()
    const settled = d.t.settle()
    await d.receiver.waitFor(1)
    const [row] = await d.listRows()
    expect(await d.replay(row!.document_id, { confirm_duplicate: true })).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    })
    answer.resolve()
    await settled
    expect(await d.listRows()).toMatchObject([{ status: 'success', attempts: 1 }])
  })

  test.each(['inactive', 'deleted'])('for an %s webhook is refused, confirmed or not', async (state) => {
    await using d = await openDelivery()
    const { id, webhook } = await bringInto(d, 'failed')
    if (state === 'inactive') await d.setActive(webhook, false)
    else await d.call('DELETE', `/api/v3/webhook/webhook/${webhook}`)
    for (const body of [undefined, { confirm_duplicate: true }])
      expect(await d.replay(id, body)).toMatchObject({ status: 409, body: { code: 'webhook_inactive' } })
    expect(await d.listRows()).toMatchObject([{ status: 'failed', attempts: 1 }])
  })

  test('is refused while ENABLE_API_EVENT_QUEUE is false', async () => {
    await using d = await openDelivery({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
    const { id } = await bringInto(d, 'cancelled')
    expect(await d.replay(id)).toMatchObject({ status: 409, body: { code: 'conflict' } })
  })

  test('that was asked for before its webhook was deactivated rests, and goes on when it is active', async () => {
    await using d = await openDelivery()
    const { id, webhook, posts } = await bringInto(d, 'exhausted')
    await d.replay(id)
    await d.setActive(webhook, false)
    await d.pass(86_400_000)
    expect(d.receiver.requests).toHaveLength(posts)
    await d.setActive(webhook, true)
    await d.t.settle()
    expect(await d.listRows()).toMatchObject([{ status: 'success', attempts: 6 }])
  })
})
