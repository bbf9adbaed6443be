import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Filled, fillPopulation, OWN_ROWS, type Population } from '../../bench/lists/population.ts'
import { eventNameOf } from '../../src/http/route.ts'
import { INDEX_PLANS, READ_PLANS } from '../../src/postgres/database.ts'
import { createTestApp, type TestApp, type TestCall } from '../harness/app.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database.ts'
import { type ExecutedStatement, openMeasuring } from '../harness/explain.ts'
import { ROUTES } from './route-requests.ts'

/** Share of the full size of a population (npm run bench -- lists). Each account of the callers has a few rows in each list. */
const SCALE = 0.01
const PAGE_SIZE = 10

/** Tables of what a release brings, and of what has a limit for all: their size does not follow from others. */
const SMALL = ['event', 'permission', 'role', 'role_permission', 'provisioning_target']

const LISTS = ROUTES.filter((route) => route.list && route.access === undefined)

/** What a page costs for each row that it looks at: the row, and another one that the row refers to. */
const READS_A_ROW = 3

const CALLERS = ['operator', 'member of one', 'member of 50', 'key of one', 'member of another'] as const
type CallerName = (typeof CALLERS)[number]

const ACCOUNTS: Record<CallerName, number> = {
  operator: 1,
  'member of one': 1,
  'member of 50': 50,
  'key of one': 1,
  'member of another': 1,
}

/** A service beside a population, whose lists are planned with these settings. */
async function openWorld(database: TestDatabase, settings: string) {
  let executed: ExecutedStatement[] = []
  const reads = openMeasuring(database.connectionString, settings, (one) => executed.push(one))
  const app = await createTestApp({ database, readDatabase: reads })
  return {
    app,
    /** The rows of tables, and entries that were left out, that a list read for `caller`. */
    countRead: async (caller: TestCall, path: string) => {
      executed = []
      const answer = await caller('GET', path)
      if (answer.status === 200)
        expect(executed.length, `statements of ${path} over the pool of reads`).toBeGreaterThan(0)
      const nodes = executed.flatMap((one) => one.nodes)
      const rows = nodes.reduce((sum, node) => {
        const { 'Relation Name': table, 'Actual Rows': read = 0, 'Actual Loops': loops = 1 } = node
        const left = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
        return table === undefined || SMALL.includes(table) ? sum : sum + (read + left) * loops
      }, 0)
      const steps = nodes.map((node) =>
        ['Node Type', 'Index Name', 'Actual Rows', 'Actual Loops', 'Rows Removed by Filter']
          .map((name) => node[name as keyof typeof node] ?? '')
          .join(' '),
      )
      return { answer, rows, plan: [...executed.map((one) => one.sql), ...steps].join('\n') }
    },
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]()
      await reads.close()
    },
  }
}

async function makeCallers({ admin, signInMember, callAs }: TestApp, { own, other }: Filled) {
  const { data: roles } = (await admin('GET', '/api/v3/identity/role?filters=name|eq|account-admin')).body
  const addMember = async (accounts: readonly string[]) => {
    const { userId, call } = await signInMember()
    for (const account of accounts) {
      const body = { user: userId, roles: [roles[0].document_id] }
      expect((await admin('POST', `/api/v3/identity/account/${account}/member`, body)).status).toBe(201)
    }
    return call
  }
  const [first = ''] = own
  const one = await addMember([first])
  const permissions = ['webhook:find-all', 'webhook-event:find-all', 'webhook-dispatch:find-all', 'contract:find-all']
  const body = { name: 'bound', account: first, permissions: [...permissions, 'event-occurrence:find-all'] }
  const key = await one('POST', '/api/v3/identity/api-key', body)
  expect(key.status).toBe(201)
  const callers: Record<CallerName, TestCall> = {
    operator: admin,
    'member of one': one,
    'member of 50': await addMember(own),
    'key of one': callAs(key.body.data.key),
    'member of another': await addMember([other]),
  }
  return callers
}

describe.each<Population>(['one huge', 'spread'])('beside others, %s', (population) => {
  let database: TestDatabase
  let filled: Filled

  beforeAll(async () => {
    database = await createTestDatabase({ content: 'prepared', isOwn: true })
    const client = await database.pool.connect()
    try {
      filled = await fillPopulation(client, { population, scale: SCALE })
    } finally {
      client.release()
    }
  }, 120_000)
  afterAll(() => database?.[Symbol.asyncDispose]())

  describe.each([
    ['planned for their values', READ_PLANS],
    ['planned for any values', INDEX_PLANS],
  ])('lists that are %s', (_name, settings) => {
    let world: Awaited<ReturnType<typeof openWorld>>
    let callers: Awaited<ReturnType<typeof makeCallers>>
    beforeAll(async () => {
      world = await openWorld(database, settings)
      callers = await makeCallers(world.app, filled)
    })
    afterAll(() => world?.[Symbol.asyncDispose]())

    it.each(LISTS.map((route) => [eventNameOf(route), route.path] as const))(
      'a page of %s reads what it returns, for every kind of caller',
      async (_event, path) => {
        for (const caller of CALLERS) {
          const account = caller === 'member of another' ? filled.other : filled.own[0]
          const url = `${path.replace('{id}', account ?? '')}?page_size=${PAGE_SIZE}`
          const { answer, rows, plan } = await world.countRead(callers[caller], url)
          if (answer.status === 403) continue
          expect(answer.status).toBe(200)
          expect(rows, `as ${caller}: ${plan}`).toBeLessThanOrEqual(ACCOUNTS[caller] * READS_A_ROW * (PAGE_SIZE + 1))
        }
      },
    )

    it.each(['member of one', 'member of 50'] as const)(
      'the dashboard of a %s reads what its accounts have',
      async (caller) => {
        const { answer, rows, plan } = await world.countRead(callers[caller], '/api/v3/webhook/dashboard/summary')
        expect(answer).toMatchObject({ status: 200, body: { data: { is_complete: true } } })
        // Each of them has a few webhooks, deliveries and failures.
        expect(rows, plan).toBeLessThanOrEqual(ACCOUNTS[caller] * 2 * READS_A_ROW * OWN_ROWS)
      },
    )
  })
})
