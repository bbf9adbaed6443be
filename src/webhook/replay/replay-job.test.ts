import { describe, expect, test } from 'vitest'
import {
  type ContractWebhook,
  expectProblem,
  NO_ONE,
  startContractFixture,
} from '../../../test/contract/contract-fixture.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { WebhookId } from '../../base/id.ts'
import { findMove, type JobStatus } from '../../delivery/job/job-state.ts'
import type { DispatchStatus } from '../delivery/outcome.ts'
import { decideRows, summarizeByWebhook } from './replay-job.ts'
import { REPLAY_JOB_ROWS_LIMIT } from './replay-job-record.ts'

const BULK = '/api/v3/webhook/dispatch/replay'
const JOBS = '/api/v3/webhook/replay-job'

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id
const webhook = await fixture.createWebhook({ account })

let types = 0

/** Writes ledger rows of a state with their events, as deliveries of the past would have left them; returns their type. */
async function addRows(status: string, count: number, options: { on?: ContractWebhook; noEvent?: boolean } = {}) {
  types += 1
  const type = `past.done-${types}`
  const on = options.on ?? webhook
  await fixture.app.database.pool.query(
    `with written as (
       insert into webhook_dispatch_ended
         (document_id, webhook, event_id, event, status, attempts, ended_at, created_at, updated_at)
       select gen_random_uuid(), $1, gen_random_uuid(), $2, $3, 5, $4, $4::timestamptz + n * interval '1 ms', $4
       from generate_series(1, $5::int) n returning event_id, created_at)
     insert into event_occurrence (document_id, event, resource, action, routed_at, created_at)
     select event_id, $2, 'past', 'done', created_at, created_at from written where not $6::boolean`,
    [on.id, type, status, new Date(fixture.app.clock.now() - 60_000), count, options.noEvent ?? false],
  )
  return type
}

const only = (type: string) => [`event|eq|${type}`]
const bulk = (body: unknown) => fixture.app.admin('POST', BULK, body)
const job = async (id: string) => (await fixture.app.admin('GET', `${JOBS}/${id}`)).body.data
const move = (id: string, name: string) => fixture.app.admin('POST', `${JOBS}/${id}/${name}`)
const statuses = async (type: string) => {
  const { rows } = await fixture.app.database.pool.query(
    'select status, attempts, count(*)::int as n from webhook_dispatch where event = $1 group by 1, 2 order by 1, 2',
    [type],
  )
  return rows
}

describe('the moves of a replay job', () => {
  test.each([
    ['running', 'pause', 'paused'],
    ['running', 'resume', undefined],
    ['running', 'cancel', 'cancelled'],
    ['paused', 'pause', undefined],
    ['paused', 'resume', 'running'],
    ['paused', 'cancel', 'cancelled'],
    ['failed', 'pause', undefined],
    ['failed', 'resume', 'running'],
    ['failed', 'cancel', 'cancelled'],
    ['done', 'pause', undefined],
    ['done', 'resume', undefined],
    ['done', 'cancel', undefined],
    ['cancelled', 'pause', undefined],
    ['cancelled', 'resume', undefined],
    ['cancelled', 'cancel', undefined],
  ] as const)('%s, %s: %s', (from, name, to) => {
    expect(findMove(from as JobStatus, name)).toBe(to)
  })
})

test('a preview lists the 50 webhooks with the most rows, and says how many there are', () => {
  const factOf = (index: number, status: DispatchStatus) => ({
    webhook: `w${String(index).padStart(3, '0')}` as WebhookId,
    status,
    isWebhookActive: true,
  })
  const factsOf = (count: number) => Array.from({ length: count }, (_, index) => factOf(index, 'exhausted'))
  const sums = (count: number) => {
    const { byWebhook, webhooks } = summarizeByWebhook(factsOf(count))
    return [byWebhook.length, webhooks]
  }
  expect([sums(0), sums(50), sums(51)]).toEqual([
    [0, 0],
    [50, 50],
    [50, 51],
  ])
  const equal = summarizeByWebhook(factsOf(3).toReversed()).byWebhook.map(({ webhook: id }) => id)
  expect(equal).toEqual(['w000', 'w001', 'w002'])
  expect(summarizeByWebhook([...factsOf(51), factOf(50, 'success')]).byWebhook[0]).toEqual({
    webhook: 'w050',
    isActive: true,
    total: 2,
    succeeded: 1,
  })
})

test('a row of a job is skipped for the reason that a single replay would be refused for, or because it is held or gone', () => {
  const fact = {
    status: 'exhausted',
    isWebhookActive: true,
    isInFlight: false,
    hasEvent: true,
    isReplayWaiting: false,
  } as const
  const facts = new Map([
    ['good', fact],
    ['asleep', { ...fact, isWebhookActive: false }],
    ['arrived', { ...fact, status: 'success' as const }],
    ['posting', { ...fact, isInFlight: true }],
    ['old', { ...fact, hasEvent: false }],
  ])
  const ids = [...facts.keys(), 'held', 'deleted']
  expect(decideRows(ids, facts, false, new Set(['held']))).toEqual({
    replayable: ['good'],
    skipped: { webhook_inactive: 1, not_confirmed: 1, under_way: 2, event_gone: 1, gone: 1 },
  })
  expect(decideRows(['arrived'], facts, true).replayable).toEqual(['arrived'])
  const waiting = new Map([['w', { ...fact, status: 'retrying' as const, isReplayWaiting: true }]])
  expect(decideRows(['w'], waiting, true).skipped).toEqual({ replay_waiting: 1 })
})

describe('making a replay job', () => {
  test('answers 202 with the job and its path, posts each row once more, and emits one event that leads to the job', async () => {
    const type = await addRows('exhausted', 3)
    const before = fixture.receiver.requests.length
    const answer = await bulk({ filters: only(type) })
    expect(answer.status).toBe(202)
    const { data } = answer.body
    expect(answer.headers.location).toBe(`${JOBS}/${data.document_id}`)
    expect(data).toEqual({
      document_id: expect.any(String),
      status: 'running',
      filters: only(type),
      confirm_duplicate: false,
      accounts: null,
      total: 3,
      processed: 0,
      replayed: 0,
      skipped: 0,
      skipped_reasons: {},
      last_error: null,
      created_by: fixture.app.adminId,
      created_at: new Date(fixture.app.clock.now()).toISOString(),
      updated_at: new Date(fixture.app.clock.now()).toISOString(),
      ended_at: null,
    })
    await fixture.app.settle()
    expect(await job(data.document_id)).toMatchObject({ status: 'done', processed: 3, replayed: 3, skipped: 0 })
    expect(await statuses(type)).toEqual([{ status: 'success', attempts: 6, n: 3 }])
    expect(fixture.receiver.requests.length - before).toBe(3)
    const events = await fixture.app.admin(
      'GET',
      `/api/v3/webhook/event-occurrence?filters=resource_id|eq|${data.document_id}`,
    )
    expect(events.body.data).toMatchObject([
      { event: 'webhook-dispatch.replay-all', account: null, url: `${JOBS}/${data.document_id}` },
    ])
  })

  test('counts the rows that may not be replayed by reason, and replays the rest', async () => {
    const asleep = await fixture.createWebhook({ account })
    const type = await addRows('exhausted', 2)
    for (const [status, on, noEvent] of [
      ['success', webhook, false],
      ['failed', asleep, false],
      ['cancelled', webhook, true],
    ] as const) {
      const other = await addRows(status, 1, { on, noEvent })
      await fixture.app.database.pool.query('update webhook_dispatch_ended set event = $1 where event = $2', [
        type,
        other,
      ])
    }
    await fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${asleep.id}/active`, { is_actived: false })
    const preview = await bulk({ filters: only(type), dry_run: true })
    const reasons = { not_confirmed: 1, webhook_inactive: 1, event_gone: 1 }
    expect(preview.body.data).toMatchObject({ would_replay: 2, would_skip: 3, skipped_reasons: reasons })
    const { data } = (await bulk({ filters: only(type) })).body
    await fixture.app.settle()
    expect(await job(data.document_id)).toMatchObject({ replayed: 2, skipped: 3, skipped_reasons: reasons })
  })

  test('replays what has arrived too when the duplicates are confirmed', async () => {
    const type = await addRows('success', 1)
    const { data } = (await bulk({ filters: only(type), confirm_duplicate: true })).body
    await fixture.app.settle()
    expect(await job(data.document_id)).toMatchObject({ status: 'done', replayed: 1 })
  })

  test('of no row at all is done at once', async () => {
    const answer = await bulk({ filters: ['event|eq|nothing.like-it'] })
    expect(answer.status).toBe(202)
    expect(answer.body.data).toMatchObject({ status: 'done', total: 0, ended_at: expect.any(String) })
  })

  test('as a dry run answers 200 with the counts and changes nothing: no row, no job, no event, no audit entry', async () => {
    const type = await addRows('exhausted', 2)
    const count = async () => {
      const { rows } = await fixture.app.database.pool.query(
        `select (select count(*) from replay_job) as jobs, (select count(*) from replay_job_item) as items,
           (select count(*) from event_occurrence) as events, (select count(*) from audit_log) as audits`,
      )
      return rows
    }
    const before = [await count(), await statuses(type)]
    const answer = await bulk({ filters: only(type), dry_run: true, limit: 1 })
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      data: {
        dry_run: true,
        matched: 2,
        is_matched_exact: true,
        total: 1,
        would_replay: 1,
        would_skip: 0,
        skipped_reasons: {},
        succeeded: 0,
        to_inactive: 0,
        webhooks: 1,
        by_webhook: [{ webhook: webhook.id, is_active: true, total: 1, succeeded: 0 }],
      },
      message: 'Nothing was done: 1 would be replayed, 0 skipped.',
    })
    await fixture.app.settle()
    expect([await count(), await statuses(type)]).toEqual(before)
  })

  test('as a dry run says which webhooks the rows are of, which rows arrived already, and which webhooks are inactive', async () => {
    const asleep = await fixture.createWebhook({ account })
    await fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${asleep.id}/active`, { is_actived: false })
    const type = await addRows('exhausted', 2)
    for (const [status, on] of [
      ['success', webhook],
      ['failed', asleep],
    ] as const) {
      const other = await addRows(status, 1, { on })
      await fixture.app.database.pool.query('update webhook_dispatch_ended set event = $1 where event = $2', [
        type,
        other,
      ])
    }
    const { data } = (await bulk({ filters: only(type), dry_run: true })).body
    expect(data).toMatchObject({
      total: 4,
      would_replay: 2,
      succeeded: 1,
      to_inactive: 1,
      webhooks: 2,
      by_webhook: [
        { webhook: webhook.id, is_active: true, total: 3, succeeded: 1 },
        { webhook: asleep.id, is_active: false, total: 1, succeeded: 0 },
      ],
    })
  })

  test('takes the oldest rows up to limit, and only those that matched when it was made', async () => {
    const type = await addRows('exhausted', 3)
    const { data } = (await bulk({ filters: only(type), limit: 2 })).body
    const later = await addRows('exhausted', 1)
    await fixture.app.database.pool.query('update webhook_dispatch_ended set event = $1 where event = $2', [
      type,
      later,
    ])
    await fixture.app.settle()
    expect(await job(data.document_id)).toMatchObject({ total: 2, replayed: 2 })
    expect(await statuses(type)).toEqual([
      { status: 'exhausted', attempts: 5, n: 2 },
      { status: 'success', attempts: 6, n: 2 },
    ])
  })

  test('of more than 10,000 rows is refused, unless limit says how many', async () => {
    const quiet = await fixture.createWebhook({ account })
    const type = await addRows('exhausted', REPLAY_JOB_ROWS_LIMIT + 1, { on: quiet })
    const problem = expectProblem(await bulk({ filters: only(type) }), 422, 'validation_failed')
    expect(problem.errors).toMatchObject([{ path: 'filters', code: 'too_many_matches' }])
    expect(problem.detail).toContain('more than 10000')
    expectProblem(await bulk({ filters: only(type), dry_run: true }), 422, 'validation_failed')
    await fixture.app.admin('PATCH', `/api/v3/webhook/webhook/${quiet.id}/active`, { is_actived: false })
    const { data } = (await bulk({ filters: only(type), limit: REPLAY_JOB_ROWS_LIMIT })).body
    expect(data.total).toBe(REPLAY_JOB_ROWS_LIMIT)
    expect((await move(data.document_id, 'cancel')).status).toBe(200)
    // One row fewer, and all of them are taken without a limit.
    await fixture.app.database.pool.query(
      'delete from webhook_dispatch_ended where document_id = (select document_id from webhook_dispatch_ended where event = $1 limit 1)',
      [type],
    )
    const preview = await bulk({ filters: only(type), dry_run: true })
    expect(preview.body.data).toMatchObject({ matched: REPLAY_JOB_ROWS_LIMIT, would_skip: REPLAY_JOB_ROWS_LIMIT })
  })

  test.each([
    ['no filter', { filters: [] }, 'filters'],
    ['no filters member', {}, 'filters'],
    ['an unknown field', { filters: ['secret|eq|x'] }, 'filters.0'],
    ['a broken second filter', { filters: ['status|eq|failed', 'nonsense'] }, 'filters.1'],
    ['a limit of 0', { filters: ['status|eq|failed'], limit: 0 }, 'limit'],
    ['a limit of 10,001', { filters: ['status|eq|failed'], limit: 10_001 }, 'limit'],
    ['an unknown member', { filters: ['status|eq|failed'], all: true }, 'all'],
    ['a dry_run that is text', { filters: ['status|eq|failed'], dry_run: 'yes' }, 'dry_run'],
  ])('with %s is refused with a 422 on it', async (_name, body, path) => {
    expect(expectProblem(await bulk(body), 422, 'validation_failed').errors).toMatchObject([{ path }])
  })

  test('takes the permission of a single replay, and refuses nobody and those without it', async () => {
    const body = { filters: ['status|eq|failed'], dry_run: true }
    expectProblem(await fixture.app.anonymous('POST', BULK, body), 401, 'unauthenticated')
    const member = await fixture.app.signInMember()
    const refused = expectProblem(await member.call('POST', BULK, body), 403, 'permission_denied')
    expect(refused.detail).toContain('webhook-dispatch:replay,')
    const key = await fixture.app.admin('POST', '/api/v3/identity/api-key', {
      name: 'replays',
      permissions: ['webhook-dispatch:replay'],
    })
    expect((await fixture.app.callAs(key.body.data.key)('POST', BULK, body)).status).toBe(200)
    const permissions = await fixture.app.admin(
      'GET',
      '/api/v3/identity/permission?filters=name|like|webhook-dispatch:',
    )
    expect(permissions.body.data.map((row: { name: string }) => row.name).sort()).toEqual([
      'webhook-dispatch:export',
      'webhook-dispatch:find-all',
      'webhook-dispatch:find-one',
      'webhook-dispatch:replay',
    ])
  })

  test('is refused with a 409 while the event queue is off', async () => {
    await using off = await startContractFixture({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
    const problem = expectProblem(await off.app.admin('POST', BULK, { filters: ['status|eq|failed'] }), 409, 'conflict')
    expect(problem.detail).toContain('ENABLE_API_EVENT_QUEUE')
  })
})

describe('every route on one replay job', () => {
  test.each([
    ['GET', ''],
    ['POST', '/pause'],
    ['POST', '/resume'],
    ['POST', '/cancel'],
  ] as const)(
    '%s %s refuses nobody with 401, a member with 403, and an unknown id with 404',
    async (method, action) => {
      const path = `${JOBS}/${NO_ONE}${action}`
      expectProblem(await fixture.app.anonymous(method, path), 401, 'unauthenticated')
      const { call } = await fixture.app.signInMember()
      const refused = expectProblem(await call(method, path), 403, 'permission_denied')
      expect(refused.detail).toMatch(/replay-job:(find-one|pause|resume|cancel)/)
      expectProblem(await fixture.app.admin(method, path), 404, 'not_found')
    },
  )

  test('a move that the state does not allow is a 409 that names the state', async () => {
    const { data } = (await bulk({ filters: ['event|eq|nothing.like-it'] })).body
    for (const name of ['pause', 'resume', 'cancel']) {
      const problem = expectProblem(await move(data.document_id, name), 409, 'conflict')
      expect(problem.detail).toContain('done')
    }
  })

  test('the list can be filtered by state', async () => {
    const { data } = (await bulk({ filters: ['event|eq|nothing.like-it'] })).body
    const done = await fixture.app.admin(
      'GET',
      `${JOBS}?filters=status|eq|done&filters=document_id|eq|${data.document_id}`,
    )
    expect(done.body.data).toMatchObject([{ document_id: data.document_id }])
    expect((await fixture.app.admin('GET', `${JOBS}?filters=status|eq|failed`)).body.data).toEqual([])
    expectProblem(await fixture.app.anonymous('GET', JOBS), 401, 'unauthenticated')
  })

  test('each move emits its event', async () => {
    const type = await addRows('exhausted', 1)
    const { data } = (await bulk({ filters: only(type) })).body
    for (const name of ['pause', 'resume', 'cancel']) expect((await move(data.document_id, name)).status).toBe(200)
    const filter = `filters=resource_id|eq|${data.document_id}&filters=resource|eq|replay-job`
    const events = await fixture.app.admin('GET', `/api/v3/webhook/event-occurrence?${filter}`)
    expect(events.body.data.map((row: { event: string }) => row.event).sort()).toEqual([
      'replay-job.cancel',
      'replay-job.pause',
      'replay-job.resume',
    ])
  })
})
