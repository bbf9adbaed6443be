import { pino } from 'pino'
import { readConfig } from '../../../src/app/config/config.ts'
import { prepareDatabase } from '../../../src/app/prepare/prepare.ts'
import type { Clock } from '../../../src/base/clock.ts'
import { buildIdMaker, type UserId } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { createAdministrator } from '../../../src/identity/user/password/administrator.ts'
import type { DatabasePool } from '../../../src/postgres/statement/database.ts'
import { testPasswords } from './small-hash.ts'
import { buildSecretEnvironment } from './test-secrets.ts'

/** Prepares a migrated database like a start of the service, creates an administrator, and returns its id. */
export async function prepareForTest(
  database: DatabasePool & { connectionString: string },
  clock: Clock,
): Promise<UserId> {
  const config = readConfig({ APP_ENV: 'test', ...buildSecretEnvironment() }, '/nowhere')
  const fixture = { config, clock, random: systemRandom, logger: pino({ level: 'silent' }) }
  await prepareDatabase({ connectionString: database.connectionString, database }, fixture)
  const deps = { ids: buildIdMaker(clock, systemRandom), passwords: testPasswords }
  const email = `administrator-${systemRandom.bytes(4).toString('hex')}@example.com`
  const input = { email, password: 'correct horse battery', now: new Date(clock.now()) }
  const made = await createAdministrator(deps, database.db, input)
  if (!made.ok) throw new Error(made.error)
  return made.user.id
}
