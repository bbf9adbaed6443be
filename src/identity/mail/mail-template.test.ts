import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { chooseTexts, ENGLISH } from '../../base/language/texts.ts'
import { buildLinkMail } from './link-mail.ts'
import { loadMailLogo } from './mail-logo.ts'
import { loadMailTemplate, renderMail } from './mail-template.ts'

const LOOK = { color: '#4f46e5', onColor: '#ffffff', darkColor: '#635bff', darkOnColor: '#fffffe', logo: null }
const LINK = 'https://id.example.test/auth/reset?token=t'
let folder: string

type Paths = [string, string, string, string]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox mail '))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const invite = (accountName: string, texts = ENGLISH) =>
  buildLinkMail('invitation', { texts, named: { account: accountName }, link: LINK, serviceName: 'Northwind & <Co>' })

describe('a mail', () => {
  test('has HTML beside its text, with a button and the link as text, and every value escaped', () => {
    const { html = '', text } = renderMail(
      loadMailTemplate(undefined, LOOK),
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
    const mail = renderMail(loadMailTemplate(undefined, LOOK), invite('Rail', chooseTexts({ acceptLanguage })))
    expect(mail.html).toContain(lang)
    expect(`${mail.html}${mail.text}`).toContain(words)
  })

  test('of every kind says in its HTML what it says in its text', () => {
    const facts = { texts: ENGLISH, link: LINK, serviceName: 'Northwind' }
    for (const content of [buildLinkMail('reset', facts), buildLinkMail('verification', facts), invite('Rail')]) {
      const { html = '' } = renderMail(loadMailTemplate(undefined, LOOK), content)
      const { before, button, after } = content.parts!
      for (const part of [...before, button, ...after])
        expect(html).toContain(
          part.replaceAll('"', '&quot;').replaceAll('&q', '&q').replace(/& </, '&amp; &lt;').replace('Co>', 'Co&gt;'),
        )
    }
  })

  test('does not fill a place that a value names', () => {
    const { text, html } = renderMail(loadMailTemplate(undefined, LOOK), invite('{{link}} $& {{after}}'))
    expect(text).toContain('"{{link}} $& {{after}}"')
    expect(html).toContain('{{link}} $&amp; {{after}}')
  })

  test('that was queued before there were templates is sent as it is', () => {
    expect(renderMail(loadMailTemplate(undefined, LOOK), { subject: 's', text: 't' })).toEqual({
      subject: 's',
      text: 't',
    })
  })
})

describe('the frame of a mail', () => {
  const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

  test('has the colours of the dark scheme, which win over those at the elements where a program knows it', () => {
    const { html = '' } = renderMail(loadMailTemplate(undefined, LOOK), invite('Rail'))
    const [, dark = ''] = /@media \(prefers-color-scheme:dark\)\{([\s\S]*)<\/style>/.exec(html) ?? []
    expect(dark).toContain('.button{background:#635bff!important;color:#fffffe!important}')
    expect(html).toContain('<meta name="color-scheme" content="light dark">')
    for (const [, name = ''] of dark.matchAll(/\.([a-z]+)\{/g)) expect(html).toContain(`class="${name}"`)
  })

  test('has the logo in HTML, which the mail carries, and none where no setting names one', async () => {
    const logo = { id: 'logo@signalbox', type: 'image/png', body: PNG }
    const { html = '', text, images } = renderMail(loadMailTemplate(undefined, { ...LOOK, logo }), invite('Rail'))
    expect(html).toMatch(/<img src="cid:logo@signalbox" alt="" width="32" height="32" style="[^"]+">Northwind/)
    expect([images, text.includes('cid:')]).toEqual([[logo], false])
    const plain = renderMail(loadMailTemplate(undefined, LOOK), invite('Rail'))
    expect([plain.images, plain.html?.includes('<img')]).toEqual([undefined, false])
  })

  test('is that of a template of an operator, without a logo that has no place in it', async () => {
    await writeFile(join(folder, 'mail.html'), '{{before}}{{link}}{{after}}<i style="color:{{dark_color}}"></i>')
    const logo = { id: 'logo@signalbox', type: 'image/png', body: PNG }
    const { html, images } = renderMail(loadMailTemplate(folder, { ...LOOK, logo }), invite('Rail'))
    expect([html?.endsWith('<i style="color:#635bff"></i>'), images]).toEqual([true, undefined])
  })

  test('takes the logo of its setting, else that of the pages where mail programs show it', async () => {
    const [png, jpg, svg, large] = ['a.png', 'b.JPG', 'c.svg', 'd.png'].map((name) => join(folder, name)) as Paths
    for (const path of [png, jpg, svg]) await writeFile(path, PNG)
    await writeFile(large, Buffer.alloc(65_537))
    const idOf = (mail: string | undefined, brand: string | undefined) => loadMailLogo({ mail, brand })?.type
    expect([idOf(png, svg), idOf(undefined, jpg)]).toEqual(['image/png', 'image/jpeg'])
    expect([idOf(undefined, svg), idOf(undefined, large), idOf(undefined, undefined)]).toEqual(Array(3).fill(undefined))
    expect(() => idOf(svg, png)).toThrow('MAIL_LOGO must name a file that ends in .png or .jpg')
    expect(() => idOf(large, png)).toThrow('MAIL_LOGO names a file over 64 KiB. Shrink it.')
    expect(() => idOf(join(folder, 'none.png'), png)).toThrow('MAIL_LOGO names no file.')
  })
})

describe('a template of an operator', () => {
  test('takes the place of the built-in one, and the other one stays', async () => {
    await writeFile(
      join(folder, 'mail.html'),
      '<h1>{{service}}</h1>{{before}}<a href="{{ link }}">{{button}}</a>{{after}}',
    )
    const { html, text } = renderMail(loadMailTemplate(folder, LOOK), invite('Rail'))
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
    expect(() => loadMailTemplate(folder, LOOK)).toThrow(message)
  })

  test('may have 64 KiB', async () => {
    await writeFile(join(folder, 'mail.html'), '{{before}}{{link}}{{after}}'.padEnd(65_536))
    expect(loadMailTemplate(folder, LOOK).html).toHaveLength(65_536)
  })

  test('is refused where there is no folder', () => {
    expect(() => loadMailTemplate(join(folder, 'none'), LOOK)).toThrow('MAIL_TEMPLATE_DIR names no folder.')
  })
})
