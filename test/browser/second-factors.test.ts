import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemRandom } from '../../src/base/random.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { decodeBase32 } from '../harness/browser/factor-user.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import { PAGE_PASSWORD, readCode } from '../harness/browser/page-user.ts'
import { findTextFaults } from './layout.ts'
import {
  bringSession,
  fillFirst,
  findViolations,
  findViolationsInBothSchemes,
  measureOverflow,
  NO_VIOLATIONS,
  type PageBrowser,
  readHeadings,
  startPageBrowser,
} from './page-browser.ts'
import { addAuthenticator } from './virtual-authenticator.ts'

let fixture: PageBrowser

beforeAll(async () => {
  fixture = await startPageBrowser({ SOCIAL_ACME_CLIENT_ID: 'id', SOCIAL_ACME_ISSUER: 'https://login.acme.example' })
})
afterAll(() => fixture?.[Symbol.asyncDispose]())

async function createUser(): Promise<string> {
  const email = `ada-${systemRandom.bytes(4).toString('hex')}@example.test`
  await createUserWithPassword(fixture.app, { email, name: 'Ada Lovelace' }, PAGE_PASSWORD)
  return email
}

async function enterPassword(page: Page, email: string, path = '/auth/sign-in'): Promise<void> {
  await page.goto(path)
  await fillFirst(page.getByLabel('E-mail address'), email)
  await page.getByLabel('Password', { exact: true }).fill(PAGE_PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** A new user on the page of the second factors. */
async function openSecurity(page: Page): Promise<string> {
  const email = await createUser()
  await bringSession(fixture, page, { email, password: PAGE_PASSWORD })
  await page.goto('/auth/security')
  return email
}

async function beginApp(page: Page): Promise<Buffer> {
  await page.getByRole('button', { name: 'Set up an app' }).click()
  return decodeBase32((await page.locator('.key').textContent())?.replaceAll(' ', '') ?? '')
}

/** Enrols an app. The clock then advances by a step, because the first code is used. */
async function enrolApp(page: Page): Promise<Buffer> {
  const secret = await beginApp(page)
  await fillFirst(page.getByLabel('Code of the app'), readCode(fixture.app, secret))
  await page.getByRole('button', { name: 'Turn it on' }).click()
  await page.getByRole('heading', { name: 'Store your recovery codes' }).waitFor()
  fixture.app.clock.advance(30_000)
  return secret
}

async function addPasskey(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: /^Add (?:a|another) passkey$/ }).click()
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Create the passkey' }).click()
}

async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('You are signed out.').waitFor()
}

describe('a passkey of the browser', () => {
  test('is added with ten recovery codes, and then signs in alone', async () => {
    const { page, foreign, complaints, close } = await fixture.open({ hasAuthenticator: true })
    await openSecurity(page)
    await addPasskey(page, 'My laptop')
    // A script sends the passkey, so the page of the codes comes some time after the click.
    const stored = page.getByRole('link', { name: 'I have stored them' })
    await stored.waitFor()
    expect(await page.locator('.codes li').count()).toBe(10)
    await stored.click()
    await page.locator('strong', { hasText: 'My laptop' }).waitFor()
    await signOut(page)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.waitForURL('**/auth/')
    expect(await page.locator('h1').innerText()).toBe('Ada Lovelace')
    expect([foreign, complaints]).toEqual([[], []])
    await close()
  })

  test('is offered in the field of the address, and signs in when it is chosen there', async () => {
    const { page, context, complaints } = await fixture.open()
    await addAuthenticator(page, { isOffered: true })
    await openSecurity(page)
    await addPasskey(page, 'Laptop')
    await page.getByRole('link', { name: 'I have stored them' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL('**/auth/')
    expect(await page.locator('h1').innerText()).toBe('Ada Lovelace')
    expect(complaints).toEqual([])
    await context.close()
  })

  test('is the second step after the password, and the fresh proof before a change', async () => {
    const { page, close } = await fixture.open({ hasAuthenticator: true })
    const email = await openSecurity(page)
    await addPasskey(page, 'Phone')
    await page.getByRole('link', { name: 'I have stored them' }).click()
    await signOut(page)
    await enterPassword(page, email)
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await page.waitForURL('**/auth/')
    fixture.app.clock.advance(11 * 60_000)
    await page.goto('/auth/security')
    await page.getByRole('button', { name: 'Make new recovery codes' }).click()
    await page.getByRole('button', { name: 'Use a passkey' }).click()
    await page.getByText('Now repeat the step.').waitFor()
    await page.getByRole('button', { name: 'Make new recovery codes' }).click()
    await page.getByRole('heading', { name: 'Store your recovery codes' }).waitFor()
    await close()
  })

  test('is renamed and removed', async () => {
    const { page, close } = await fixture.open({ hasAuthenticator: true })
    await openSecurity(page)
    await addPasskey(page, 'Old name')
    await page.getByRole('link', { name: 'I have stored them' }).click()
    await page.getByText('Change Old name').click()
    await page.getByLabel('Name').fill('New name')
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByText('The passkey is renamed.').waitFor()
    await page.getByText('Change New name').click()
    await page.getByRole('button', { name: 'Remove this passkey' }).click()
    await page.getByText('The passkey is removed.').waitFor()
    expect(await page.locator('strong').count()).toBe(0)
    await close()
  })

  test('that the device has already is not made twice, and the page says so', async () => {
    const { page, close } = await fixture.open({ hasAuthenticator: true })
    await openSecurity(page)
    await addPasskey(page, 'One')
    await page.getByRole('link', { name: 'I have stored them' }).click()
    await addPasskey(page, 'Two')
    await page.getByText('This device already has a passkey for you.').waitFor()
    expect(await findViolations(page)).toEqual([])
    await close()
  })

  test('that was lost leaves the recovery codes, of which each works once', async () => {
    const { page, authenticator, close } = await fixture.open({ hasAuthenticator: true })
    const email = await openSecurity(page)
    await addPasskey(page, 'Lost phone')
    const code = (await page.locator('.codes li').first().innerText()).trim()
    await page.getByRole('link', { name: 'I have stored them' }).click()
    await signOut(page)
    await authenticator?.clear()
    await enterPassword(page, email)
    await fillFirst(page.getByLabel('Recovery code'), code)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForURL('**/auth/')
    await page.goto('/auth/security')
    await page.getByText('9 are left.').waitFor()
    await close()
  })
})

test('an authenticator app works without scripts, from the key to the second step', async () => {
  const { page, close } = await fixture.open({ javaScriptEnabled: false })
  const email = await openSecurity(page)
  const secret = await enrolApp(page)
  await page.getByRole('link', { name: 'I have stored them' }).click()
  await signOut(page)
  await enterPassword(page, email)
  await fillFirst(page.getByLabel('Code', { exact: true }), '000000')
  await page.keyboard.press('Enter')
  await page.getByText('The code is wrong').waitFor()
  await fillFirst(page.getByLabel('Code', { exact: true }), readCode(fixture.app, secret))
  await page.keyboard.press('Enter')
  await page.waitForURL('**/auth/')
  await close()
})

/** Invites an address to an account. Returns the link of the mail. */
async function invite(email: string): Promise<string> {
  const account = await fixture.app.admin('POST', '/api/v3/identity/account', { name: 'Northwind Rail' })
  const path = `/api/v3/identity/account/${account.body.data.document_id}/invitation`
  expect((await fixture.app.admin('POST', path, { email })).status).toBe(201)
  const { token } = (await readMails(fixture.app, email))[0]!
  return `/auth/invitation?token=${token}`
}

describe('an invitation', () => {
  test('is accepted by a new user in the browser, who is signed in by that', async () => {
    const { page, complaints, close } = await fixture.open()
    const email = `guest-${systemRandom.bytes(4).toString('hex')}@example.test`
    await page.goto(await invite(email))
    await fillFirst(page.getByLabel('Your name'), 'Grace Hopper')
    await page.getByLabel('New password', { exact: true }).fill(PAGE_PASSWORD)
    await page.getByRole('button', { name: 'Join' }).click()
    await page.getByText('You have joined the account.').waitFor()
    await page.getByText('Northwind Rail').waitFor()
    expect(complaints).toEqual([])
    await close()
  })

  test('of somebody else asks the user who is signed in to sign out by a click', async () => {
    const { page, close } = await fixture.open()
    const link = await invite(await createUser())
    await openSecurity(page)
    await page.goto(link)
    await page.getByText('You are signed in as somebody else.').waitFor()
    await page.getByRole('link', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.goto(link)
    await page.getByRole('link', { name: 'Sign in to join' }).waitFor()
    await close()
  })
})

/** Every page of this part, and how a browser gets there. */
const PAGES: readonly { name: string; reach: (page: Page) => Promise<unknown>; heading: string }[] = [
  { name: 'the second factors of a new user', reach: openSecurity, heading: 'Sign-in and security' },
  {
    name: 'the second factors of a user with all of them',
    reach: async (page) => {
      await openSecurity(page)
      await enrolApp(page)
      await page.goto('/auth/security')
      await addPasskey(page, 'Laptop of the office')
      await page.getByText('The passkey is added.').waitFor()
      await page.getByText('Change Laptop').click()
      await page.getByText('Remove the app').click()
    },
    heading: 'Sign-in and security',
  },
  {
    name: 'the key of a new app',
    reach: async (page) => {
      await openSecurity(page)
      await beginApp(page)
      await page.getByText('I cannot scan it').click()
    },
    heading: 'Set up an authenticator app',
  },
  {
    name: 'a wrong code of a new app',
    reach: async (page) => {
      await openSecurity(page)
      await beginApp(page)
      await fillFirst(page.getByLabel('Code of the app'), '000000')
      await page.keyboard.press('Enter')
      await page.getByText('Please check the form').waitFor()
    },
    heading: 'Set up an authenticator app',
  },
  {
    name: 'new recovery codes',
    reach: async (page) => {
      await openSecurity(page)
      await enrolApp(page)
    },
    heading: 'Store your recovery codes',
  },
  {
    name: 'a new passkey',
    reach: async (page) => {
      await openSecurity(page)
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await page.getByLabel('Name').waitFor()
    },
    heading: 'Add a passkey',
  },
  {
    name: 'the second step, refused',
    reach: async (page) => {
      const email = await openSecurity(page)
      await enrolApp(page)
      await page.goto('/auth/security')
      await addPasskey(page, 'Phone')
      await page.getByText('The passkey is added.').waitFor()
      await signOut(page)
      await enterPassword(page, email)
      await fillFirst(page.getByLabel('Code', { exact: true }), '000000')
      await page.keyboard.press('Enter')
      await page.getByText('The code is wrong').waitFor()
    },
    heading: 'Confirm that it is you',
  },
  {
    name: 'the connected services, with the question of a provider that sent the user back',
    reach: async (page) => {
      const email = await openSecurity(page)
      await fixture.app.database.pool.query(
        `insert into identity (document_id, "user", provider, subject, email, is_email_verified, created_at, updated_at)
         select gen_random_uuid(), document_id, 'google', document_id::text, email, true, now(), now() from "user"
         where email = $1`,
        [email],
      )
      const identity = { provider: 'google', subject: '1', email, isEmailVerified: true, name: null, avatarUrl: null }
      await fixture.app.database.pool.query(
        `insert into login_code (code_hash, purpose, "user", is_new_user, identity, expires_at, created_at)
         select sha256(convert_to(email, 'UTF8')), 'link', document_id, false, $2::jsonb, now() + interval '10 years', now() from "user"
         where email = $1`,
        [email, JSON.stringify(identity)],
      )
      await page.goto(`/auth/connections?link_code=${encodeURIComponent(email)}&error=y`)
      await page.getByRole('heading', { name: /^Connect google as/i }).waitFor()
      await page.getByRole('button', { name: 'Disconnect' }).waitFor()
    },
    heading: 'Connected services',
  },
  {
    name: 'a confirmation by a new sign-in',
    reach: async (page) => {
      await openSecurity(page)
      await page.goto('/auth/step-up')
    },
    heading: 'Confirm that it is you',
  },
  {
    name: 'an invitation of a new user',
    reach: async (page) => page.goto(await invite(`guest-${systemRandom.bytes(4).toString('hex')}@example.test`)),
    heading: 'Join Northwind Rail',
  },
  {
    name: 'an invitation of somebody else',
    reach: async (page) => {
      const link = await invite(await createUser())
      await openSecurity(page)
      await page.goto(link)
    },
    heading: 'Join Northwind Rail',
  },
]

test.each(PAGES)(
  '$name: no fault that axe finds in light and dark, fits 320 pixels, loads nothing external and violates no policy',
  async ({ reach, heading }) => {
    const { page, foreign, complaints, close } = await fixture.open({
      hasAuthenticator: true,
      colorScheme: 'light',
      reducedMotion: 'reduce',
    })
    await reach(page)
    expect(await readHeadings(page)).toEqual([heading])
    expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
    await page.setViewportSize({ width: 320, height: 640 })
    expect(await measureOverflow(page)).toBe(0)
    expect(await findTextFaults(page)).toEqual([])
    expect(foreign).toEqual([])
    expect(complaints.filter((text) => !/the server responded with a status of 4\d\d/.test(text))).toEqual([])
    await close()
  },
)
