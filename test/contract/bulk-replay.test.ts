import { beforeEach, expect, test } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { type ContractWebhook, expectProblem, type Json, startContractFixture } from './contract-fixture.ts'

const PATH = '/api/v3/webhook/dispatch/replay'
let account: string

const fixture = await openForFile(startContractFixture())
beforeEach(async () => {
  fixture.receiver.behave({ kind: 'status', status: 200 })
  account = (await fixture.createAccount()).document_id
})

/** A webhook of an account of its own, with `count` deliveries that ended as `failed`. */
async function failTimes(count: number): Promise<ContractWebhook> {
  account = (await fixture.createAccount()).document_id
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  fixture.receiver.behave({ kind: 'redirect', location: '/elsewhere' })
  for (let change = 0; change < count; change += 1) await fixture.makeChange(account)
  await fixture.app.settle()
  fixture.receiver.behave({ kind: 'status', status: 200 })
  return webhook
}

const replayAll = (body: Json, call = fixture.app.admin) => call('POST', PATH, body)
const statusesOf = async (webhook: ContractWebhook) => (await fixture.readLedger(webhook)).map((row) => row.status)

test('delivery#replay: a bulk replay posts each row that matches the filters once, and no other', async () => {
  const webhook = await failTimes(3)
  const bystander = await failTimes(1)
  const answer = await replayAll({ filters: [`webhook|eq|${webhook.id}`, 'status|in|failed,exhausted'] })
  expect(answer.status).toBe(202)
  expect(answer.body.data).toMatchObject({ total: 3 })
  await fixture.app.settle()
  expect(await statusesOf(webhook)).toEqual(['success', 'success', 'success'])
  expect((await fixture.readLedger(webhook)).map((row) => row.attempts)).toEqual([2, 2, 2])
  expect(await statusesOf(bystander)).toEqual(['failed'])
})

test('delivery#replay: a bulk replay skips rows that may have been received, unless confirm_duplicate is sent', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.settle()
  const filters = [`webhook|eq|${webhook.id}`]
  await replayAll({ filters })
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(1)
  await replayAll({ filters, confirm_duplicate: true })
  await fixture.app.settle()
  expect(fixture.received(webhook)).toHaveLength(2)
})

test('delivery#replay: a bulk replay has no automatic retries', async () => {
  const webhook = await failTimes(2)
  fixture.receiver.behave({ kind: 'status', status: 500 })
  await replayAll({ filters: [`webhook|eq|${webhook.id}`] })
  await fixture.app.settle()
  fixture.app.clock.advance(7 * 86_400_000)
  await fixture.app.settle()
  expect(await statusesOf(webhook)).toEqual(['exhausted', 'exhausted'])
  expect(fixture.received(webhook)).toHaveLength(4)
})

test('delivery#replay: 10,000 rows are accepted, one more is refused', async () => {
  const webhook = await fixture.createWebhook({ account })
  const addRows = (count: number) =>
    fixture.app.database.pool.query(
      `insert into webhook_dispatch_ended
         (document_id, webhook, event_id, event, status, attempts, created_at, updated_at, ended_at)
       select gen_random_uuid(), $1, gen_random_uuid(), 'contract.create', 'failed', 1, $2, $2, $2 from generate_series(1, $3)`,
      [webhook.id, new Date(fixture.app.clock.now()), count],
    )
  await addRows(10_001)
  const filters = [`webhook|eq|${webhook.id}`]
  const refused = expectProblem(await replayAll({ filters }), 422, 'validation_failed')
  expect(JSON.stringify(refused)).toContain('10')
  await fixture.app.database.pool.query(
    'delete from webhook_dispatch_ended where document_id = (select document_id from webhook_dispatch_ended where webhook = $1 limit 1)',
    [webhook.id],
  )
  expect((await replayAll({ filters })).body.data).toMatchObject({ total: 10_000 })
  await fixture.app.admin('DELETE', `/api/v3/webhook/webhook/${webhook.id}/purge`)
})

test('delivery#replay: a bulk replay needs webhook-dispatch:replay and filters of the ledger', async () => {
  const { call } = await fixture.app.signInMember()
  const refused = expectProblem(await replayAll({ filters: ['status|eq|failed'] }, call), 403, 'permission_denied')
  expect(refused.detail).toContain('webhook-dispatch:replay')
  for (const body of [{}, { filters: [] }, { filters: ['url|eq|x'] }, { filters: ['status|is|failed'] }])
    expectProblem(await replayAll(body), 422, 'validation_failed')
})
