import { systemClock } from '../../../src/base/clock.ts'
import { buildIdMaker } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { issueSession } from '../../../src/identity/session/session.ts'
import { inTransaction } from '../../../src/postgres/statement/database.ts'
import { TEST_SECRETS } from '../app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { startFakeProvider } from '../fakes/provider/fake-provider.ts'
import { buildLocalPersonality } from '../fakes/provider/personalities.ts'
import { startSupabaseSimulator } from '../fakes/supabase-simulator/simulator.ts'
import { type LocalService, startLocalService } from '../process/local-service.ts'
import { findFreePort, findKeptPort } from '../process/port.ts'
import { startProcess } from '../process/process.ts'
import { type ServiceProcess, startService } from '../process/service-process.ts'

/** The engine that speaks to the provider. */
export type EngineName = 'embedded' | 'supabase'

/** The service in development in two processes, of which that of the tests is one, a provider, and two apps of their own. */
export interface IdentityFixture extends AsyncDisposable {
  /** The URL that users see. */
  origin: string
  /** The service at that URL, called as an administrator. */
  service: LocalService
  /** A second process on the same database. */
  other: ServiceProcess
  /** The origins of the apps: in the first users sign in, the second is on another domain. */
  apps: { a: string; b: string }
  /** Seats a user at the provider. */
  seat(user: { sub: string; email: string; isEmailVerified: boolean; name: string }): void
}

/** Setup of an engine: the variables of the service, and the user at the provider. */
async function startProvider(engine: EngineName) {
  const now = () => systemClock.now()
  if (engine === 'supabase') {
    const simulator = await startSupabaseSimulator(now)
    simulator.custom.add('custom:company')
    const env = { IDENTITY_ENGINE: 'supabase', SUPABASE_URL: simulator.url, SUPABASE_ANON_KEY: 'anon-key' }
    return { server: simulator, env: { ...env, SOCIAL_COMPANY_CLIENT_ID: 'on' } }
  }
  const fake = await startFakeProvider(buildLocalPersonality('http://unknown.invalid'), now)
  Object.assign(fake.personality, buildLocalPersonality(fake.origin))
  const { clientId, clientSecret } = fake.personality
  const client = { SOCIAL_COMPANY_CLIENT_ID: clientId, SOCIAL_COMPANY_CLIENT_SECRET: clientSecret }
  return { server: fake, env: { ...client, SOCIAL_COMPANY_ISSUER: fake.origin } }
}

/** A session of the administrator, as the service at `origin` signs it. */
export async function signInAdministrator(database: TestDatabase, origin: string): Promise<string> {
  const { administrator } = database
  if (!administrator) throw new Error('the database has no administrator')
  const keys = { secrets: TEST_SECRETS.sessionJwt, issuer: () => origin }
  const deps = { ids: buildIdMaker(systemClock, systemRandom), random: systemRandom, keys }
  const session = await inTransaction(database.db, (tx) =>
    issueSession(deps, tx, {
      userId: administrator,
      origin: { address: null, userAgent: 'test' },
      now: new Date(systemClock.now()),
    }),
  )
  if (!session) throw new Error('the administrator cannot sign in')
  return session.jwt
}

/** Starts everything. */
export async function startIdentityFixture(engine: EngineName): Promise<IdentityFixture> {
  const stack = new AsyncDisposableStack()
  try {
    const [port, portA, portB] = [await findKeptPort(), await findFreePort(), await findFreePort()]
    const [origin, a, b] = [`http://localhost:${port}`, `http://a.localhost:${portA}`, `http://b.localhost:${portB}`]
    const provider = await startProvider(engine)
    stack.use(provider.server)
    const database = await createTestDatabase({ content: 'prepared' })
    stack.use(database)
    const shared = { APP_ENV: 'development', BASE_URL: origin, RATE_LIMIT_STRICT_PER_MINUTE: '1000', SSO_TARGETS: b }
    const env = { ...shared, ...provider.env }
    const options = { databaseUrl: database.connectionString, token: await signInAdministrator(database, origin) }
    const service = stack.use(await startLocalService({ ...options, env: { ...env, PORT: String(port) } }))
    const other = stack.use(await startService({ ...options, env: { ...env, PORT: '0', SIGNALBOX_ROLES: 'api' } }))
    const apps = stack.use(
      startProcess({
        args: ['--import', './examples/sources.ts', 'packages/create/templates/sso/main.ts'],
        env: { SIGNALBOX_URL: service.url, APP_A_PORT: String(portA), APP_B_PORT: String(portB) },
      }),
    )
    await apps.waitForOutput(/App B, on another domain/)
    const owned = stack.move()
    return {
      origin,
      service,
      other,
      apps: { a, b },
      seat: (user) => {
        provider.server.user = user
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}
