import { systemClock } from '../clock.ts'
import { runDemo } from '../demo/demo.ts'
import { keepDemoToken } from '../demo/demo-token.ts'
import { inTransaction } from '../postgres/database.ts'
import { systemRandom } from '../random.ts'
import { issueSession } from '../session/session.ts'
import { findUserByEmail } from '../user/user.store.ts'
import type { App } from './app.ts'
import type { Config } from './config.ts'
import { FatalError } from './fatal.ts'
import type { Resources } from './resources.ts'

/** A demonstration that can begin: its token is in its file. */
export interface Demonstration {
  /** Shows a delivery, and returns the commands to go on with. Throws a `FatalError`. */
  show(): Promise<string[]>
}

/** Prepares the demonstration (docs/contract/configuration.md#reader) of a service that listens. Throws a `FatalError`. */
export async function prepareDemonstration(parts: {
  app: App
  resources: Resources
  config: Config
  print: (line: string) => void
}): Promise<Demonstration> {
  const { app, resources, config, print } = parts
  const user = await findUserByEmail(resources.database.db, config.adminEmail)
  if (!user)
    throw new FatalError(`There is no user ${config.adminEmail}. Set SIGNALBOX_ADMIN_EMAIL to an administrator.`)
  const deps = {
    ids: app.ids,
    random: systemRandom,
    keys: { secrets: resources.secrets.sessionJwt, issuer: () => app.baseUrl() },
  }
  const now = new Date(systemClock.now())
  const session = await inTransaction(resources.database.db, (tx) =>
    issueSession(deps, tx, {
      userId: user.id,
      origin: { address: null, userAgent: 'npm start' },
      isRefreshable: false,
      now,
    }),
  )
  if (!session)
    throw new FatalError(
      `The user ${config.adminEmail} is disabled. Set SIGNALBOX_ADMIN_EMAIL to an active administrator.`,
    )
  const { dataDir, enableApiEventQueue: isQueueEnabled } = config
  const { sinkUrl } = app.callbackRules
  const options = { baseUrl: app.baseUrl(), jwt: session.jwt, dataDir, clock: systemClock, print }
  const tokenFile = await keepDemoToken(options)
  return { show: () => runDemo({ ...options, tokenFile, isQueueEnabled, ...(sinkUrl && { sinkUrl }) }) }
}
