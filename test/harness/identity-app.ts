import type { FastifyInstance, InjectOptions } from 'fastify'
import { pino } from 'pino'
import { apiKeyRoutes } from '../../src/access/api-key.routes.ts'
import { buildAuthenticate } from '../../src/access/authenticate.ts'
import { buildCallerCache } from '../../src/access/caller-cache.ts'
import { syncPermissions } from '../../src/access/permission.store.ts'
import { roleRoutes } from '../../src/access/role.routes.ts'
import { findRoleByName } from '../../src/access/role.store.ts'
import { ensureSystemRoles } from '../../src/access/system-roles.ts'
import { accountRoutes } from '../../src/account/account.routes.ts'
import { accountMemberRoutes } from '../../src/account/account-member.routes.ts'
import { buildRecorders } from '../../src/app/record-change.ts'
import { listAccountPermissions, listPermissions, ROUTE_TREE } from '../../src/app/route-tree.ts'
import { auditRoutes } from '../../src/audit/audit.routes.ts'
import { buildEqualEntries } from '../../src/audit/equal-entries.ts'
import { mountRoutes } from '../../src/http/pipeline.ts'
import type { Pipeline } from '../../src/http/pipeline-deps.ts'
import { buildServer } from '../../src/http/server.ts'
import { buildIdMaker, type IdMaker, type UserId } from '../../src/id.ts'
import { buildKeyring } from '../../src/keyring.ts'
import type { Database } from '../../src/postgres/database.ts'
import { systemRandom } from '../../src/random.ts'
import { sessionRoutes } from '../../src/session/session.routes.ts'
import { type IssuedSession, issueSession } from '../../src/session/session.ts'
import { sessionListRoutes } from '../../src/session/session-list.routes.ts'
import type { SessionKeys } from '../../src/session/session-token.ts'
import { factorLoginRoutes } from '../../src/sign-in/factor-login.routes.ts'
import { factorRemovalRoutes } from '../../src/sign-in/factor-removal.routes.ts'
import { loginRoutes } from '../../src/sign-in/login.routes.ts'
import { passkeyRoutes } from '../../src/sign-in/passkey.routes.ts'
import { passkeyLoginRoutes } from '../../src/sign-in/passkey-login.routes.ts'
import { secondFactorRoutes } from '../../src/sign-in/second-factor.routes.ts'
import { stepUpRoutes } from '../../src/sign-in/step-up.routes.ts'
import { userRoutes } from '../../src/user/user.routes.ts'
import type { UserWithRoles } from '../../src/user/user.store.ts'
import { registerUser } from '../../src/user/user.ts'
import { deactivateWebhooksOf } from '../../src/webhook/webhook.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { buildManualClock, type ManualClock } from './manual-clock.ts'
import { testPasswords } from './small-hash.ts'

const ROUTES = [
  ...loginRoutes,
  ...factorLoginRoutes,
  ...secondFactorRoutes,
  ...stepUpRoutes,
  ...passkeyRoutes,
  ...passkeyLoginRoutes,
  ...factorRemovalRoutes,
  ...sessionRoutes,
  ...sessionListRoutes,
  ...userRoutes,
  ...accountRoutes,
  ...accountMemberRoutes,
  ...roleRoutes,
  ...apiKeyRoutes,
  ...auditRoutes,
]

export const BASE_URL = 'http://service.test'

/** An answer, read. `code` is a problem's. */
export interface Reply {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: each test asserts the shape
  body: any
  headers: Record<string, unknown>
}

/** What a call sends. */
export interface CallOptions {
  token?: string
  body?: unknown
  address?: string
  userAgent?: string
}

/** A user to act as. */
export interface Person {
  user: UserWithRoles
  session: IssuedSession
  token: string
}

/** The identity features on a database of their own, without the rest of the app. */
export interface IdentityApp extends AsyncDisposable {
  server: FastifyInstance
  database: TestDatabase
  db: Database
  clock: ManualClock
  ids: IdMaker
  keys: SessionKeys
  call(method: string, path: string, options?: CallOptions): Promise<Reply>
  /** A user with these roles besides `member`, signed in. */
  person(name: string, roles?: readonly string[], password?: string): Promise<Person>
  administrator(name?: string): Promise<Person>
  /** A user who holds exactly these patterns everywhere. */
  callerWith(name: string, patterns: readonly string[]): Promise<Person>
  /** The events recorded so far: `<event> <resource id>`. */
  events(): Promise<string[]>
}

/** Builds the app on a fresh clone of the template, with a manual clock. */
export async function buildIdentityApp(): Promise<IdentityApp> {
  const database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  const ids = buildIdMaker(clock, systemRandom)
  const keys: SessionKeys = { secrets: ['the secret that signs sessions in tests'], issuer: () => BASE_URL }
  const now = () => new Date(clock.now())
  const permissions = listPermissions(ROUTES).map(({ name }) => name)
  const known = [...permissions, 'webhook:create', 'webhook:find-all', 'contract:create', 'realtime:auth']
  const accountPermissions = listAccountPermissions(ROUTE_TREE)
  await ensureSystemRoles(db, { ids, now: now() })
  await syncPermissions(db, { permissions: known.map((name) => ({ name, description: null })), now: now() })
  const server = await buildServer({
    logger: pino({ level: 'silent' }),
    clock,
    ids,
    trustProxy: false,
    baseUrl: () => BASE_URL,
  })
  const equalEntries = buildEqualEntries({ db, clock })
  const recording = {
    ids,
    equalEntries,
    enableApiEventQueue: true,
    logger: pino({ level: 'silent' }),
    isReadSubscribed: () => false,
  }
  const pipeline: Pipeline = {
    db,
    readDb: db,
    readInTurn: (_reader, work) => work(),
    clock,
    authenticate: buildAuthenticate({
      db,
      clock,
      sessionSecrets: keys.secrets,
      issuer: keys.issuer,
      cache: buildCallerCache(() => false),
    }),
    ...buildRecorders(recording, db, ROUTES as never),
    afterCommit: () => {},
    limitAddress: () => {},
    limitVisit: () => {},
    limitCaller: () => {},
    findKnownBrowser: () => undefined,
  }
  const keyring = buildKeyring(['the secret that seals in tests, 32 bytes'], systemRandom)
  const deps = {
    ids,
    random: systemRandom,
    keys,
    keyring,
    passwords: testPasswords,
    listPermissions: () => known,
    listAccountPermissions: () => accountPermissions,
    deactivateWebhooksOf,
    serviceName: 'Signalbox',
  }
  mountRoutes(server, pipeline, ROUTES as never, deps)

  const call: IdentityApp['call'] = async (method, path, { token, body, address, userAgent } = {}) => {
    const request: InjectOptions = {
      method: method as 'GET',
      url: path,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(userAgent !== undefined && { 'user-agent': userAgent }),
      },
      ...(body !== undefined && { payload: body as object }),
      ...(address !== undefined && { remoteAddress: address }),
    }
    const reply = await server.inject(request)
    return { status: reply.statusCode, body: reply.body === '' ? undefined : reply.json(), headers: reply.headers }
  }
  const signIn = async (user: UserWithRoles): Promise<Person> => {
    const session = await issueSession({ ids, random: systemRandom, keys }, db, {
      userId: user.id,
      origin: { address: '127.0.0.1', userAgent: 'test' },
      now: now(),
    })
    if (!session) throw new Error('the user cannot sign in')
    return { user, session, token: session.jwt }
  }
  const person: IdentityApp['person'] = async (name, roles = [], password) => {
    const email = `${name}@example.test`
    const user = await registerUser(deps, db, {
      email,
      name,
      roles: roles as never,
      now: now(),
      ...(password !== undefined && { passwordHash: await testPasswords.hash(password) }),
    })
    return signIn(user)
  }
  const roleOf = async (name: string) => (await findRoleByName(db, name))!.id
  return {
    server,
    database,
    db,
    clock,
    ids,
    keys,
    call,
    person,
    administrator: async (name = 'root') => person(name, [await roleOf('administrator')]),
    callerWith: async (name, patterns) => {
      const role = ids.next<'role'>()
      const row = { document_id: role, name: `caller ${name}`, created_at: now(), updated_at: now() }
      await db.insertInto('role').values(row).execute()
      if (patterns.length > 0)
        await db
          .insertInto('role_permission')
          .values(patterns.map((pattern) => ({ role, pattern })))
          .execute()
      return person(name, [role])
    },
    events: async () => {
      const rows = await db.selectFrom('event_occurrence').selectAll().orderBy('document_id').execute()
      return rows.map((row) => `${row.event} ${row.resource_id}`)
    },
    [Symbol.asyncDispose]: async () => {
      await server.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** An unknown id. */
export const NO_ID = '00000000-0000-7000-8000-000000000000' as UserId
