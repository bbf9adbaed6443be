import type { Clock } from '../../base/clock.ts'
import type { AccountId } from '../../base/id.ts'
import { ACCOUNT_ADMIN_ROLE } from '../../identity/access/system-roles.ts'
import type { MailChecks } from '../../identity/mail/mail-worker.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findJudgedMail, isLookedAfterIn } from './mail-check.store.ts'
import { GLOBAL_WEBHOOKS } from './notice.ts'
import { GLOBAL_WEBHOOK_PATTERNS } from './notice-mails.ts'

/** How long a cell that did not answer is not asked again, ms: the mails of others must not wait behind its own. */
const AWAY_MS = 30_000

/** The database of an account, for the check of its mails. */
export interface MailPlace {
  /** The name of the cell; null for home. */
  cell: string | null
  db: Database
}

export interface WebhookMailCheckDeps {
  clock: Pick<Clock, 'now'>
  /** The database of an account. Rejects when it is away. */
  findPlace: (account: AccountId) => Promise<MailPlace>
  /** Ends the wait for a cell that does not answer, by rejecting. */
  within: <Value>(reading: Promise<Value>) => Promise<Value>
}

/**
 * Builds the check of these mails before each attempt to send them: the user is a reader of one of its webhooks, at this
 * address, and wants it. What the webhook says is asked in the database of the account; a mail waits while that is away.
 */
export function buildWebhookMailCheck(deps: WebhookMailCheckDeps): NonNullable<MailChecks[string]> {
  const { clock, findPlace, within } = deps
  const awayUntilMs = new Map<string, number>()

  async function isWanted(place: MailPlace & { cell: string }, read: (db: Database) => Promise<boolean>) {
    if ((awayUntilMs.get(place.cell) ?? 0) > clock.now()) return 'unknown'
    try {
      const answer = await within(read(place.db))
      awayUntilMs.delete(place.cell)
      return answer
    } catch {
      awayUntilMs.set(place.cell, clock.now() + AWAY_MS)
      return 'unknown'
    }
  }

  return async (home, { id: mail, to }) => {
    const readers = { administrator: ACCOUNT_ADMIN_ROLE, operatorPatterns: GLOBAL_WEBHOOK_PATTERNS }
    const judged = await findJudgedMail(home, { mail, to, ...readers })
    if (!judged?.isReader || judged.webhooks.length === 0) return false
    if (judged.account === GLOBAL_WEBHOOKS) return judged.isOfHome
    const place = await findPlace(judged.account).catch(() => undefined)
    if (!place) return 'unknown'
    const { cell, db } = place
    return cell === null ? judged.isOfHome : isWanted({ cell, db }, (inCell) => isLookedAfterIn(inCell, judged))
  }
}
