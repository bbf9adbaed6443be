import type { AccountId } from '../../base/id.ts'
import type { Texts } from '../../base/language/texts.ts'
import type { MailContent } from '../../identity/mail/mail.ts'
import { composeMail } from '../../identity/mail/mail-template.ts'
import { quoteName } from '../../identity/mail/quoted-name.ts'
import type { DueNotice } from './notice.store.ts'
import { GLOBAL_WEBHOOKS, type MailKind } from './notice.ts'

const NAMED_LIMIT = 20

export interface NoticeMail {
  texts: Texts
  kind: MailKind
  /** `GLOBAL_WEBHOOKS` for those of no account, which have no name. */
  account: AccountId
  accountName: string
  notices: readonly DueNotice[]
  /** Earlier notices that no mail told (docs/contract/delivery.md#mails). */
  heldNotices: number
  /** `BASE_URL`. */
  baseUrl: string
  /** `BRAND_NAME`. */
  serviceName: string
  /** URL that stops these mails. */
  unsubscribe: string
}

/**
 * The mail that tells one user of the webhooks of an account, or global ones, that fail, were disabled or have recovered. Names are those of
 * subscribers, so they are quoted; of a URL it shows the host alone, since its path may be a secret. Pure.
 */
export function buildNoticeMail(facts: NoticeMail): MailContent {
  const { texts, kind, notices, baseUrl, serviceName: service, unsubscribe } = facts
  const account = quoteName(facts.accountName)
  const isGlobal = facts.account === GLOBAL_WEBHOOKS
  const of = isGlobal ? ('mail.webhook.global' as const) : ('mail.webhook' as const)
  const [first] = notices as [DueNotice]
  const held = facts.heldNotices > 0 ? [texts.say('mail.webhook.held', { count: facts.heldNotices })] : []
  const after = [...held, texts.say(`${of}.why`, { account }), texts.say('mail.webhook.stop', { link: unsubscribe })]
  if (notices.length === 1) {
    const values = { webhook: nameOf(first), account, service }
    return {
      ...composeMail({
        ...{ texts, service, after, subject: texts.say(`mail.webhook.${kind}.subject`, values) },
        before: [texts.say(`${of}.${kind}.text`, values), ...listReason(texts, first)],
        link: `${baseUrl}/console/deliveries/${first.dispatch}`,
        button: texts.say('mail.webhook.delivery'),
      }),
      unsubscribe,
    }
  }
  const values = { count: notices.length, account, service }
  return {
    ...composeMail({
      ...{ texts, service, after, subject: texts.say(`${of}.${kind}.many-subject`, values) },
      before: [texts.say(`${of}.${kind}.many-text`, values), listNames(texts, notices)],
      link: `${baseUrl}/console/webhooks${isGlobal ? '' : `?account=${facts.account}`}`,
      button: texts.say('mail.webhook.webhooks'),
    }),
    unsubscribe,
  }
}

function nameOf({ name, url }: DueNotice): string {
  return quoteName(name?.trim() || (URL.parse(url)?.host ?? ''))
}

function listReason(texts: Texts, { lastError, lastStatusCode }: DueNotice): string[] {
  if (lastError === null) return []
  const reason = lastStatusCode === null ? lastError : `HTTP ${lastStatusCode}`
  return [texts.say('mail.webhook.reason', { reason })]
}

function listNames(texts: Texts, notices: readonly DueNotice[]): string {
  const names = notices.slice(0, NAMED_LIMIT).map(nameOf).join(', ')
  const others = notices.length - NAMED_LIMIT
  return others > 0 ? texts.say('mail.webhook.others', { names, count: others }) : names
}
