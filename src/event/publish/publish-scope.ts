import type { AccountId } from '../../base/id.ts'
import { buildAccountMissing, buildScopeMissing } from '../../http/pipeline/caller-refusal.ts'
import { includesAccount } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { isPurge, type Publication } from './publication-rules.ts'
import type { PublishDeps } from './publish.ts'

/**
 * Checks that a caller limited to the accounts `scope` publishes only for these, since an event without an account, or
 * a purge, reaches global webhooks; and counts the events against the limits of the accounts. Throws 403, 429.
 */
export async function checkTenantMayPublish(
  deps: Pick<PublishDeps, 'accountLimits'>,
  db: Database,
  input: { scope: readonly AccountId[]; publications: readonly Publication[]; permission: string },
): Promise<void> {
  const { scope, publications, permission } = input
  for (const { event, account } of publications) {
    if (account === null) throw buildScopeMissing('An event without an account', permission)
    if (!includesAccount(scope, account as AccountId)) throw buildAccountMissing(permission, account)
    if (isPurge(event)) throw buildScopeMissing('A purge', permission)
  }
  const owners = publications.map(({ account }) => account as AccountId)
  await deps.accountLimits.take(db, 'published_per_minute', owners)
}
