import { FatalError } from '../../app/log/fatal.ts'
import type { PrepareDemonstration } from '../../app/serve.ts'
import { systemClock } from '../../base/clock.ts'
import { systemRandom } from '../../base/random.ts'
import { issueSession } from '../../identity/session/session.ts'
import { findUserOfAddress } from '../../identity/user-record/user.store.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { runDemo } from './demo.ts'
import { keepDemoToken } from './demo-token.ts'

/** Prepares the demonstration as the administrator, for whom it issues a session. */
export const prepareDemonstration: PrepareDemonstration = async ({ app, resources, config, print }) => {
  const user = await findUserOfAddress(resources.database.db, { email: config.adminEmail })
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
