import { systemClock } from '../base/clock.ts'
import { buildIdMaker } from '../base/id.ts'
import { systemRandom } from '../base/random.ts'
import type { Database } from '../postgres/statement/database.ts'
import { FatalError } from './log/fatal.ts'
import { runUntilFree } from './prepare/begin-again.ts'
import type { DatabaseWait } from './prepare/database-wait.ts'
import type { Resources } from './prepare/resources.ts'
import type { FirstAdministrator } from './start-message.ts'

/** Creates the first administrator of development, unless there is one. Undefined when there is nothing to show. */
export const ensureAdministrator = (
  resources: Resources,
  wait: DatabaseWait,
): Promise<FirstAdministrator | undefined> => runUntilFree(wait, () => createFirst(resources))

async function createFirst({ database, config }: Resources): Promise<FirstAdministrator | undefined> {
  const { createAdministrator, hasAdministrator } = await import('../identity/user/password/administrator.ts')
  if (await hasAdministrator(database.db)) return undefined
  const { buildPasswordHashing } = await import('../identity/password/password.ts')
  const ids = buildIdMaker(systemClock, systemRandom)
  const password = config.adminPassword ?? systemRandom.bytes(12).toString('base64url')
  const deps = { ids, passwords: buildPasswordHashing(config.passwordHashCost, systemRandom) }
  const now = new Date(systemClock.now())
  const { buildCommandRecorder, describeUserChange, findSystemUser } = await import('./prepare/command-record.ts')
  const { adminEmail: email, enableApiEventQueue } = config
  const record = buildCommandRecorder(
    { ids, enableApiEventQueue },
    { kind: 'first start', systemUser: findSystemUser() },
  )
  const onMade = (tx: Database, id: string) => record(tx, describeUserChange('create', id, {}), now)
  const result = await createAdministrator(deps, database.db, { email, password, takesWeak: true, now, onMade })
  // Another process of this database, started at the same time, may have created it.
  if (!result.ok && !(await hasAdministrator(database.db))) throw new FatalError(result.error)
  if (!result.ok) return undefined
  const isGiven = config.adminPassword !== undefined
  return { email, password: isGiven ? undefined : password, weakness: isGiven ? result.weakness : undefined }
}
