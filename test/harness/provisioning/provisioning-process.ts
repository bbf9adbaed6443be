import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { buildIdMaker } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { issueSession } from '../../../src/identity/session/session.ts'
import { inTransaction } from '../../../src/postgres/statement/database.ts'
import { prepareForTest } from '../app/prepared-database.ts'
import { TEST_SECRETS } from '../app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { type LocalService, startLocalService } from '../process/local-service.ts'
import { findFreePort } from '../process/port.ts'
import { PROJECT_ROOT, startProcess, type TestProcess } from '../process/process.ts'
import { type ServiceProcess, startService, TEST_BASE_URL } from '../process/service-process.ts'
import { waitFor } from '../run/wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of every shape
type Json = any

/** Client of the API of a service. */
type Caller = Pick<ServiceProcess, 'call'>

/** Services and the example of a target in processes of their own, on one database. */
export interface ProvisioningFixture extends AsyncDisposable {
  database: TestDatabase
  start(env?: Record<string, string>): Promise<ServiceProcess>
  /** Starts a service in the process of the tests, stopped at the end: where the end of a process is not what is tested. */
  startLocal(env?: Record<string, string>): Promise<LocalService>
  /** Calls and expects success. */
  call(service: Caller, method: string, path: string, body?: unknown): Promise<Json>
  /** Creates the target at the example. */
  makeTarget(service: Caller): Promise<{ id: string; secret: string }>
  startTarget(secret: string): Promise<TestProcess>
  /** The users that the example has, by id. */
  listTargetUsers(): Promise<Map<string, Json>>
  /** The users of the service, by id, as a target should have them. */
  listUsers(): Promise<Map<string, Json>>
  /** Waits until the example has exactly the users of the service; makes what waits for a retry due at once. */
  waitUntilInStep(service: Caller): Promise<void>
}

/** Opens the list of users of the example. */
export const USERS_TOKEN = 'token-of-the-example'

/** Signs the administrator in; returns the token. */
async function signIn(database: TestDatabase): Promise<string> {
  const keys = { secrets: TEST_SECRETS.sessionJwt, issuer: () => TEST_BASE_URL }
  const deps = { ids: buildIdMaker(systemClock, systemRandom), random: systemRandom, keys }
  const userId = database.administrator ?? (await prepareForTest(database, systemClock))
  const input = { userId, origin: { address: null, userAgent: 'test' }, now: new Date(systemClock.now()) }
  const session = await inTransaction(database.db, (tx) => issueSession(deps, tx, input))
  if (!session) throw new Error('the administrator of a test cannot sign in')
  return session.jwt
}

/** Opens the fixture; nothing runs yet. */
export async function openProvisioningFixture(): Promise<ProvisioningFixture> {
  const database = await createTestDatabase({ content: 'prepared' })
  const token = await signIn(database)
  const port = await findFreePort()
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-target-'))
  const running: (ServiceProcess | TestProcess)[] = []
  const locals: LocalService[] = []
  const allowed = { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${port}` }
  const call = async (service: Caller, method: string, path: string, body?: unknown) => {
    const answer = await service.call(method, path, body)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return answer.body.data
  }
  const listTargetUsers = async () => {
    const headers = { authorization: `Bearer ${USERS_TOKEN}` }
    const answer = await fetch(`http://127.0.0.1:${port}/users`, { headers }).catch(() => undefined)
    const users: Json[] = answer ? ((await answer.json()) as Json[]) : []
    return new Map(users.map(({ as_of: _, ...user }) => [user.document_id as string, user]))
  }
  const listUsers = async () => {
    const { rows } = await database.pool.query(
      `select document_id, email, name, case when is_actived then 'active' else 'disabled' end as status
       from "user" where deleted_at is null`,
    )
    return new Map(rows.map((row) => [row.document_id as string, { ...row }]))
  }
  return {
    database,
    start: async (env = {}) => {
      const service = await startService({ databaseUrl: database.connectionString, token, env: { ...allowed, ...env } })
      running.push(service)
      return service
    },
    startLocal: async (env = {}) => {
      const { connectionString: databaseUrl } = database
      const service = await startLocalService({ databaseUrl, token, env: { ...allowed, ...env } })
      locals.push(service)
      return service
    },
    call,
    makeTarget: async (service) => {
      const url = `http://127.0.0.1:${port}/users`
      const row = await call(service, 'POST', '/api/v3/provisioning/target', { url })
      return { id: row.document_id, secret: row.secret }
    },
    startTarget: async (secret) => {
      const target = startProcess({
        args: [join(PROJECT_ROOT, 'examples', 'provisioning-target', 'main.ts')],
        env: { TARGET_SECRET: secret, USERS_TOKEN, PORT: String(port), USERS_FILE: join(folder, 'users.json') },
      })
      running.push(target)
      await target.waitForOutput(/Target platform/)
      return target
    },
    listTargetUsers,
    listUsers,
    waitUntilInStep: async (service) => {
      await waitFor('a target in step', async () => {
        const waiting = await call(service, 'GET', '/api/v3/provisioning/delivery?filters=status|eq|retrying')
        for (const { document_id } of waiting)
          await service.call('POST', `/api/v3/provisioning/delivery/${document_id}/replay`, { confirm_duplicate: true })
        const open = await database.pool.query(
          `select from provisioning_delivery where ended_at is null
           union all select from provisioning_job where status = 'running'`,
        )
        return open.rows.length === 0
      })
      expect(await listTargetUsers()).toEqual(await listUsers())
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...running.map((item) => item.kill()), ...locals.map((local) => local.stop())])
      rmSync(folder, { recursive: true, force: true })
      await database[Symbol.asyncDispose]()
    },
  }
}
