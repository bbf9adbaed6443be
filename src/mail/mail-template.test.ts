import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { buildInvitationMail } from '../account/invitation-mail.ts'
import { chooseTexts, ENGLISH } from '../language/texts.ts'
import { buildResetMail, buildVerificationMail } from '../user/mail-texts.ts'
import { loadMailTemplate, renderMail } from './mail-template.ts'

const COLORS = { color: '#4f46e5', onColor: '#ffffff' }
const LINK = 'https://id.example.test/auth/reset?token=t'
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox mail '))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const invite = (accountName: string, texts = ENGLISH) =>
  buildInvitationMail({ texts, accountName, link: LINK, serviceName: 'Northwind & <Co>' })

describe('a mail', () => {
  test('has HTML beside its text, with a button and the link as text, and every value escaped', () => {
    const { html = '', text } = renderMail(
      loadMailTemplate(undefined, COLORS),
      invite('<a href="https://evil.test">Rail</a>'),
    )
    // The name is quoted as well, so that no mail program makes a link of it.
    const quoted = `"<a href= 'https: / / evil. test'>Rail</ a>"`
    expect(text).toContain(`You are invited to the account ${quoted} at Northwind & <Co>.`)
    expect(html).not.toMatch(/evil\.test/)
    expect(html).toContain('&quot;&lt;a href= &#39;https: / / evil. test&#39;&gt;Rail&lt;/ a&gt;&quot;')
    expect(html).toContain('Northwind &amp; &lt;Co&gt;')
    expect(html.match(new RegExp(`href="${LINK.replaceAll('?', '\\?')}"`, 'g'))).toHaveLength(1)
    expect(html).toContain('background:#4f46e5;color:#ffffff')
    expect(html).not.toMatch(/\{\{|<script|<img|https?:\/\/(?!id\.example\.test|evil\.test)/)
  })

  test.each([
    ['de', 'lang="de"', 'Sie sind zum Konto "Rail"'],
    ['en', 'lang="en"', 'You are invited to the account &quot;Rail'],
  ])('is in the language %s', (acceptLanguage, lang, words) => {
    const mail = renderMail(loadMailTemplate(undefined, COLORS), invite('Rail', chooseTexts({ acceptLanguage })))
    expect(mail.html).toContain(lang)
    expect(`${mail.html}${mail.text}`).toContain(words)
  })

  test('of every kind says in its HTML what it says in its text', () => {
    const facts = { texts: ENGLISH, link: LINK, serviceName: 'Northwind' }
    for (const content of [buildResetMail(facts), buildVerificationMail(facts), invite('Rail')]) {
      const { html = '' } = renderMail(loadMailTemplate(undefined, COLORS), content)
      const { before, button, after } = content.parts!
      for (const part of [...before, button, ...after])
        expect(html).toContain(
          part.replaceAll('"', '&quot;').replaceAll('&q', '&q').replace(/& </, '&amp; &lt;').replace('Co>', 'Co&gt;'),
        )
    }
  })

  test('does not fill a place that a value names', () => {
    const { text, html } = renderMail(loadMailTemplate(undefined, COLORS), invite('{{link}} $& {{after}}'))
    expect(text).toContain('"{{link}} $& {{after}}"')
    expect(html).toContain('{{link}} $&amp; {{after}}')
  })

  test('that was queued before there were templates is sent as it is', () => {
    expect(renderMail(loadMailTemplate(undefined, COLORS), { subject: 's', text: 't' })).toEqual({
      subject: 's',
      text: 't',
    })
  })
})

describe('a template of an operator', () => {
  test('takes the place of the built-in one, and the other one stays', async () => {
    await writeFile(
      join(folder, 'mail.html'),
      '<h1>{{service}}</h1>{{before}}<a href="{{ link }}">{{button}}</a>{{after}}',
    )
    const { html, text } = renderMail(loadMailTemplate(folder, COLORS), invite('Rail'))
    expect(html).toMatch(/^<h1>Northwind &amp; &lt;Co&gt;<\/h1><p>You are invited/)
    expect(html).toContain(`<a href="${LINK}">Accept the invitation</a>`)
    expect(text).toContain(LINK)
  })

  test.each([
    ['mail.html', '{{before}}{{after}}', 'mail.html lacks the place {{link}}. Add it'],
    ['mail.txt', '{{link}}', 'mail.txt lacks the place {{before}}'],
    ['mail.html', '{{before}}{{link}}{{after}}{{name}}', 'mail.html has the unknown place {{name}}. Known: lang'],
    ['mail.html', 'x'.repeat(65_537), 'mail.html is over 64 KiB. Shrink it.'],
    ['other.html', '', 'holds neither mail.html nor mail.txt'],
  ])('%s is refused when the service starts: %#', async (name, text, message) => {
    await writeFile(join(folder, name), text)
    expect(() => loadMailTemplate(folder, COLORS)).toThrow(message)
  })

  test('is refused where there is no folder', () => {
    expect(() => loadMailTemplate(join(folder, 'none'), COLORS)).toThrow('MAIL_TEMPLATE_DIR names no folder.')
  })
})
