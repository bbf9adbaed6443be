import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Filled, fillPopulation, OWN_ROWS, type Population } from '../../bench/lists/population.ts'
import { eventNameOf } from '../../src/http/route/route.ts'
import { INDEX_PLANS, READ_PLANS } from '../../src/postgres/statement/database.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { ACCOUNTS, CALLERS, makeCallers, openListsFixture, readsARow } from '../harness/plan/lists-population.ts'
import { CONNECTION_BODY } from './connection-route-requests.ts'
import { ROUTES } from './route-requests.ts'

/** Share of the full size of a population (npm run bench -- lists). Each account of the callers has a few rows in each list. */
const SCALE = 0.01
const PAGE_SIZE = 10

const LISTS = ROUTES.filter((route) => route.list && route.access === undefined)

/** Rows that an account has in the dashboard, each with another one that it refers to. */
const READS_A_ROW = 3

/** A resource of each account of the callers, whose id another account uses for many events too. */
const SHARED_ID = 'filled-49'
const SHARED_EVENTS = 3_000

describe.each<Population>(['one huge', 'spread'])('beside others, %s', (population) => {
  let database: TestDatabase
  let filled: Filled

  beforeAll(async () => {
    database = await createTestDatabase({ content: 'prepared', isOwn: true })
    const client = await database.pool.connect()
    try {
      filled = await fillPopulation(client, { population, scale: SCALE })
      await client.query(
        `insert into event_occurrence (document_id, event, account, resource, action, resource_id, routed_at, created_at)
         select gen_random_uuid(), 'contract.update', $1, 'contract', 'update', $2, at, at
         from generate_series(1, $3::int) n, lateral (select now() + n * interval '1 ms' as at) x`,
        [filled.other, SHARED_ID, SHARED_EVENTS],
      )
      await client.query('analyze event_occurrence')
    } finally {
      client.release()
    }
  })
  afterAll(() => database?.[Symbol.asyncDispose]())

  describe.each([
    ['planned for their values', READ_PLANS],
    ['planned for any values', INDEX_PLANS],
  ])('lists that are %s', (_name, settings) => {
    let fixture: Awaited<ReturnType<typeof openListsFixture>>
    let callers: Awaited<ReturnType<typeof makeCallers>>
    /** Rows of the operator that paths name: a user, the role that every user has, a target of provisioning, an app. */
    let named: Record<'user' | 'role' | 'target' | 'client', string>
    const connections = new Map<string, string>()
    beforeAll(async () => {
      fixture = await openListsFixture(database, settings)
      callers = await makeCallers(fixture.app, filled)
      for (const account of [filled.other, filled.own[0] ?? '']) {
        const made = await callers.operator('POST', `/api/v3/identity/account/${account}/connection`, CONNECTION_BODY)
        connections.set(account, made.body.data.document_id)
      }
      const first = async (path: string) =>
        (await callers.operator('GET', `/api/v3/${path}`)).body.data[0].document_id as string
      const makeTarget = async () => {
        const url = 'https://hooks.example.com/users'
        const { body } = await callers.operator('POST', '/api/v3/provisioning/target', { url })
        return body.data.document_id as string
      }
      const makeApp = async () => {
        const app = { name: 'Listed', type: 'public', redirect_uris: ['https://app.example.com/callback'] }
        return (await callers.operator('POST', '/api/v3/oauth/client', app)).body.data.document_id as string
      }
      named = {
        user: await first('identity/user?page_size=1'),
        role: await first('identity/role?filters=name|eq|member'),
        target: await makeTarget(),
        client: await makeApp(),
      }
    })
    afterAll(() => fixture?.[Symbol.asyncDispose]())

    test.each(LISTS.map((route) => [eventNameOf(route), route.path] as const))(
      'a page of %s reads what it returns, for every kind of caller',
      async (event, path) => {
        for (const caller of CALLERS) {
          const account = caller === 'member of another' ? filled.other : filled.own[0]
          const [, kind] =
            /^\/api\/v3\/(?:identity|provisioning|oauth)\/(user|role|target|client)\/\{id\}/.exec(path) ?? []
          const id = kind === undefined ? (account ?? '') : named[kind as keyof typeof named]
          const filledPath = path.replace('{id}', id).replace('{connection}', connections.get(id) ?? '')
          const url = `${filledPath}?page_size=${PAGE_SIZE}`
          const { answer, rows, plan } = await fixture.countRead(callers[caller], url)
          if (answer.status === 403) continue
          expect(answer.status).toBe(200)
          expect(rows, `as ${caller}: ${plan}`).toBeLessThanOrEqual(
            ACCOUNTS[caller] * readsARow(event) * (PAGE_SIZE + 1),
          )
        }
      },
    )

    test.each(['event-occurrence', 'dispatch'])(
      'a resource id that others use as well costs the list %s nothing',
      async (list) => {
        for (const caller of ['member of one', 'member of 50', 'key of one'] as const) {
          const url = `/api/v3/webhook/${list}?page_size=${PAGE_SIZE}&filters=resource_id|eq|${SHARED_ID}`
          const { answer, rows, plan } = await fixture.countRead(callers[caller], url)
          expect([answer.status, answer.body.data.length > 0]).toEqual([200, true])
          // The event, its delivery, and the webhook of that.
          expect(rows, `as ${caller}: ${plan}`).toBeLessThanOrEqual(ACCOUNTS[caller] * 2 * READS_A_ROW)
        }
      },
    )

    test.each(['member of one', 'member of 50'] as const)(
      'the dashboard of a %s reads what its accounts have',
      async (caller) => {
        const { answer, rows, plan } = await fixture.countRead(callers[caller], '/api/v3/webhook/dashboard/summary')
        expect(answer).toMatchObject({ status: 200, body: { data: { is_complete: true } } })
        // Each of them has a few webhooks, deliveries and failures.
        expect(rows, plan).toBeLessThanOrEqual(ACCOUNTS[caller] * 2 * READS_A_ROW * OWN_ROWS)
      },
    )
  })
})
