import type { AccountId } from '../../base/id.ts'
import { buildAccountMissing, buildScopeMissing } from '../../http/pipeline/caller-refusal.ts'
import { includesAccount } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { isPurge, type Publication } from './publication-rules.ts'
import type { PublishDeps } from './publish.ts'

/** Checks that a limited caller publishes for its accounts only, within their limits. Throws 403, 429. */
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
