import { beforeEach, describe, expect, test } from 'vitest'
import { createTestApp } from '../../test/harness/app/app.ts'
import { buildListeningLogger } from '../../test/harness/app/listening-logger.ts'
import { listArrivals, openRealtime } from '../../test/harness/app/realtime-app.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../base/id.ts'

const MINUTE_MS = 60_000

let account: AccountId

const fixture = await openForFile(openRealtime())
beforeEach(async () => {
  fixture.provider.behave({ kind: 'works' })
  account = await fixture.addAccount()
  await fixture.t.settle()
  await fixture.t.database.pool.query('truncate realtime_message_open, realtime_message_ended, realtime_queue')
  fixture.provider.messages.length = 0
  fixture.provider.calls.length = 0
})

describe('an event', () => {
  test('of a contract is published, thin, on the channels of its account and of itself', async () => {
    const contract = await fixture.addContract(account)
    await fixture.t.settle()
    expect(fixture.provider.messages.map(({ channel, name }) => [channel, name])).toEqual([
      [`private-account-${account}`, 'contract.create'],
      [`private-contract-${contract}`, 'contract.create'],
    ])
    const [first, second] = fixture.provider.messages
    expect(second?.data).toBe(first?.data)
    expect(JSON.parse(first?.data ?? '')).toEqual({
      id: expect.any(String),
      type: 'contract.create',
      api_version: '2026-09-11',
      created_at: new Date(fixture.t.clock.now()).toISOString(),
      data: {
        ...{ account, resource: 'contract', action: 'create', id: contract },
        url: `/api/v3/contract/contract/${contract}`,
      },
    })
  })

  test('about a contract of another account does not reach the channel of that contract', async () => {
    const other = await fixture.addAccount()
    const contract = await fixture.addContract(other)
    await fixture.t.settle()
    fixture.provider.messages.length = 0
    const type = { internal: 'contract.foreign', account_scope: 'account' }
    await fixture.t.database.pool.query(
      `with recorded as (
         insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at)
         values (gen_random_uuid(), $1, $2, 'contract', 'foreign', $3, $4) returning document_id
       ) insert into event_queue select document_id from recorded`,
      [type.internal, account, contract, new Date(fixture.t.clock.now())],
    )
    await fixture.t.settle()
    expect(fixture.provider.messages.map((message) => message.channel)).toEqual([`private-account-${account}`])
  })

  test('without an owner is not published', async () => {
    await fixture.emit(null)
    await fixture.t.settle()
    expect([fixture.provider.messages, await fixture.listRows()]).toEqual([[], []])
  })

  test('that another service repeats under its key is one message, also in parallel', async () => {
    const type = { internal: 'parcel.arrive', account_scope: 'account' }
    expect((await fixture.call('POST', '/api/v3/webhook/event', type)).status).toBe(201)
    await fixture.t.settle()
    fixture.provider.messages.length = 0
    const publish = () =>
      fixture.call('POST', '/api/v3/webhook/publish', {
        event: type.internal,
        account,
        id: 'P-1',
        idempotency_key: 'p-1',
      })
    const answers = await Promise.all([publish(), publish(), publish()])
    await fixture.t.settle()
    answers.push(await publish())
    await fixture.t.settle()
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202])
    expect(fixture.provider.messages.map(({ channel, name }) => [channel, name])).toEqual([
      [`private-account-${account}`, 'parcel.arrive'],
    ])
  })

  test('is published in a call with up to nine others, in the order of their commits', async () => {
    const ids = await fixture.emit(account, 25)
    await fixture.t.settle()
    expect(listArrivals(fixture.provider, account)).toEqual(ids)
    expect(fixture.provider.calls.map((call) => JSON.parse(call.body).batch.length)).toEqual([10, 10, 5])
    expect(new Set((await fixture.listRows()).map((row) => row.status))).toEqual(new Set(['published']))
  })
})

describe('while the provider is away', () => {
  test('nothing is lost, and the messages of an account arrive in their order afterwards', async () => {
    fixture.provider.behave({ kind: 'answers', status: 503 })
    const first = await fixture.emit(account, 3)
    await fixture.t.settle()
    const second = await fixture.emit(account, 12)
    await fixture.pass(1_000)
    expect(fixture.provider.messages).toEqual([])
    const statuses = (await fixture.listRows()).map((row) => row.status)
    expect([statuses.length, statuses.includes('published'), statuses[0], statuses.at(-1)]).toEqual([
      ...[15, false, 'retrying', 'pending'],
    ])
    fixture.provider.behave({ kind: 'works' })
    const third = await fixture.emit(account, 2)
    await fixture.t.settle()
    expect(fixture.provider.messages).toEqual([])
    await fixture.pass(5_000)
    expect(listArrivals(fixture.provider, account)).toEqual([...first, ...second, ...third])
  })

  test('the other accounts of a call that failed are tried again as well, and one that is not concerned goes on', async () => {
    const other = await fixture.addAccount()
    await fixture.t.settle()
    fixture.provider.messages.length = 0
    fixture.provider.behave({ kind: 'resets' })
    const late = await fixture.emit(account, 2)
    await fixture.t.settle()
    fixture.provider.behave({ kind: 'works' })
    const prompt = await fixture.emit(other, 2)
    await fixture.t.settle()
    expect(listArrivals(fixture.provider, other)).toEqual(prompt)
    expect(listArrivals(fixture.provider, account)).toEqual([])
    await fixture.pass(1_000)
    expect(listArrivals(fixture.provider, account)).toEqual(late)
  })

  test('an answer that was lost leads to the same message once more, with the same id', async () => {
    fixture.provider.behave({ kind: 'loses-answers' })
    const [id] = await fixture.emit(account)
    await fixture.t.settle()
    fixture.provider.behave({ kind: 'works' })
    await fixture.pass(1_000)
    expect(listArrivals(fixture.provider, account)).toEqual([id, id])
  })

  test('a message ends after its last attempt, and later ones are published', async () => {
    fixture.provider.behave({ kind: 'answers', status: 500 })
    await fixture.emit(account)
    for (let round = 0; round < 14; round += 1) await fixture.pass(5 * MINUTE_MS)
    expect((await fixture.listRows())[0]).toMatchObject({ status: 'retrying', attempts: 14, last_error: 'http_5xx' })
    await fixture.pass(5 * MINUTE_MS)
    expect((await fixture.listRows())[0]).toMatchObject({ status: 'exhausted', attempts: 15 })
    fixture.provider.behave({ kind: 'works' })
    const later = await fixture.emit(account)
    await fixture.t.settle()
    expect(listArrivals(fixture.provider, account)).toEqual(later)
  })

  test('its first answer makes all that waits due at once', async () => {
    fixture.provider.behave({ kind: 'answers', status: 503 })
    const ids = await fixture.emit(account, 2)
    await fixture.t.settle()
    for (const ms of [1_000, 5_000, 30_000]) await fixture.pass(ms)
    fixture.provider.behave({ kind: 'works' })
    await fixture.t.settle()
    expect(fixture.provider.messages).toEqual([])
    await fixture.t.app.realtime.watch?.probe()
    await fixture.t.settle()
    expect(listArrivals(fixture.provider, account)).toEqual(ids)
  })
})

test('a refusal of the provider ends the message, and is not tried again', async () => {
  fixture.provider.behave({ kind: 'answers', status: 401 })
  await fixture.emit(account)
  await fixture.t.settle()
  expect(await fixture.listRows()).toEqual([{ status: 'rejected', attempts: 1, last_error: 'http_4xx' }])
  const { length } = fixture.provider.calls
  await fixture.pass(60 * MINUTE_MS)
  expect(fixture.provider.calls).toHaveLength(length)
})

test('too many requests are a reason to try again', async () => {
  fixture.provider.behave({ kind: 'answers', status: 429 })
  const ids = await fixture.emit(account)
  await fixture.t.settle()
  fixture.provider.behave({ kind: 'works' })
  await fixture.pass(1_000)
  expect(listArrivals(fixture.provider, account)).toEqual(ids)
})

test('the metrics count what came of messages and of requests', async () => {
  await fixture.emit(account, 2)
  await fixture.t.settle()
  fixture.t.clock.advance(5_000)
  const { body } = await fixture.t.scrape()
  expect(body).toMatch(/realtime_messages_total\{status="published",error="none"\} \d+/)
  expect(body).toMatch(/realtime_provider_requests_total\{source="publish",outcome="ok"\} \d+/)
  expect(body).toMatch(/realtime_publish_duration_seconds_count \d+/)
})

test('ended messages are deleted after three days', async () => {
  await fixture.emit(account)
  await fixture.t.settle()
  fixture.t.clock.advance(3 * 24 * 60 * MINUTE_MS)
  await fixture.t.app.maintenance.sweep()
  expect(await fixture.listRows()).toHaveLength(1)
  fixture.t.clock.advance(1)
  await fixture.t.app.maintenance.sweep()
  expect(await fixture.listRows()).toEqual([])
})

describe('log-only mode', () => {
  test('says once what is missing, says what it does not publish, counts it, and writes no message', async () => {
    const lines: string[] = []
    const logger = buildListeningLogger((line) => lines.push(line))
    await using t = await createTestApp({ logger, env: { INTEGRATION_REALTIME_KEY: 'key', LOG_LEVEL: 'info' } })
    t.app.realtime.announce()
    expect(lines.filter((line) => line.includes('NOTHING is published'))).toHaveLength(1)
    const made = await t.admin('POST', '/api/v3/identity/account', { name: 'Example' })
    await t.admin('POST', '/api/v3/contract/contract', { account: made.body.data.document_id, name: 'Example' })
    await t.settle()
    expect(lines.filter((line) => line.includes('realtime message not published')).length).toBeGreaterThan(0)
    const { rows } = await t.database.pool.query('select from realtime_message')
    expect(rows).toEqual([])
    t.clock.advance(5_000)
    expect((await t.scrape()).body).toMatch(/realtime_messages_total\{status="log_only",error="none"\} [1-9]/)
  })
})
