import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { Receiver } from '../harness/fakes/receiver.ts'
import { runCommand } from '../harness/process/command-line.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

let home: TestDatabase
let cell: TestDatabase
let fixture: DeliveryFixture
let service: LocalService
let receiver: Receiver
let webhook: string

beforeAll(async () => {
  home = await createTestDatabase({ content: 'prepared', isOwn: true })
  cell = await createTestDatabase({ content: 'prepared', isOwn: true })
  fixture = await openDeliveryFixture(home)
  receiver = await fixture.receive()
  // Both are copies of one template, so their event types have the same ids; the account is given to the cell here.
  const { rows } = await home.pool.query('select row_to_json(a)::text as row from account a where document_id = $1', [
    fixture.account,
  ])
  await cell.pool.query('insert into account select * from json_populate_record(null::account, $1::json)', [
    rows[0].row,
  ])
  const url = buildKeyring(TEST_SECRETS.secretKey, systemRandom).seal(cell.connectionString, 'cell:c1')
  await home.pool.query(
    `insert into cell (name, database_url_encrypted, state, created_at, updated_at)
     values ('c1', $1, 'active', now(), now()), ('c2', $1, 'draining', now(), now())`,
    [url],
  )
  const { rows: ids } = await home.pool.query('select gen_random_uuid() as id')
  for (const [database, name] of [
    [home, null],
    [cell, 'c1'],
  ] as const)
    await database.pool.query('insert into database_identity (home, cell) values ($1, $2)', [ids[0].id, name])
  service = await fixture.startLocal()
  webhook = await subscribe(service)
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  for (const database of [home, cell]) await database?.[Symbol.asyncDispose]()
})

/** A webhook of the account, subscribed to its contracts. */
async function subscribe({ call }: LocalService): Promise<string> {
  const body = { url: `${receiver.origin}/own`, account: fixture.account, name: 'Own' }
  const made = await call('POST', '/api/v3/webhook/webhook', body)
  expect(made.status).toBe(201)
  const id = made.body.data.document_id
  const found = await call('GET', '/api/v3/webhook/event?filters=internal%7Ceq%7Ccontract.create')
  const events = found.body.data.map((event: { document_id: string }) => event.document_id)
  expect((await call('PUT', `/api/v3/webhook/webhook/${id}/events`, { events })).status).toBe(200)
  return id
}

const run = (...args: string[]) =>
  runCommand(['account', 'move', ...args], { env: buildServiceEnvironment(home.connectionString) })

const change = (name: string) => service.call('POST', '/api/v3/contract/contract', { name, account: fixture.account })

const listRows = async (database: TestDatabase) =>
  (
    await database.pool.query(
      'select status, attempts, lease_owner is not null as is_claimed from webhook_dispatch where webhook = $1 order by created_at',
      [webhook],
    )
  ).rows

test('an account moves while it is delivered to: changes are refused meanwhile, and the attempts go on in the cell', async () => {
  receiver.behaveNext({ kind: 'status', status: 500 })
  expect((await change('fails')).status).toBe(201)
  await waitFor('a failed attempt', async () => (await listRows(home))[0]?.status === 'retrying')
  expect((await change('arrives')).status).toBe(201)
  await waitFor('a delivery', async () => (await listRows(home))[1]?.status === 'success')
  // A transaction that began before: the move waits for it.
  const early = new pg.Client({ connectionString: home.connectionString })
  await early.connect()
  await early.query('set idle_in_transaction_session_timeout = 0')
  await early.query('begin')
  await early.query('select from account')

  const moved = run(fixture.account, 'c1')
  try {
    await waitFor(
      'a hold',
      async () => (await home.pool.query(`select from account_fence where state = 'closed'`)).rowCount === 1,
    )
    const refused = await change('refused')
    expect(refused.status).toBe(503)
    expect(refused.body).toMatchObject({ code: 'account_moving', status: 503 })
    expect(refused.headers['retry-after']).toBe('5')
    expect((await service.call('PATCH', `/api/v3/webhook/webhook/${webhook}`, { name: 'Renamed' })).body.code).toBe(
      'account_moving',
    )
    expect((await service.call('POST', `/api/v3/webhook/webhook/${webhook}/test`, {})).body.code).toBe('account_moving')
    expect((await service.call('GET', `/api/v3/webhook/webhook/${webhook}`)).status).toBe(200)
  } finally {
    await early.query('rollback')
    await early.end()
  }
  const { stdout, stderr, code } = await moved
  expect([stderr, code]).toEqual(['', 0])
  expect(stdout).toContain('drain: waits (await-transactions)')
  expect(stdout).toContain('Moved, with ')

  expect(await listRows(home)).toEqual([])
  expect(await listRows(cell)).toEqual([
    { status: 'retrying', attempts: 1, is_claimed: false },
    { status: 'success', attempts: 1, is_claimed: false },
  ])
  expect((await service.call('GET', `/api/v3/webhook/webhook/${webhook}`)).status).toBe(404)
  // A contract is of home, which tells of it by the log.
  expect((await change('told')).status).toBe(201)
  const { rows } = await home.pool.query(
    `select action, account, detail from audit_log where action like 'account-move.%' order by created_at`,
  )
  expect(rows).toMatchObject([
    {
      action: 'account-move.begin',
      account: fixture.account,
      detail: { from: 'home', to: 'c1', version: 1, actor: 'command line' },
    },
    { action: 'account-move.moved', account: fixture.account, detail: { from: 'home', to: 'c1' } },
  ])
  expect((await home.pool.query('select cell, version::int from account_cell')).rows).toEqual([
    { cell: 'c1', version: 1 },
  ])

  const there = await fixture.startLocal({ databaseUrl: cell.connectionString })
  await cell.pool.query(`update webhook_dispatch_open set next_attempt_at = now()`)
  await cell.pool.query('update webhook_queue set visit_at = now()')
  await waitFor('the second attempt', async () => (await listRows(cell))[0]?.status === 'success')
  expect((await listRows(cell))[0].attempts).toBe(2)
  expect(receiver.requests.map(({ path }) => path)).toEqual(['/own', '/own', '/own'])
  expect(receiver.requests[2]?.headers['webhook-id']).toBe(receiver.requests[0]?.headers['webhook-id'])
  // A process of the cell adds the results up.
  expect((await run(fixture.account, 'home')).code).toBe(0)
  await there.stop()
  expect(await listRows(home)).toHaveLength(2)
  expect((await change('at home again')).status).toBe(201)
  await waitFor('a delivery from home', () => receiver.requests.length === 4)
})

test('an interrupted move goes back, and a wrong command says what is wrong', async () => {
  expect((await run(fixture.account, 'c2')).stderr).toContain('The cell c2 is draining: no account moves there.')
  expect((await run(fixture.account, 'c3')).stderr).toContain('There is no cell c3.')
  expect((await run(fixture.account, 'home')).stderr).toContain('The account is in home already.')
  expect((await run('0199aaaa-0000-7000-8000-00000000000a', 'c1')).stderr).toContain('There is no account with this id')
  expect((await run(fixture.account)).stderr).toContain('There is no move of this account to go on with')
  expect((await run(fixture.account, '--back')).stderr).toContain('There is no move of this account to go back from')
  expect((await run('everything', 'c1')).stderr).toContain('It must be the document_id of an account, or status.')
  expect((await run(fixture.account, 'c1', '--drain', '0')).stderr).toContain('from 1 to 86400')

  await home.pool.query(
    `insert into account_move (account, target, version, step, drain_until, created_at, updated_at)
     values ($1, 'c1', 9, 'hold', now() + interval '1 h', now(), now())`,
    [fixture.account],
  )
  const [status] = JSON.parse((await run('status')).stdout)
  expect(status).toMatchObject({ account: fixture.account, from: 'home', to: 'c1', step: 'hold', is_running: false })
  expect(status.remedy).toContain(`signalbox account move ${fixture.account}`)
  expect((await run(fixture.account, 'c2')).stderr).toContain('The account is moving to c1')
  expect((await run(fixture.account, 'c1', '--back')).stderr).toContain('Give a place, or --back.')
  expect((await run(fixture.account, '--back')).stdout).toContain('The account stays where it was.')
  expect(JSON.parse((await run('status')).stdout)).toEqual([])

  await home.pool.query(`update webhook_dispatch_open set lease_owner = 'nobody', next_attempt_at = null`)
  await home.pool.query(
    `insert into webhook_dispatch_open (document_id, webhook, event_id, event, account, status, attempts, last_attempt_at,
       attempt_trigger, lease_owner, created_at, updated_at)
     values (gen_random_uuid(), $1, gen_random_uuid(), 'contract.create', $2, 'pending', 1, now() + interval '1 h', 'schedule',
       'nobody', now(), now())`,
    [webhook, fixture.account],
  )
  const late = await run(fixture.account, 'c1', '--drain', '1')
  expect([late.code, late.stderr]).toEqual([1, expect.stringContaining('did not end in time')])
  expect((await change('after it went back')).status).toBe(201)
  await waitFor('a delivery from home', () => receiver.requests.length === 5)
  const { rows } = await home.pool.query(
    `select detail->>'reason' as reason from audit_log where action = 'account-move.back'`,
  )
  expect(rows).toEqual([{ reason: 'asked' }, { reason: 'drain_limit' }])
})
