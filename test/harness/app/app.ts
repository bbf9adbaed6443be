import type { InjectOptions } from 'fastify'
import pino, { type Logger } from 'pino'
import { type App, buildApp } from '../../../src/app/app.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import type { AppOptions } from '../../../src/app/part/app-options.ts'
import { type AccountId, buildIdMaker, type UserId } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { issueSession } from '../../../src/identity/session/session.ts'
import { registerUser } from '../../../src/identity/user/user.ts'
import type { Lookup } from '../../../src/outbound/guard/dns.ts'
import { type DatabasePool, inTransaction } from '../../../src/postgres/statement/database.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { buildManualClock, type ManualClock } from '../run/manual-clock.ts'
import { checkDocumentedStatus } from './documented-status.ts'
import { prepareForTest } from './prepared-database.ts'
import { SMALL_HASH_ENVIRONMENT } from './small-hash.ts'
import { buildSecretEnvironment, TEST_METRICS_TOKEN, TEST_SECRETS } from './test-secrets.ts'

/** An answer of the API. */
export interface TestAnswer {
  status: number
  headers: Record<string, string | string[] | number | undefined>
  // biome-ignore lint/suspicious/noExplicitAny: each test asserts the shape
  body: any
}

/** Calls the API as one caller. */
export type TestCall = (
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => Promise<TestAnswer>

/** The whole service with a database of its own and a manual clock, without a port. */
export interface TestApp extends AsyncDisposable {
  app: App
  database: TestDatabase
  clock: ManualClock
  /** Calls without a token. */
  anonymous: TestCall
  /** Calls as an administrator. */
  admin: TestCall
  adminToken: string
  adminId: UserId
  /** Creates a user with the role `member`, in these accounts, and returns its calls. */
  signInMember(accounts?: AccountId[]): Promise<{ call: TestCall; userId: UserId; token: string }>
  /** Reads `/metrics` as a scraper does. */
  scrape(): Promise<TestAnswer>
  /** Calls with any token. */
  callAs(token: string): TestCall
  /** Routes recorded events, posts due dispatches and records the results, until nothing is due. */
  settle(): Promise<void>
}

/** Options of a test app. */
export interface TestAppOptions {
  /** Variables that override those of the test environment. */
  env?: Record<string, string>
  lookup?: Lookup
  resolveTxt?: AppOptions['resolveTxt']
  logger?: Logger
  ca?: string
  clock?: ManualClock
  /** A database to share between two apps; else each app has its own. */
  database?: TestDatabase
  /** A pool of lists and other long reads; else they have that of the requests. */
  readDatabase?: DatabasePool
  /** A pool of the workers; else they have that of the requests. */
  workerDatabase?: DatabasePool
  /** The keys of stored secrets, instead of those of `TEST_SECRETS`. */
  secretKey?: string[]
  fetchProvider?: AppOptions['fetchProvider']
  loadProviderKeys?: AppOptions['loadProviderKeys']
  /** The secrets of handshakes, instead of those of `TEST_SECRETS`. */
  ssoHandshake?: string[]
  /** The secrets of the access-token hook, instead of those of `TEST_SECRETS`. */
  oauthHook?: string[]
  hashingSemaphore?: AppOptions['hashingSemaphore']
  onCrashPoint?: AppOptions['onCrashPoint']
  onProviderBuilt?: AppOptions['onProviderBuilt']
  hasStarted?: () => boolean
  /** The folder of the built console. */
  consoleFolder?: string
  /** The folder of the documentation site. Default: none. */
  siteFolder?: string
}

/** Builds the service for a test. Without `lookup` no name resolves, without `resolveTxt` no name has TXT records. */
export async function createTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await createTestDatabase({ content: 'prepared' }))
  const clock = options.clock ?? buildManualClock()
  const env = {
    APP_ENV: 'test',
    PORT: '0',
    LOG_LEVEL: 'silent',
    RATE_LIMIT_PER_MINUTE: '1000000',
    METRICS_TOKEN: TEST_METRICS_TOKEN,
    ...buildSecretEnvironment(),
    ...(options.env?.APP_ENV === 'production' ? { BASE_URL: 'http://localhost:3000' } : SMALL_HASH_ENVIRONMENT),
    ...options.env,
  }
  const config = readConfig(env, '/nowhere')
  const logger = options.logger ?? pino({ level: 'silent' })
  const fixture = { config, clock, random: systemRandom, logger }
  const { secretKey, ssoHandshake, oauthHook } = options
  const given = {
    ...(secretKey && { secretKey }),
    ...(ssoHandshake && { ssoHandshake }),
    ...(oauthHook && { oauthHook }),
  }
  const secrets = { ...TEST_SECRETS, ...given }
  const adminId = database.administrator ?? (await prepareForTest(database, clock))
  const app = await buildApp({
    ...fixture,
    secrets,
    database,
    ...(options.readDatabase && { readDatabase: options.readDatabase }),
    ...(options.workerDatabase && { workerDatabase: options.workerDatabase }),
    connectionString: database.connectionString,
    lookup: options.lookup ?? (() => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))),
    resolveTxt: options.resolveTxt ?? (() => Promise.resolve([])),
    ...(options.ca && { ca: options.ca }),
    ...(options.loadProviderKeys && { loadProviderKeys: options.loadProviderKeys }),
    ...(options.fetchProvider && { fetchProvider: options.fetchProvider }),
    ...(options.onProviderBuilt && { onProviderBuilt: options.onProviderBuilt }),
    ...(options.hashingSemaphore && { hashingSemaphore: options.hashingSemaphore }),
    ...(options.onCrashPoint && { onCrashPoint: options.onCrashPoint }),
    ...(options.hasStarted && { hasStarted: options.hasStarted }),
    ...(options.consoleFolder && { consoleFolder: options.consoleFolder }),
    siteFolder: options.siteFolder ?? '/nowhere',
  })
  const ids = buildIdMaker(clock, systemRandom)
  const deps = { ids, random: systemRandom, keys: { secrets: TEST_SECRETS.sessionJwt, issuer: () => app.baseUrl() } }
  const now = () => new Date(clock.now())
  const signIn = async (userId: UserId) => {
    const session = await inTransaction(database.db, (tx) =>
      issueSession(deps, tx, { userId, origin: { address: null, userAgent: 'test' }, now: now() }),
    )
    if (!session) throw new Error('the user of a test cannot sign in')
    return session.jwt
  }
  const adminToken = await signIn(adminId)
  const callAs = (token: string | undefined): TestCall => buildCall(app, token)
  return {
    app,
    database,
    clock,
    anonymous: callAs(undefined),
    admin: callAs(adminToken),
    adminToken,
    adminId,
    scrape: () => callAs(TEST_METRICS_TOKEN)('GET', '/metrics'),
    callAs,
    signInMember: async (accounts = []) => {
      const address = `member-${systemRandom.bytes(4).toString('hex')}@example.com`
      const user = await inTransaction(database.db, (tx) =>
        registerUser(deps, tx, { email: address, emailVerifiedAt: now(), now: now() }),
      )
      for (const account of accounts)
        await callAs(adminToken)('POST', `/api/v3/identity/account/${account}/member`, { user: user.id })
      const token = await signIn(user.id)
      return { call: callAs(token), userId: user.id, token }
    },
    settle: async () => {
      for (;;) {
        const { events } = await app.router.drain()
        await app.replayWorker.drain()
        await app.provisioningJobs.drain()
        await app.alertWorker.drain()
        const attempts = (await app.dispatcher.drain()) + (await app.provisioner.drain())
        const messages = (await app.realtimeDispatcher?.drain()) ?? 0
        if (events === 0 && attempts === 0 && messages === 0) return
      }
    },
    [Symbol.asyncDispose]: async () => {
      await app.stop()
      if (!options.database) await database[Symbol.asyncDispose]()
    },
  }
}

/** A test app whose administrator comes with an API key: a session ends after an hour, and some tests let days pass. */
export async function createKeyedApp(options: TestAppOptions): Promise<TestApp> {
  const app = await createTestApp(options)
  const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'test', permissions: ['*:*'] })
  return { ...app, admin: app.callAs(key.body.data.key) }
}

function buildCall(app: App, token: string | undefined): TestCall {
  return async (method, path, body, headers = {}) => {
    const options: InjectOptions = {
      method,
      url: path,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
    }
    const response = await app.server.inject(options)
    checkDocumentedStatus(method, path, response.statusCode)
    const isJson = /^application\/(problem\+)?json\b/.test(String(response.headers['content-type']))
    return { status: response.statusCode, headers: response.headers, body: isJson ? response.json() : response.body }
  }
}
