import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Filled, fillPopulation } from '../../bench/lists/population.ts'
import type { ListFields } from '../../src/http/listing/listing.ts'
import { eventNameOf, type RouteDeclaration } from '../../src/http/route/route.ts'
import { READ_PLANS } from '../../src/postgres/statement/database.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import {
  type CallerName,
  fillRareTables,
  makeCallers,
  openListsFixture,
  readsARow,
} from '../harness/plan/lists-population.ts'
import { CONNECTION_BODY } from './connection-route-requests.ts'
import { ROUTES } from './route-requests.ts'

/** Share of the full size of a population (npm run bench -- lists): some 10,000 events and 2,000 users of one other account. */
const SCALE = 0.01
const PAGE_SIZE = 10

const mostRead = (event: string) => readsARow(event) * (PAGE_SIZE + 1)

type List = RouteDeclaration & { list: ListFields }
const LISTS = ROUTES.filter((route): route is typeof route & List => route.list !== undefined && !route.access)

/** Those who reach the most rows: all of them, and those of the account that holds nearly all. */
const CALLERS = ['operator', 'member of another'] as const satisfies readonly CallerName[]

/** Values that no row has, but for booleans, by which few rows are looked for. */
const ABSENT = {
  text: 'zqxv',
  uuid: '01890000-0000-7000-8000-000000000001',
  integer: '77777',
  timestamp: '2001-01-01T00:00:00Z',
}
const FEW: Record<string, string> = { is_actived: 'false' }

const OF_EVENTS = ['event', 'resource']
const OF_DELIVERIES = [
  ...['event', 'attempts', 'last_status_code', 'last_error', 'is_test', 'updated_at', '-updated_at'],
]
const OF_CONTRACTS = ['name', 'status', 'updated_at', '-name', '-status', '-updated_at']

/**
 * Filters and sorts (`-field`) that no index serves, each with the reason. They end after 2 s (`expensive-reads.test.ts`), or
 * where the rows of an account end.
 */
const UNSERVED: Record<string, { list: string; callers: readonly CallerName[]; fields: readonly string[] }[]> = {
  'another index would cost each event, delivery, message or audit entry': [
    { list: 'event-occurrence.find-all', callers: CALLERS, fields: OF_EVENTS },
    { list: 'webhook-dispatch.find-all', callers: CALLERS, fields: OF_DELIVERIES },
    {
      list: 'audit-log.find-all',
      callers: ['operator'],
      fields: ['action', 'outcome', 'session', 'api_key', 'client_id', 'account', 'address', 'request_id'],
    },
    { list: 'realtime-message.find-all', callers: ['operator'], fields: ['event'] },
    {
      list: 'realtime-channel-event.find-all',
      callers: ['operator'],
      fields: ['name', 'user_id', 'event', 'happened_at'],
    },
  ],
  'another index would cost each sign-in or refresh': [
    {
      list: 'session.find-all',
      callers: ['operator'],
      fields: ['address', 'auth_time', 'last_used_at', 'expires_at', 'updated_at', '-updated_at'],
    },
  ],
  'each failed delivery writes them': [
    {
      list: 'webhook.find-all',
      callers: ['operator'],
      fields: ['consecutive_failures', 'updated_at', '-consecutive_failures', '-updated_at'],
    },
  ],
  'each change of a contract writes them': [
    { list: 'contract.find-all', callers: CALLERS, fields: OF_CONTRACTS },
    { list: 'contract.find-all', callers: ['member of another'], fields: ['name like', 'status like'] },
  ],
  'the limits of an account bound how many there are': [
    {
      list: 'webhook.find-all',
      callers: ['member of another'],
      fields: [
        ...['-url', '-consecutive_failures', '-updated_at', 'url like', 'name like', 'description like'],
        ...['name', 'description', 'consecutive_failures', 'updated_at'],
      ],
    },
    {
      list: 'webhook-event.find-all',
      callers: ['member of another'],
      fields: ['document_id', 'webhook', 'event', 'updated_at', '-updated_at'],
    },
  ],
}

/** Queries of a list, by the names above. */
function listQueries(fields: ListFields): [name: string, query: string][] {
  return Object.entries(fields).flatMap(([name, { type, sortable, like }]) => [
    ...(sortable ? [[`-${name}`, `sort=-${name}`] as [string, string]] : []),
    [name, `filters=${name}|eq|${type === 'boolean' ? (FEW[name] ?? 'true') : ABSENT[type]}`],
    ...(type === 'text' && like !== undefined
      ? [[`${name} like`, `filters=${name}|like|${ABSENT.text}`] as [string, string]]
      : []),
  ])
}

let database: TestDatabase
let fixture: Awaited<ReturnType<typeof openListsFixture>>
let filled: Filled
let connection: string
let callers: Awaited<ReturnType<typeof makeCallers>>

beforeAll(async () => {
  database = await createTestDatabase({ content: 'prepared', isOwn: true })
  const client = await database.pool.connect()
  try {
    filled = await fillPopulation(client, { population: 'one huge', scale: SCALE })
    await fillRareTables(client)
  } finally {
    client.release()
  }
  fixture = await openListsFixture(database, READ_PLANS)
  callers = await makeCallers(fixture.app, filled)
  const path = `/api/v3/identity/account/${filled.other}/connection`
  connection = (await callers.operator('POST', path, CONNECTION_BODY)).body.data.document_id
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
})

const ask = (path: string, caller: CallerName, query: string) => {
  const url = `${path.replace('{id}', filled.other).replace('{connection}', connection)}?page_size=${PAGE_SIZE}&${query}`
  return fixture.countRead(callers[caller], url)
}

describe('beside an account with nearly all rows', () => {
  test.each(LISTS.map((route) => [eventNameOf(route), route] as const))(
    'every filter and sort of %s is served by an index, or listed with the reason',
    async (event, { path, list }) => {
      for (const caller of CALLERS) {
        const unserved: string[] = []
        for (const [name, query] of listQueries(list)) {
          const { answer, rows } = await ask(path, caller, query)
          if (answer.status === 200 && rows > mostRead(event)) unserved.push(name)
        }
        const known = Object.values(UNSERVED)
          .flat()
          .filter((item) => item.list === event && item.callers.includes(caller))
        expect(unserved.sort(), `as ${caller}`).toEqual(known.flatMap(({ fields }) => fields).sort())
      }
    },
  )

  // Thousands of its deliveries failed or are exhausted; most succeeded.
  test.each([
    ['eq|failed', 1],
    ['eq|exhausted', 1],
    ['eq|cancelled', 1],
    ['in|failed,exhausted', 2],
    ['nin|success,cancelled', 2],
    ['ne|success', 3],
    ['eq|success', 1],
  ])('deliveries by status|%s read a page of each status that is asked for', async (filter, statuses) => {
    for (const caller of CALLERS) {
      const query = `filters=status|${filter}`
      const { answer, rows, plan } = await ask('/api/v3/webhook/dispatch', caller, query)
      expect(answer.status).toBe(200)
      expect(answer.body.data).toHaveLength(filter === 'eq|cancelled' ? 0 : PAGE_SIZE)
      expect(rows, `as ${caller}: ${plan}`).toBeLessThanOrEqual(statuses * mostRead('webhook-dispatch.find-all'))
    }
  })

  const TEXTS = LISTS.flatMap(({ path, list }) =>
    Object.entries(list).flatMap(([name, field]) =>
      // A field with a condition of its own has operators of its own.
      field.type === 'text' && !('condition' in field) ? [[path, name, field.like] as const] : [],
    ),
  )

  test.each(TEXTS)(
    '%s takes like on %s with three characters and an index, or a range of time',
    async (path, name, like) => {
      const isRanged = like === undefined || like === 'in-range' || like === 'of-accounts'
      const bare = await ask(path, 'operator', `filters=${name}|like|zqx`)
      if (isRanged)
        expect(bare.answer).toMatchObject({
          status: 422,
          body: {
            errors: [{ path: 'filters.0', code: 'range', message: expect.stringContaining(`like on ${name} only`) }],
          },
        })
      else expect(bare.answer.status).toBe(200)
      if (like === 'indexed') expect(bare.plan).toContain('_parts_idx')
      const ranged = (text: string) =>
        ask(path, 'operator', `filters=${name}|like|${text}&filters=created_at|gte|2026-01-01T00:00:00Z`)
      expect((await ranged('zqx')).answer.status).toBe(200)
      expect((await ranged('zq')).answer).toMatchObject({
        status: 422,
        body: { errors: [{ path: 'filters.0', code: 'values', message: expect.stringContaining('3 characters') }] },
      })
    },
  )
})
