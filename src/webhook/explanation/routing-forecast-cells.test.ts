import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger, type Ledger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import type { ReadEach } from '../../http/route/cell-key.ts'
import { FORECAST_WEBHOOKS_LIMIT, forecastRouting } from './routing-forecast.ts'

const clock = buildManualClock()

let home: TestDatabase
let cell: TestDatabase
let ledgers: { home: Ledger; cell: Ledger }
let eventType: string
let account: AccountId
let asked: (readonly AccountId[] | undefined)[]
beforeAll(async () => {
  ;[home, cell] = [await createTestDatabase(), await createTestDatabase()]
  ledgers = { home: buildLedger(home.db, clock), cell: buildLedger(cell.db, clock) }
  eventType = await ledgers.home.addEventType('contract.create')
  account = await ledgers.home.addAccount()
  // Reference rows are replicated to cells.
  await cell.pool.query(
    `insert into event (document_id, internal, account_scope, is_actived, created_at, updated_at)
     values ($1, 'contract.create', 'account', true, now(), now())`,
    [eventType],
  )
  await cell.pool.query(
    `insert into account (document_id, name, created_at, updated_at) values ($1, 'Example', now(), now())`,
    [account],
  )
})
afterAll(async () => {
  await home[Symbol.asyncDispose]()
  await cell[Symbol.asyncDispose]()
})

/** Reads home, and the cell while it answers. */
const readIn =
  (...databases: TestDatabase[]): ReadEach =>
  (read, accounts) => {
    asked.push(accounts)
    return Promise.all(databases.map(({ db }) => read({ db } as Parameters<typeof read>[0])))
  }

async function forecast(readEach: ReadEach, webhook: WebhookId | null = null) {
  asked = []
  const now = new Date(clock.now())
  return forecastRouting(readEach, eventType, { account, resourceId: null, webhook, now })
}

const add = async (place: 'home' | 'cell', row: { account?: AccountId } = {}) => {
  clock.advance(1_000)
  return ledgers[place].addWebhook({ ...row, events: ['contract.create'] })
}

test('the webhooks of home and of a cell are one list in the order of their age, the global ones last', async () => {
  const global = await add('home')
  const own = [await add('cell', { account }), await add('home', { account }), await add('cell', { account })]
  const second = await add('home')
  const idsOf = ({ entries }: Awaited<ReturnType<typeof forecast>>) => entries.map(({ webhook }) => webhook.id)
  expect(idsOf(await forecast(readIn(home, cell)))).toEqual([...own, global, second])
  expect(asked).toEqual([[account]])
  expect(idsOf(await forecast(readIn(home)))).toEqual([own[1], global, second])
  expect(idsOf(await forecast(readIn(home, cell), own[2]))).toEqual([own[2]])
  // The database of one webhook is not known.
  expect(asked).toEqual([undefined])

  // A row that is in both, while its account moves, counts once.
  await home.pool.query(
    `insert into webhook (document_id, url, account, is_global, created_at, updated_at)
     values ($1, 'https://subscriber.example.com/', $2, false, $3, $3)`,
    [own[2], account, new Date(clock.now() - 1_000)],
  )
  expect(idsOf(await forecast(readIn(home, cell)))).toEqual([...own, global, second])
})

test('the list of both ends at its limit', async () => {
  await cell.pool.query(
    `insert into webhook (document_id, url, account, created_at, updated_at)
     select gen_random_uuid(), 'https://example.com/' || n, $1, now(), now() from generate_series(1, $2::int) n`,
    [account, FORECAST_WEBHOOKS_LIMIT],
  )
  const { entries, isTruncated } = await forecast(readIn(home, cell))
  expect([entries.length, isTruncated]).toEqual([FORECAST_WEBHOOKS_LIMIT, true])
})

test('an event type that home does not have is none, whatever a cell has', async () => {
  await cell.pool.query(
    `insert into event (document_id, internal, account_scope, is_actived, created_at, updated_at)
     values ($1, 'contract.other', 'account', true, now(), now())`,
    [account],
  )
  const given = { account, resourceId: null, webhook: null, now: new Date(clock.now()) }
  asked = []
  await expect(forecastRouting(readIn(home, cell), account, given)).rejects.toMatchObject({ code: 'not_found' })
})
