import { systemClock } from '../../../src/base/clock.ts'
import { buildIdMaker } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { registerUser } from '../../../src/identity/user/user.ts'
import { testPasswords } from '../app/small-hash.ts'
import { createTestDatabase } from '../database/database.ts'
import { type LocalService, type LocalServiceOptions, startLocalService } from '../process/local-service.ts'
import { findFreePort } from '../process/port.ts'
import { startProcess } from '../process/process.ts'
import { type ServiceProcess, startService } from '../process/service-process.ts'

/** The users of the example. */
export const PASSWORD = 'correct horse battery'
export const ADA = 'ada@example.com'
export const BOB = 'bob@example.com'

/** The two apps of `npm run example:sso` in a process, on a service in another one. */
export interface SsoExample<Service = LocalService> extends AsyncDisposable {
  /** The origins of the apps. */
  a: string
  b: string
  service: Service
}

/** The same with the service in a process of its own, which a test can halt. */
export const startSsoExampleOnProcess = (): Promise<SsoExample<ServiceProcess>> => startOn(startService)

/** Starts service and apps, with two users who can sign in. */
export const startSsoExample = (): Promise<SsoExample> => startOn(startLocalService)

async function startOn<Service extends AsyncDisposable & { url: string }>(
  run: (options: LocalServiceOptions) => Promise<Service>,
): Promise<SsoExample<Service>> {
  const [portA, portB] = [await findFreePort(), await findFreePort()]
  const [a, b] = [`http://a.localhost:${portA}`, `http://b.localhost:${portB}`]
  const database = await createTestDatabase({ content: 'prepared' })
  const deps = { ids: buildIdMaker(systemClock, systemRandom) }
  const now = new Date(systemClock.now())
  const passwordHash = await testPasswords.hash(PASSWORD)
  for (const email of [ADA, BOB])
    await registerUser(deps, database.db, { email, passwordHash, emailVerifiedAt: now, now })
  const env = { SSO_TARGETS: b, RATE_LIMIT_STRICT_PER_MINUTE: '1000', SIGNALBOX_ROLES: 'api,maintenance' }
  const service = await run({ databaseUrl: database.connectionString, token: '', env })
  const apps = startProcess({
    args: ['--import', './examples/sources.ts', 'packages/create/templates/sso/main.ts'],
    env: { SIGNALBOX_URL: service.url, APP_A_PORT: String(portA), APP_B_PORT: String(portB) },
  })
  await apps.waitForOutput(/App B, on another domain/)
  return {
    a,
    b,
    service,
    [Symbol.asyncDispose]: async () => {
      await apps.kill()
      await service[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}
