import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/app/config/config.ts'
import { openResources } from '../../src/app/prepare/resources.ts'
import { systemClock } from '../../src/base/clock.ts'
import { systemRandom } from '../../src/base/random.ts'
import { openDatabase, READ_LIMIT_MS, READ_PLANS } from '../../src/postgres/statement/database.ts'
import { createTestApp, type TestApp, type TestCall } from '../harness/app/app.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { TEST_CONNECT_LIMIT_MS } from '../harness/database/kept-pool.ts'
import { startLocalService } from '../harness/process/local-service.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const CONTRACTS = '/api/v3/contract/contract'
const POOL_SIZE = 5

/** Expensive reads of one caller at once, and how many of them run and wait (docs/contract/api.md#expensive-reads). */
const ASKED = 40
const TAKEN = 12

/** A service whose reads have a pool of their own, and the time that their statements may take. */
async function openFixture(statementTimeoutMs: number) {
  const database = await createTestDatabase({ content: 'prepared' })
  const readDatabase = openDatabase({
    connectionString: database.connectionString,
    size: POOL_SIZE,
    settings: READ_PLANS,
    applicationName: 'signalbox test',
    limits: { statementMs: statementTimeoutMs },
    connectLimitMs: TEST_CONNECT_LIMIT_MS,
    onError: () => {},
  })
  const fixture = await createTestApp({
    database,
    readDatabase,
    env: { DATABASE_READ_POOL_SIZE: String(POOL_SIZE) },
  })
  return {
    ...fixture,
    ...{ database, readDatabase },
    /** Keeps every read of contracts waiting until it is released. */
    holdContracts: async () => {
      const client = await database.pool.connect()
      await client.query('begin; lock table contract in access exclusive mode')
      return { release: () => client.query('rollback').then(() => client.release()) }
    },
    [Symbol.asyncDispose]: async () => {
      await fixture[Symbol.asyncDispose]()
      await readDatabase.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** An account with a viewer, which sends the same read again and again. */
async function addViewer(
  { admin, signInMember }: TestApp,
  name: string,
): Promise<{ call: TestCall; account: string; userId: string }> {
  const { body } = await admin('POST', '/api/v3/identity/account', { name })
  const account: string = body.data.document_id
  const { data: roles } = (await admin('GET', '/api/v3/identity/role?filters=name|eq|account-viewer')).body
  const { userId, call } = await signInMember()
  const member = { user: userId, roles: [roles[0].document_id] }
  expect((await admin('POST', `/api/v3/identity/account/${account}/member`, member)).status).toBe(201)
  return { call, account, userId }
}

const countByStatus = (answers: readonly { status: number }[]) =>
  Object.fromEntries(
    Map.groupBy(answers, ({ status }) => status)
      .entries()
      .map(([status, all]) => [status, all.length]),
  )

describe('while reads hang', () => {
  let fixture: Awaited<ReturnType<typeof openFixture>>
  beforeAll(async () => {
    fixture = await openFixture(60_000)
  })
  afterAll(() => fixture?.[Symbol.asyncDispose]())

  test('forty expensive ones of one viewer leave sign-in, readiness, publishing and the lists of others as they are', async () => {
    const { admin, anonymous, holdContracts, readDatabase } = fixture
    const viewer = await addViewer(fixture, 'Asks too much')
    const other = await addViewer(fixture, 'Asks for a page')
    const email = 'reads@example.com'
    const password = 'a password that nobody else has'
    expect((await admin('POST', '/api/v3/identity/user', { email, password })).status).toBe(201)
    await admin('POST', '/api/v3/webhook/event', { internal: 'reads.happened', account_scope: 'account' })
    const held = await holdContracts()
    let answered = 0
    const asked = Array.from({ length: ASKED }, async () => {
      const answer = await viewer.call('GET', `${CONTRACTS}?count=true&filters=name|like|abc`)
      answered += 1
      return answer
    })
    await waitFor('two statements of the reads', () => readDatabase.pool.totalCount - readDatabase.pool.idleCount === 2)
    // Every request has come to its turn: one that came after the end of another would take its place.
    await waitFor('the refusals', () => answered === ASKED - TAKEN)

    expect((await anonymous('GET', '/readyz')).status).toBe(200)
    expect((await anonymous('POST', '/api/v3/auth/login/local', { email, password })).status).toBe(200)
    const event = { event: 'reads.happened', account: other.account, id: 'one' }
    expect((await admin('POST', '/api/v3/webhook/publish', event)).status).toBe(202)
    const lists = ['/api/v3/webhook/webhook', '/api/v3/webhook/webhook?count=true', '/api/v3/webhook/event-occurrence']
    for (const list of lists) expect((await other.call('GET', list)).status, list).toBe(200)
    // Not one more statement of the viewer runs meanwhile.
    expect(readDatabase.pool.waitingCount).toBe(0)

    await held.release()
    const answers = await Promise.all(asked)
    expect(countByStatus(answers)).toEqual({ 200: TAKEN, 429: ASKED - TAKEN })
    const refused = answers.find(({ status }) => status === 429)
    expect(refused).toMatchObject({ body: { code: 'rate_limited' }, headers: { 'retry-after': '1' } })
  })

  test('those that wait for their turn while their viewer loses the account are not made', async () => {
    const { admin, holdContracts } = fixture
    const { call, account, userId } = await addViewer(fixture, 'Loses a viewer')
    const held = await holdContracts()
    let answered = 0
    const asked = Array.from({ length: ASKED }, async () => {
      const answer = await call('GET', `${CONTRACTS}?count=true&filters=name|like|abc`)
      answered += 1
      return answer
    })
    await waitFor('the refusals', () => answered === ASKED - TAKEN)
    const checkedBeforeMs = performance.now()
    expect((await admin('DELETE', `/api/v3/identity/account/${account}/member`, { user: userId })).status).toBe(200)
    await waitFor('half a second', () => performance.now() - checkedBeforeMs > 500)
    await held.release()
    expect(countByStatus(await Promise.all(asked))).toEqual({ 200: 2, 403: TAKEN - 2, 429: ASKED - TAKEN })
  })

  test('forty exports of one viewer take turns like its other reads', async () => {
    const { database, readDatabase } = fixture
    const viewer = await addViewer(fixture, 'Exports too much')
    const client = await database.pool.connect()
    await client.query('begin; lock table webhook_dispatch_ended in access exclusive mode')
    let answered = 0
    const asked = Array.from({ length: ASKED }, async () => {
      const answer = await viewer.call('GET', '/api/v3/webhook/dispatch/export?format=csv')
      answered += 1
      return answer
    })
    await waitFor(
      'two statements of the exports',
      () => readDatabase.pool.totalCount - readDatabase.pool.idleCount === 2,
    )
    await waitFor('the refusals', () => answered === ASKED - TAKEN)
    expect(readDatabase.pool.totalCount - readDatabase.pool.idleCount).toBe(2)
    expect(readDatabase.pool.waitingCount).toBe(0)
    await client.query('rollback')
    client.release()
    expect(countByStatus(await Promise.all(asked))).toEqual({ 200: TAKEN, 429: ASKED - TAKEN })
  })

  test('those of two users of one account and of a key of one of them take turns of the account', async () => {
    const { admin, callAs, holdContracts, readDatabase, signInMember } = fixture
    const { data: roles } = (await admin('GET', '/api/v3/identity/role?filters=name|eq|account-viewer')).body
    const { call, account } = await addViewer(fixture, 'Of three users')
    const body = { name: 'bound', account, permissions: ['webhook:find-all', 'contract:find-all'] }
    const key = callAs((await call('POST', '/api/v3/identity/api-key', body)).body.data.key)
    const callers = [call, key]
    for (let n = 0; n < 2; n += 1) {
      const { userId, call: next } = await signInMember()
      await admin('POST', `/api/v3/identity/account/${account}/member`, { user: userId, roles: [roles[0].document_id] })
      callers.push(next)
    }
    const held = await holdContracts()
    const asked = callers.map((caller) => caller('GET', `${CONTRACTS}?count=true`))
    await waitFor('three statements', () => readDatabase.pool.totalCount - readDatabase.pool.idleCount === 3)
    // Behind them a read of somebody else runs.
    expect((await admin('GET', '/api/v3/webhook/webhook?count=true')).status).toBe(200)
    expect(readDatabase.pool.totalCount - readDatabase.pool.idleCount).toBe(3)
    await held.release()
    expect(countByStatus(await Promise.all(asked))).toEqual({ 200: callers.length })
  })
})

describe('a read that takes longer than its limit', () => {
  let fixture: Awaited<ReturnType<typeof openFixture>>
  beforeAll(async () => {
    fixture = await openFixture(300)
  })
  afterAll(() => fixture?.[Symbol.asyncDispose]())

  test.each(['', '?count=true', '?filters=name|eq|abc', '?sort=name'])(
    'is 422 with what to leave out: contracts%s',
    async (query) => {
      const held = await fixture.holdContracts()
      const { status, body } = await fixture.admin('GET', `${CONTRACTS}${query}`)
      await held.release()
      expect({ status, code: body.code }).toEqual({ status: 422, code: 'read_too_expensive' })
      expect(body.detail).toMatch(/created_at\|gte\|.*count/)
      // Its turn and its connection are free again.
      expect((await fixture.admin('GET', `${CONTRACTS}${query}`)).status).toBe(200)
    },
  )

  test('is 422 also for an export, in place of a file that is cut off', async () => {
    const client = await fixture.database.pool.connect()
    await client.query('begin; lock table webhook_dispatch_ended in access exclusive mode')
    const { status, body } = await fixture.admin('GET', '/api/v3/webhook/dispatch/export?format=json')
    await client.query('rollback')
    client.release()
    expect({ status, code: body.code }).toEqual({ status: 422, code: 'read_too_expensive' })
  })
})

async function openResourcesOf(databaseUrl: string) {
  const config = readConfig(buildServiceEnvironment(databaseUrl), '/nowhere')
  const logger = pino({ level: 'silent' })
  const resources = await openResources({ config, clock: systemClock, random: systemRandom, logger })
  return { ...resources, [Symbol.asyncDispose]: () => resources.close() }
}

test('a service gives its reads a pool of their own, with the limit of a read', async () => {
  await using app = await createTestApp()
  const { connectionString } = app.database
  const body = { name: 'reader', permissions: ['contract:find-all'] }
  const { key } = (await app.admin('POST', '/api/v3/identity/api-key', body)).body.data
  await using service = await startLocalService({ databaseUrl: connectionString, token: key })
  const answer = await service.call('GET', CONTRACTS)
  expect(answer.status).toBe(200)
  const { rows } = await app.database.pool.query(
    `select application_name as pool from pg_stat_activity where datname = current_database() and query like $1`,
    ['select%from "contract"%'],
  )
  expect(rows).toEqual([{ pool: 'signalbox reads' }])
  await using resources = await openResourcesOf(connectionString)
  const shown = await resources.readDatabase.pool.query('show statement_timeout')
  expect(shown.rows).toEqual([{ statement_timeout: `${READ_LIMIT_MS / 1000}s` }])
})
