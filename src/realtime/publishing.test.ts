import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestApp } from '../../test/harness/app/app.ts'
import { buildListeningLogger } from '../../test/harness/app/listening-logger.ts'
import { listArrivals, openRealtime, type RealtimeApp } from '../../test/harness/app/realtime-app.ts'
import type { AccountId } from '../base/id.ts'

const MINUTE_MS = 60_000

let ground: RealtimeApp
let account: AccountId

beforeAll(async () => {
  ground = await openRealtime()
})
beforeEach(async () => {
  ground.provider.behave({ kind: 'works' })
  account = await ground.addAccount()
  await ground.t.settle()
  await ground.t.database.pool.query('truncate realtime_message_open, realtime_message_ended, realtime_queue')
  ground.provider.messages.length = 0
  ground.provider.calls.length = 0
})
afterAll(() => ground[Symbol.asyncDispose]())

describe('an event', () => {
  it('of a contract is published, thin, on the channels of its account and of itself', async () => {
    const contract = await ground.addContract(account)
    await ground.t.settle()
    expect(ground.provider.messages.map(({ channel, name }) => [channel, name])).toEqual([
      [`private-account-${account}`, 'contract.create'],
      [`private-contract-${contract}`, 'contract.create'],
    ])
    const [first, second] = ground.provider.messages
    expect(second?.data).toBe(first?.data)
    expect(JSON.parse(first?.data ?? '')).toEqual({
      id: expect.any(String),
      type: 'contract.create',
      api_version: '2026-09-11',
      created_at: new Date(ground.t.clock.now()).toISOString(),
      data: {
        ...{ account, resource: 'contract', action: 'create', id: contract },
        url: `/api/v3/contract/contract/${contract}`,
      },
    })
  })

  it('about a contract of another account does not reach the channel of that contract', async () => {
    const other = await ground.addAccount()
    const contract = await ground.addContract(other)
    await ground.t.settle()
    ground.provider.messages.length = 0
    const type = { internal: 'contract.foreign', account_scope: 'account' }
    await ground.t.database.pool.query(
      `with recorded as (
         insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at)
         values (gen_random_uuid(), $1, $2, 'contract', 'foreign', $3, $4) returning document_id
       ) insert into event_queue select document_id from recorded`,
      [type.internal, account, contract, new Date(ground.t.clock.now())],
    )
    await ground.t.settle()
    expect(ground.provider.messages.map((one) => one.channel)).toEqual([`private-account-${account}`])
  })

  it('without an owner is not published', async () => {
    await ground.emit(null)
    await ground.t.settle()
    expect([ground.provider.messages, await ground.listRows()]).toEqual([[], []])
  })

  it('is published in a call with up to nine others, in the order of their commits', async () => {
    const ids = await ground.emit(account, 25)
    await ground.t.settle()
    expect(listArrivals(ground.provider, account)).toEqual(ids)
    expect(ground.provider.calls.map((one) => JSON.parse(one.body).batch.length)).toEqual([10, 10, 5])
    expect(new Set((await ground.listRows()).map((row) => row.status))).toEqual(new Set(['published']))
  })
})

describe('while the provider is away', () => {
  it('nothing is lost, and the messages of an account arrive in their order afterwards', async () => {
    ground.provider.behave({ kind: 'answers', status: 503 })
    const first = await ground.emit(account, 3)
    await ground.t.settle()
    const second = await ground.emit(account, 12)
    await ground.pass(1_000)
    expect(ground.provider.messages).toEqual([])
    const statuses = (await ground.listRows()).map((row) => row.status)
    expect([statuses.length, statuses.includes('published'), statuses[0], statuses.at(-1)]).toEqual([
      ...[15, false, 'retrying', 'pending'],
    ])
    ground.provider.behave({ kind: 'works' })
    const third = await ground.emit(account, 2)
    await ground.t.settle()
    expect(ground.provider.messages).toEqual([])
    await ground.pass(5_000)
    expect(listArrivals(ground.provider, account)).toEqual([...first, ...second, ...third])
  })

  it('the other accounts of a call that failed are tried again as well, and one that is not concerned goes on', async () => {
    const other = await ground.addAccount()
    await ground.t.settle()
    ground.provider.messages.length = 0
    ground.provider.behave({ kind: 'resets' })
    const late = await ground.emit(account, 2)
    await ground.t.settle()
    ground.provider.behave({ kind: 'works' })
    const prompt = await ground.emit(other, 2)
    await ground.t.settle()
    expect(listArrivals(ground.provider, other)).toEqual(prompt)
    expect(listArrivals(ground.provider, account)).toEqual([])
    await ground.pass(1_000)
    expect(listArrivals(ground.provider, account)).toEqual(late)
  })

  it('an answer that was lost leads to the same message once more, with the same id', async () => {
    ground.provider.behave({ kind: 'loses-answers' })
    const [id] = await ground.emit(account)
    await ground.t.settle()
    ground.provider.behave({ kind: 'works' })
    await ground.pass(1_000)
    expect(listArrivals(ground.provider, account)).toEqual([id, id])
  })

  it('a message ends after its last attempt, and later ones are published', async () => {
    ground.provider.behave({ kind: 'answers', status: 500 })
    await ground.emit(account)
    for (let round = 0; round < 14; round += 1) await ground.pass(5 * MINUTE_MS)
    expect((await ground.listRows())[0]).toMatchObject({ status: 'retrying', attempts: 14, last_error: 'http_5xx' })
    await ground.pass(5 * MINUTE_MS)
    expect((await ground.listRows())[0]).toMatchObject({ status: 'exhausted', attempts: 15 })
    ground.provider.behave({ kind: 'works' })
    const later = await ground.emit(account)
    await ground.t.settle()
    expect(listArrivals(ground.provider, account)).toEqual(later)
  })

  it('its first answer makes all that waits due at once', async () => {
    ground.provider.behave({ kind: 'answers', status: 503 })
    const ids = await ground.emit(account, 2)
    await ground.t.settle()
    for (const ms of [1_000, 5_000, 30_000]) await ground.pass(ms)
    ground.provider.behave({ kind: 'works' })
    await ground.t.settle()
    expect(ground.provider.messages).toEqual([])
    await ground.t.app.realtime.watch?.probe()
    await ground.t.settle()
    expect(listArrivals(ground.provider, account)).toEqual(ids)
  })
})

it('a refusal of the provider ends the message, and is not tried again', async () => {
  ground.provider.behave({ kind: 'answers', status: 401 })
  await ground.emit(account)
  await ground.t.settle()
  expect(await ground.listRows()).toEqual([{ status: 'rejected', attempts: 1, last_error: 'http_4xx' }])
  const { length } = ground.provider.calls
  await ground.pass(60 * MINUTE_MS)
  expect(ground.provider.calls).toHaveLength(length)
})

it('too many requests are a reason to try again', async () => {
  ground.provider.behave({ kind: 'answers', status: 429 })
  const ids = await ground.emit(account)
  await ground.t.settle()
  ground.provider.behave({ kind: 'works' })
  await ground.pass(1_000)
  expect(listArrivals(ground.provider, account)).toEqual(ids)
})

it('the metrics count what came of messages and of requests', async () => {
  await ground.emit(account, 2)
  await ground.t.settle()
  ground.t.clock.advance(5_000)
  const { body } = await ground.t.scrape()
  expect(body).toMatch(/realtime_messages_total\{status="published",error="none"\} \d+/)
  expect(body).toMatch(/realtime_provider_requests_total\{source="publish",outcome="ok"\} \d+/)
  expect(body).toMatch(/realtime_publish_duration_seconds_count \d+/)
})

it('ended messages are deleted after three days', async () => {
  await ground.emit(account)
  await ground.t.settle()
  ground.t.clock.advance(3 * 24 * 60 * MINUTE_MS)
  await ground.t.app.maintenance.sweep()
  expect(await ground.listRows()).toHaveLength(1)
  ground.t.clock.advance(1)
  await ground.t.app.maintenance.sweep()
  expect(await ground.listRows()).toEqual([])
})

describe('log-only mode', () => {
  it('says once what is missing, says what it does not publish, counts it, and writes no message', async () => {
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
