import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadTemplates } from '../../src/app/part/mail-transport.ts'
import { LANGUAGES, type Texts } from '../../src/base/language/texts.ts'
import { buildLinkMail } from '../../src/identity/mail/link-mail.ts'
import type { MailContent } from '../../src/identity/mail/mail.ts'
import { renderMail } from '../../src/identity/mail/mail-template.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { findTextFaults } from './layout.ts'
import { findViolationsInBothSchemes, measureOverflow, NO_VIOLATIONS } from './page-browser.ts'

let browser: SharedBrowser

beforeAll(async () => {
  browser = await shareChromium()
})
afterAll(() => browser?.close())

/** A picture of one violet pixel. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNwc3v6HwAEUQKWSbjoLwAAAABJRU5ErkJggg==',
  'base64',
)

const LINK = `https://id.example.test/auth/reset?token=${'t'.repeat(43)}`

const MAILS: Readonly<Record<string, (texts: Texts) => MailContent>> = {
  'a new password': (texts) => buildLinkMail('reset', { texts, link: LINK, serviceName: 'Northwind' }),
  'a verification': (texts) => buildLinkMail('verification', { texts, link: LINK, serviceName: 'Northwind' }),
  'an invitation': (texts) =>
    buildLinkMail('invitation', { texts, named: { account: 'Rail and Road' }, link: LINK, serviceName: 'Northwind' }),
}

/** The settings of the brand: none, and a colour that cannot be seen in one of the schemes. */
const BRANDS = [undefined, '#101010', '#fefefe']

/** Opens the HTML of a mail as a mail program does that shows its pictures. */
async function openMail(page: Page, content: MailContent, brandColor?: string): Promise<void> {
  const settings = { mailTemplateDir: undefined, mailLogoPath: undefined, brandLogoPath: undefined, brandColor }
  const logo = { id: 'logo@signalbox', type: 'image/png', body: PIXEL }
  const { html = '' } = renderMail({ ...loadTemplates(settings), logo }, content)
  await page.setContent(html.replace(`cid:${logo.id}`, `data:${logo.type};base64,${logo.body.toString('base64')}`))
}

const colorsOf = (page: Page) =>
  page.evaluate(`['.ground', '.card', '.button'].map((selector) => {
    const { backgroundColor, color } = getComputedStyle(document.querySelector(selector))
    return [backgroundColor, color]
  })`)

describe.each(Object.entries(MAILS))('a mail with %s', (_kind, build) => {
  test.each(LANGUAGES.map((texts) => [texts.lang, texts] as const))(
    'has no fault that axe finds in light and dark, and fits 320 pixels: %s',
    async (_lang, texts) => {
      const requests: string[] = []
      const { page, giveBack } = await browser.lend({ viewport: { width: 1000, height: 800 } })
      page.on('request', (request) => requests.push(request.url()))
      for (const brandColor of BRANDS) {
        await openMail(page, build(texts), brandColor)
        // A mail is no page: it has no landmarks of its own.
        const rules = ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']
        expect(await findViolationsInBothSchemes(page, { rules })).toEqual(NO_VIOLATIONS)
      }
      await page.setViewportSize({ width: 320, height: 640 })
      expect(await measureOverflow(page)).toBe(0)
      expect(await findTextFaults(page)).toEqual([])
      expect(requests).toEqual([])
      await giveBack()
    },
  )
})

test('a mail is light, and dark where the system is, with the logo beside the name', async () => {
  const { page, giveBack } = await browser.lend({ viewport: { width: 1000, height: 800 } })
  await openMail(page, MAILS['a new password']!(LANGUAGES[0]!))
  await page.emulateMedia({ colorScheme: 'light' })
  expect(await colorsOf(page)).toEqual([
    ['rgb(245, 246, 248)', 'rgb(20, 23, 31)'],
    ['rgb(255, 255, 255)', 'rgb(20, 23, 31)'],
    ['rgb(79, 70, 229)', 'rgb(255, 255, 255)'],
  ])
  await page.emulateMedia({ colorScheme: 'dark' })
  expect(await colorsOf(page)).toEqual([
    ['rgb(13, 15, 20)', 'rgb(238, 240, 244)'],
    ['rgb(22, 26, 34)', 'rgb(238, 240, 244)'],
    ['rgb(99, 91, 255)', 'rgb(255, 255, 255)'],
  ])
  expect(await page.locator('img').boundingBox()).toMatchObject({ width: 32, height: 32 })
  expect(await page.evaluate("document.querySelector('img').decode().then(() => 'shown')")).toBe('shown')
  await giveBack()
})
