import type { FastifyInstance, InjectOptions } from 'fastify'
import { pino } from 'pino'
import { listAccountPermissions, listPermissions, ROUTE_TREE } from '../../../src/app/feature/route-tree.ts'
import { buildIdMaker, type IdMaker, type UserId } from '../../../src/base/id.ts'
import { buildKeyring } from '../../../src/base/keyring.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { buildEqualEntries } from '../../../src/event/recording/equal-entries.ts'
import { buildRecorders } from '../../../src/event/recording/record-change.ts'
import { mountRoutes } from '../../../src/http/pipeline/pipeline.ts'
import type { Pipeline } from '../../../src/http/pipeline/pipeline-deps.ts'
import { buildServer } from '../../../src/http/server/server.ts'
import { apiKeyRoutes } from '../../../src/identity/access/api-key.routes.ts'
import { syncPermissions } from '../../../src/identity/access/permission.store.ts'
import { roleRoutes } from '../../../src/identity/access/role.routes.ts'
import { findRoleByName } from '../../../src/identity/access/role.store.ts'
import { ensureSystemRoles } from '../../../src/identity/access/system-roles.ts'
import { accountRoutes } from '../../../src/identity/account/account.routes.ts'
import { accountMemberRoutes } from '../../../src/identity/account/account-member.routes.ts'
import { buildAuthenticate } from '../../../src/identity/caller/authenticate.ts'
import { buildCallerCache } from '../../../src/identity/caller/caller-cache.ts'
import { sessionListRoutes } from '../../../src/identity/session/list/session-list.routes.ts'
import { sessionRoutes } from '../../../src/identity/session/session.routes.ts'
import { type IssuedSession, issueSession } from '../../../src/identity/session/session.ts'
import type { SessionKeys } from '../../../src/identity/session/token/session-token.ts'
import { loginRoutes } from '../../../src/identity/sign-in/local/login.routes.ts'
import { passkeyRoutes } from '../../../src/identity/sign-in/passkey-login/passkey.routes.ts'
import { passkeyLoginRoutes } from '../../../src/identity/sign-in/passkey-login/passkey-login.routes.ts'
import { factorLoginRoutes } from '../../../src/identity/sign-in/second-factor/factor-login.routes.ts'
import { factorRemovalRoutes } from '../../../src/identity/sign-in/second-factor/factor-removal.routes.ts'
import { secondFactorRoutes } from '../../../src/identity/sign-in/second-factor/second-factor.routes.ts'
import { stepUpRoutes } from '../../../src/identity/sign-in/step-up/step-up.routes.ts'
import { userRoutes } from '../../../src/identity/user/user.routes.ts'
import { registerUser } from '../../../src/identity/user/user.ts'
import type { UserWithRoles } from '../../../src/identity/user-record/user.store.ts'
import { findPermissionsOf } from '../../../src/oauth/scope/scope.ts'
import { auditRoutes } from '../../../src/operations/audit/audit.routes.ts'
import type { Database } from '../../../src/postgres/statement/database.ts'
import { deactivateWebhooksOf } from '../../../src/webhook/registry/webhook.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { buildManualClock, type ManualClock } from '../run/manual-clock.ts'
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

/** Input of a call. */
export interface CallOptions {
  token?: string
  body?: unknown
  address?: string
  userAgent?: string
}

/** A user to act as. */
export interface User {
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
  user(name: string, roles?: readonly string[], password?: string): Promise<User>
  administrator(name?: string): Promise<User>
  /** A user who holds exactly these patterns everywhere. */
  callerWith(name: string, patterns: readonly string[]): Promise<User>
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
    runExpensiveRead: (_reader, work) => work(),
    shareChanges: (_changer, work) => work(),
    clock,
    authenticatePage: async () => undefined,
    authenticate: buildAuthenticate({
      db,
      clock,
      sessionSecrets: keys.secrets,
      issuer: keys.issuer,
      cache: buildCallerCache(() => false),
      findPermissionsOf,
    }),
    ...buildRecorders(recording, db, ROUTES as never),
    afterCommit: () => {},
    limitAddress: () => {},
    limitVisit: () => {},
    limitCaller: () => {},
    findKnownBrowser: () => undefined,
    admit: () => () => {},
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
  mountRoutes(server, pipeline, { routes: ROUTES as never, deps })

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
  const signIn = async (user: UserWithRoles): Promise<User> => {
    const session = await issueSession({ ids, random: systemRandom, keys }, db, {
      userId: user.id,
      origin: { address: '127.0.0.1', userAgent: 'test' },
      now: now(),
    })
    if (!session) throw new Error('the user cannot sign in')
    return { user, session, token: session.jwt }
  }
  const register: IdentityApp['user'] = async (name, roles = [], password) => {
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
    user: register,
    administrator: async (name = 'root') => register(name, [await roleOf('administrator')]),
    callerWith: async (name, patterns) => {
      const role = ids.next<'role'>()
      const row = { document_id: role, name: `caller ${name}`, created_at: now(), updated_at: now() }
      await db.insertInto('role').values(row).execute()
      if (patterns.length > 0)
        await db
          .insertInto('role_permission')
          .values(patterns.map((pattern) => ({ role, pattern })))
          .execute()
      return register(name, [role])
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
