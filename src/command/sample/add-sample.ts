import { FatalError } from '../../app/log/fatal.ts'
import type { FillDatabase } from '../../app/serve.ts'
import { readMonotonicMs, systemClock } from '../../base/clock.ts'
import { findUserOfAddress } from '../../identity/user-record/user.store.ts'
import { fillSample } from './sample.ts'

/** Fills the database of a service that starts, once, and prints what was added. */
export const addSample: FillDatabase = async ({ app, resources, config, print }) => {
  const user = await findUserOfAddress(resources.database.db, { email: config.adminEmail })
  if (!user)
    throw new FatalError(`--sample needs the user ${config.adminEmail}. Set SIGNALBOX_ADMIN_EMAIL to an administrator.`)
  const { sinkUrl } = app.callbackRules
  if (sinkUrl === undefined) throw new FatalError('--sample needs the sink, which development alone has.')
  const startedAt = readMonotonicMs()
  const fill = await fillSample({
    ...{ db: resources.maintenanceDatabase.db, keyring: app.keyring, now: new Date(systemClock.now()) },
    ...{ sinkUrl, administrator: user.id },
  })
  const seconds = ((readMonotonicMs() - startedAt) / 1000).toFixed(1)
  print(
    fill.rows === 0
      ? 'Sample data: there from an earlier start, nothing added.'
      : `Sample data: ${fill.accounts} accounts, ${fill.webhooks} webhooks, ${fill.events} events and ${fill.deliveries} deliveries of a month, added in ${seconds} s.`,
  )
}
