import { describe, expect, test } from 'vitest'
import type { AccountId, DispatchId, WebhookId } from '../../base/id.ts'
import { ENGLISH } from '../../base/language/texts.ts'
import type { DueNotice } from './notice.store.ts'
import { buildNoticeMail, type NoticeMail } from './notice-mail.ts'

const noticeOf = (change: Partial<DueNotice> = {}): DueNotice => ({
  ...{ webhook: 'w-1' as WebhookId, kind: 'failing', dispatch: 'd-1' as DispatchId, name: 'Orders' },
  ...{ lastError: null, lastStatusCode: null, url: 'https://hooks.example.com/secret', contacts: [], holds: true },
  ...{ noticedAt: new Date(0), isTold: false },
  ...change,
})

const build = (notices: readonly DueNotice[], change: Partial<NoticeMail> = {}) =>
  buildNoticeMail({
    ...{ texts: ENGLISH, kind: 'failing', account: 'a-1' as AccountId, accountName: 'Acme', notices, heldNotices: 0 },
    ...{ baseUrl: 'https://service.test', serviceName: 'Signalbox', unsubscribe: 'https://service.test/stop?token=t' },
    ...change,
  })

describe('a mail about one webhook', () => {
  test('names it, and leads to the delivery', () => {
    const mail = build([noticeOf()])
    expect(mail.subject).toBe('The webhook "Orders" is failing at Signalbox')
    expect(mail.text).toContain('to the webhook "Orders" of the account "Acme" have failed')
    expect(mail.text).toContain('\n\nhttps://service.test/console/deliveries/d-1\n\n')
    expect(mail.text).toContain('https://service.test/stop?token=t')
    expect(mail.parts).toMatchObject({ button: 'Open the delivery', lang: 'en' })
    expect(mail.unsubscribe).toBe('https://service.test/stop?token=t')
    expect(mail.text).not.toMatch(/last failure|held back/)
  })

  test('names the host of one without a name, never its path', () => {
    for (const name of [null, '', '  ']) {
      const { text } = build([noticeOf({ name })])
      expect(text).toContain('the webhook "hooks. example. com" of')
      expect(text).not.toContain('secret')
    }
    expect(build([noticeOf({ name: null, url: '' })]).text).toContain('the webhook "" of')
  })

  test('tells the last failure, by its status where it has one', () => {
    expect(build([noticeOf({ lastError: 'timeout' })]).text).toContain('The last failure: timeout.')
    expect(build([noticeOf({ lastError: 'http_status', lastStatusCode: 410 })]).text).toContain(
      'The last failure: HTTP 410.',
    )
    expect(build([noticeOf({ lastStatusCode: 200 })]).text).not.toContain('The last failure')
  })

  test('counts the notices that were held back before', () => {
    expect(build([noticeOf()], { heldNotices: 1 }).text).toContain('since many mails had gone to this address: 1.')
  })
})

describe('a mail about several webhooks', () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => noticeOf({ name: `Hook ${index + 1}`, lastError: 'timeout' }))

  test('names them, and leads to the webhooks of the account', () => {
    const mail = build(many(2), { kind: 'disabled', heldNotices: 3 })
    expect(mail.subject).toBe('2 webhooks of "Acme" were disabled at Signalbox')
    expect(mail.text).toContain('"Hook 1", "Hook 2"\n')
    expect(mail.text).toContain('\n\nhttps://service.test/console/webhooks?account=a-1\n\n')
    expect(mail.text).toContain('address: 3.')
    expect(mail.text).not.toContain('timeout')
    expect(mail.unsubscribe).toBe('https://service.test/stop?token=t')
  })

  test('names 20 at most, and counts the others', () => {
    expect(build(many(20)).text).toContain('"Hook 20"\n')
    const { text } = build(many(22))
    expect(text).toContain('"Hook 20" and 2 more\n')
    expect(text).not.toContain('Hook 21')
  })
})
