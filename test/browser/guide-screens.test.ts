import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildQuestion } from '../../packages/sso/src/question.ts'
import { decodeBase32 } from '../harness/browser/factor-user.ts'
import { readCode } from '../harness/browser/page-user.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import {
  bringSession,
  findViolationsInBothSchemes,
  NO_VIOLATIONS,
  type PageBrowser,
  readHeadings,
  signIn,
  startPageBrowser,
} from './page-browser.ts'

/** The images of the guides. `SCREENS=write` takes them anew. */
const FOLDER = join(PROJECT_ROOT, 'docs', 'guides', 'screens')

let fixture: PageBrowser

beforeAll(async () => {
  fixture = await startPageBrowser({
    APP_ENV: 'development',
    SOCIAL_GOOGLE_CLIENT_ID: 'id',
    SOCIAL_GOOGLE_CLIENT_SECRET: 'secret',
    SOCIAL_ACME_CLIENT_ID: 'id',
    SOCIAL_ACME_ISSUER: 'https://login.acme.example',
  })
})
afterAll(() => fixture?.[Symbol.asyncDispose]())

async function setUpApp(page: Page): Promise<Buffer> {
  await page.getByRole('button', { name: 'Set up an app' }).click()
  return decodeBase32((await page.locator('.key').textContent())?.replaceAll(' ', '') ?? '')
}

async function openSampleUsers(page: Page): Promise<void> {
  await page.goto('/auth/sign-in')
  await page.getByRole('link', { name: 'Continue with a sample user' }).click()
}

/** What an app shows that does not know who is right. */
const showQuestion = (page: Page) => page.setContent(buildQuestion('https://app.example.com/'))

/** Each image, and what a user does to see it. */
const SCREENS: readonly { name: string; heading: string; reach: (page: Page) => Promise<unknown> }[] = [
  { name: 'sign-in', heading: 'Sign in', reach: (page) => page.goto('/auth/sign-in') },
  { name: 'sample-people', heading: 'Choose a sample user', reach: openSampleUsers },
  {
    name: 'refused',
    heading: 'You were not signed in',
    reach: async (page) => {
      await openSampleUsers(page)
      await page.getByRole('link', { name: 'Continue as Dan Denied' }).click()
      await page.getByRole('heading', { name: 'You were not signed in' }).waitFor()
    },
  },
  {
    name: 'authenticator-app',
    heading: 'Set up an authenticator app',
    reach: async (page) => {
      await bringSession(fixture, page)
      await page.goto('/auth/security')
      await setUpApp(page)
    },
  },
  {
    name: 'security',
    heading: 'Sign-in and security',
    reach: async (page) => {
      await bringSession(fixture, page)
      await page.goto('/auth/security')
      const secret = await setUpApp(page)
      await page.getByLabel('Code of the app').fill(readCode(fixture.app, secret))
      await page.getByRole('button', { name: 'Turn it on' }).click()
      await page.getByRole('link', { name: 'I have stored them' }).click()
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await page.getByLabel('Name').fill('Laptop')
      await page.getByRole('button', { name: 'Create the passkey' }).click()
      await page.getByText('The passkey is added.').waitFor()
      await page.goto('/auth/security')
    },
  },
  {
    name: 'second-step',
    heading: 'Confirm that it is you',
    reach: async (page) => {
      await signIn(page)
      await page.getByRole('button', { name: 'Use a passkey' }).waitFor()
    },
  },
  {
    name: 'another-person',
    heading: 'Continue as another user?',
    reach: showQuestion,
  },
]

const open = () =>
  fixture.open({ hasAuthenticator: true, viewport: { width: 720, height: 480 }, reducedMotion: 'reduce' })

test.each(SCREENS)('the guides show $name, and a user gets there', async ({ name, heading, reach }) => {
  const { page, close } = await open()
  await reach(page)
  expect(await readHeadings(page)).toEqual([heading])
  const path = join(FOLDER, `${name}.png`)
  await page.evaluate('document.activeElement?.blur()')
  if (process.env.SCREENS === 'write') await page.screenshot({ path, fullPage: true })
  expect(existsSync(path)).toBe(true)
  await close()
})

// The tests of their areas examine the others.
test('axe finds no fault in the question of an app about another user, in light and dark', async () => {
  const { page, close } = await open()
  await showQuestion(page)
  expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
  await close()
})
