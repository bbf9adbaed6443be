import type { Page } from 'playwright-core'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readMails } from '../harness/browser/mailbox.ts'
import { findTextFaults } from './layout.ts'
import {
  bringSession,
  findViolationsInBothSchemes,
  measureOverflow,
  NO_VIOLATIONS,
  type PageBrowser,
  PERSON,
  readHeadings,
  startPageBrowser,
} from './page-browser.ts'

let fixture: PageBrowser
beforeAll(async () => {
  fixture = await startPageBrowser()
})
afterAll(() => fixture?.[Symbol.asyncDispose]())

async function openProfile(page: Page) {
  await bringSession(fixture, page)
  await page.goto('/auth/profile')
}

test('a picture chosen in the browser is made small, saved and shown, without a request to another server', async () => {
  await using opened = await open()
  const { page, complaints, foreign } = opened
  await openProfile(page)
  // Over the limit of an upload: the browser makes it small first.
  const { data, info } = await sharp({
    create: {
      width: 1500,
      height: 1000,
      channels: 3,
      background: '#000',
      noise: { type: 'gaussian', mean: 128, sigma: 60 },
    },
  })
    .jpeg({ quality: 95 })
    .toBuffer({ resolveWithObject: true })
  expect(info.size).toBeGreaterThan(1_048_576)
  await page.getByLabel('Choose a picture').setInputFiles({ name: 'me.jpg', mimeType: 'image/jpeg', buffer: data })
  await page.getByText('Your picture is saved.').waitFor()
  const image = page.getByRole('img', { name: 'Picture' })
  await image.waitFor()
  await expect.poll(() => page.evaluate("document.querySelector('main img').naturalWidth")).toBe(256)
  await page.getByRole('button', { name: 'Remove the picture' }).click()
  await page.getByText('Your picture is removed.').waitFor()
  expect([complaints, foreign]).toEqual([[], []])
})

test('what is no picture is refused in the browser', async () => {
  await using opened = await open()
  const { page } = opened
  await openProfile(page)
  const file = { name: 'me.png', mimeType: 'image/png', buffer: Buffer.from('hello') }
  await page.getByLabel('Choose a picture').setInputFiles(file)
  await page.getByText('This cannot be read as an image.').waitFor()
})

test.each([
  ['the profile', openProfile, 'Profile'],
  [
    'the profile with an open change and an error',
    async (page: Page) => {
      await openProfile(page)
      await page.getByLabel('New e-mail address').fill('ada@elsewhere.test')
      await page.getByRole('button', { name: 'Send both links' }).click()
      await page.getByText('Neither link was used so far.').waitFor()
      await page.getByLabel('New e-mail address').fill('nobody')
      await page.getByRole('button', { name: 'Send both links' }).click()
      await page.getByText('Please check the form').waitFor()
    },
    'Profile',
  ],
  [
    'a link of a change',
    async (page: Page) => {
      const [mail] = await readMails(fixture.app, PERSON.email)
      await page.goto(`/auth/email-change?token=${mail?.token}`)
    },
    'Change of the e-mail address',
  ],
  [
    'the page after the use of a link',
    async (page: Page) => {
      const [mail] = await readMails(fixture.app, PERSON.email)
      await page.goto(`/auth/email-change?token=${mail?.token}`)
      await page.getByRole('button', { name: 'Confirm' }).click()
      await page.getByText('Now open the link').waitFor()
    },
    'Confirmed',
  ],
] as const)('%s has no accessibility fault in either scheme, and fits a phone', async (_name, reach, heading) => {
  await using opened = await open()
  const { page, complaints } = opened
  await reach(page)
  expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
  expect(await readHeadings(page)).toEqual([heading])
  await page.setViewportSize({ width: 320, height: 640 })
  expect(await measureOverflow(page)).toBeLessThanOrEqual(0)
  expect(await findTextFaults(page)).toEqual([])
  expect(complaints.filter((text) => !text.includes('422'))).toEqual([])
})

async function open() {
  const opened = await fixture.open({ reducedMotion: 'reduce' })
  return { ...opened, [Symbol.asyncDispose]: () => opened.close() }
}
