import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { TEST_METRICS_TOKEN, TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { startCellsUnderTest } from '../harness/carriage/cells-under-test.ts'
import { buildLogEnvironment } from '../harness/carriage/event-log-service.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { Receiver } from '../harness/fakes/receiver.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { startNatsServers } from '../harness/nats/nats-servers.ts'
import { waitFor } from '../harness/run/wait.ts'

const program = await findNatsServer('events between databases are tested with a log in memory alone')
const FAR = { limitMs: 120_000 }

/** Of health and metrics: a look takes 20 ms of a processor. */
const SELDOM = { ...FAR, lastPauseMs: 1_000 }

/** The ids of the events that a receiver got, in order. */
const idsOf = ({ requests }: Receiver) => requests.map(({ body }) => JSON.parse(body.toString()).id as string)

test('home and a cell deliver the events of each other, each once, while one of them is away too', async () => {
  if (!program) return
  await using nats = await startNatsServers({ program, size: 1 })
  await using cells = await startCellsUnderTest()
  await using fixture = await openDeliveryFixture(cells.homeDb)
  const [ofAll, ofAccount] = [await fixture.receive(), await fixture.receive()]
  const service = await fixture.startLocal({ env: buildLogEnvironment(nats.url) })
  await cells.add({}, { keyring: buildKeyring(TEST_SECRETS.secretKey, systemRandom) })
  const cell = cells.open(cells.cell)
  await waitFor(
    'the workers of the cell',
    async () => {
      const { rows } = await cell.pool.query('select from delivery_worker')
      return rows.length > 0
    },
    FAR,
  )

  await fixture.subscribe(service, ofAll)
  const made = await service.call('POST', '/api/v3/webhook/webhook', {
    ...{ url: `${ofAccount.origin}/`, account: fixture.account, name: 'Of the account' },
  })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  const webhook = made.body.data.document_id as string
  const found = await service.call('GET', '/api/v3/webhook/event?filters=internal%7Ceq%7Ccontract.create')
  const events = found.body.data.map((event: { document_id: string }) => event.document_id)
  const set = await service.call('PUT', `/api/v3/webhook/webhook/${webhook}/events`, { events })
  expect(set.status, JSON.stringify(set.body)).toBe(200)
  await moveWebhook(webhook)

  async function moveWebhook(id: string): Promise<void> {
    for (const [table, column] of [
      ['webhook', 'document_id'],
      ['webhook_event', 'webhook'],
    ] as const) {
      const { rows } = await cells.homeDb.pool.query(`select to_jsonb(t) as row from ${table} t where ${column} = $1`, [
        id,
      ])
      for (const { row } of rows)
        await cell.pool.query(`insert into ${table} select * from jsonb_populate_record(null::${table}, $1)`, [row])
    }
    // Each database counts its own order: what moved is older than every event that is recorded here.
    await cell.pool.query('update webhook set ordinal = 0 where document_id = $1', [id])
    await cells.homeDb.pool.query('delete from webhook_event where webhook = $1', [id])
    await cells.homeDb.pool.query('delete from webhook where document_id = $1', [id])
    await cell.pool.query(`insert into account_fence (account, version, state) values ($1, 1, 'open')`, [
      fixture.account,
    ])
    await cells.homeDb.pool.query(`insert into account_cell (account, cell, version) values ($1, 'one', 1)`, [
      fixture.account,
    ])
  }
  /** Records an event of the account in the cell, as a publication there does. */
  async function recordInCell(): Promise<string> {
    const id = randomUUID()
    await cell.pool.query(
      `with recorded as (
         insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at)
         values ($1, 'contract.create', $2, 'contract', 'create', 'x', now()) returning document_id
       ) insert into event_queue select document_id from recorded`,
      [id, fixture.account],
    )
    return id
  }
  const have = (receiver: Receiver, count: number) =>
    waitFor(`${count} events`, () => receiver.requests.length >= count, FAR)

  await fixture.change(service)
  await Promise.all([have(ofAll, 1), have(ofAccount, 1)])
  expect(idsOf(ofAccount)).toEqual(idsOf(ofAll))
  const own = await recordInCell()
  await Promise.all([have(ofAll, 2), have(ofAccount, 2)])
  expect([idsOf(ofAll)[1], idsOf(ofAccount)[1]]).toEqual([own, own])

  // Home is away: the cell delivers its own events, and home gets them later.
  cells.setAway('home', true)
  const meanwhile = await recordInCell()
  await have(ofAccount, 3)
  expect(ofAll.requests).toHaveLength(2)
  cells.setAway('home', false)
  await have(ofAll, 3)
  expect(idsOf(ofAll)[2]).toBe(meanwhile)

  // The cell is away: home delivers, and the cell gets the event later.
  const readHealth = async () =>
    (await service.call('GET', '/api/v3/health')).body.data.components.find(
      ({ component }: { component: string }) => component === 'cells',
    )
  const scrape = async () =>
    (await service.call('GET', '/metrics', undefined, { authorization: `Bearer ${TEST_METRICS_TOKEN}` })).body as string
  const whole = { cells: [{ name: 'one', state: 'active', is_reachable: true }], interrupted_moves: 0, remedy: null }
  await waitFor('a whole cell', async () => (await readHealth()).status === 'operational', SELDOM)
  expect((await readHealth()).details).toMatchObject(whole)
  await waitFor('its metrics', async () => /^cell_up\{cell="one"\} 1$/m.test(await scrape()), SELDOM)
  expect(await scrape()).toMatch(/^cell_accounts\{cell="one"\} 1$/m)

  cells.setAway('cell', true)
  await waitFor('a cell that is away', async () => (await readHealth()).status === 'degraded', SELDOM)
  expect((await readHealth()).details).toMatchObject({
    ...{ cells: [{ name: 'one', is_reachable: false, oldest_waiting_s: null }], interrupted_moves: 0 },
    remedy: expect.stringContaining('signalbox cell status'),
  })
  await waitFor('its metrics', async () => /^cell_up\{cell="one"\} 0$/m.test(await scrape()), SELDOM)
  expect(await scrape()).not.toContain('cell_backlog{')
  await fixture.change(service)
  await have(ofAll, 4)
  expect(ofAccount.requests).toHaveLength(3)
  cells.setAway('cell', false)
  await have(ofAccount, 4)
  expect(idsOf(ofAccount).toSorted()).toEqual(idsOf(ofAll).toSorted())
  expect(new Set(idsOf(ofAll)).size).toBe(4)

  // An interrupted move is reported, and a process without a log refuses its cells.
  await cells.homeDb.pool.query(
    `insert into account_move (account, source, version, step, drain_until, created_at, updated_at)
     values ($1, 'one', 2, 'hold', now() + interval '1 h', now(), now() - interval '1 min')`,
    [fixture.account],
  )
  await service.waitForLog(/move of an account was interrupted, its changes are refused: run signalbox account move/)
  await waitFor('an interrupted move', async () => (await readHealth()).details.interrupted_moves === 1, SELDOM)
  expect(JSON.stringify(await readHealth())).not.toContain(fixture.account)
  await cells.homeDb.pool.query('delete from account_move')
  const without = await fixture.startLocal({ roles: 'api' })
  await without.waitForLog(/cells are not served by this process, since EVENT_LOG_URL is not set/)
  await without.stop()

  const { rows } = await cell.pool.query(
    'select origin, count(*)::int as n from event_occurrence where event = $1 group by 1 order by 1',
    ['contract.create'],
  )
  expect(rows).toEqual([
    { origin: 'home', n: 2 },
    { origin: null, n: 2 },
  ])
  await service.stop()
}, 400_000)
