import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type EngineName, type IdentityFixture, startIdentityFixture } from '../harness/browser/social-users.ts'
import { BUSY_MS, waitFor } from '../harness/run/wait.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import type { LentPage } from './lent-page.ts'

const PASSWORD = 'staple of another stable'

let browser: SharedBrowser

beforeAll(async () => {
  browser = await shareChromium()
})
afterAll(() => browser?.close())

/** One user with one browser. */
interface Traveller extends LentPage {
  fixture: IdentityFixture
  email: string
}

async function expectSignedIn({ page }: Pick<Traveller, 'page'>): Promise<void> {
  await page.waitForURL('**/auth/')
  expect(await page.locator('h1').innerText()).toBe('Rita Returning')
}

async function signOut({ page }: Traveller): Promise<void> {
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('You are signed out.').waitFor()
}

/** Opens the newest mail whose link leads to this path, when it has come. */
async function openMail({ page, fixture }: Traveller, path: string): Promise<void> {
  const href = await waitFor('the mail', async () => {
    const answer = await fetch(`${fixture.service.url}/auth/mail`, { headers: { accept: 'application/json' } })
    const { data } = (await answer.json()) as { data: { text: string }[] }
    return data.map(({ text }) => /http\S+/.exec(text)?.[0] ?? '').find((link) => link.includes(path))
  })
  await page.goto(href)
}

/** The first sign-in, with the development provider. */
async function arrive(fixture: IdentityFixture): Promise<Traveller> {
  const lent = await browser.lend({ baseURL: fixture.origin, hasAuthenticator: true })
  const { page } = lent
  await page.goto('/auth/sign-in')
  await page.getByRole('link', { name: 'Continue with a sample user' }).click()
  await page.getByRole('link', { name: 'Continue as Rita Returning' }).click()
  await expectSignedIn({ page })
  const email = await page.locator('.user .quiet').innerText()
  return { ...lent, fixture, email }
}

async function signInWithPassword(traveller: Traveller): Promise<void> {
  const { page, email } = traveller
  await signOut(traveller)
  await page.getByRole('link', { name: 'Forgot your password?' }).click()
  await page.getByLabel('E-mail address').fill(email)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
  await openMail(traveller, '/auth/reset')
  await page.getByLabel('New password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.getByText('Your new password is set, and you are signed in.').waitFor()
  await signOut(traveller)
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await expectSignedIn(traveller)
}

async function signInWithPasskey(traveller: Traveller): Promise<void> {
  const { page } = traveller
  await page.goto('/auth/security')
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByLabel('Name').fill('Laptop')
  await page.getByRole('button', { name: 'Create the passkey' }).click()
  await page.getByRole('link', { name: 'I have stored them' }).click()
  await signOut(traveller)
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await expectSignedIn(traveller)
}

async function signInWithProvider(traveller: Traveller): Promise<void> {
  const { page, email, fixture } = traveller
  fixture.seat({ sub: '4711', email, isEmailVerified: true, name: 'Rita R. Returning' })
  await signOut(traveller)
  await page.getByRole('link', { name: 'Continue with Company' }).click()
  await expectSignedIn(traveller)
}

async function join(traveller: Traveller): Promise<void> {
  const { page, email, fixture } = traveller
  const account = await fixture.service.call('POST', '/api/v3/identity/account', { name: 'Northwind Rail' })
  const path = `/api/v3/identity/account/${account.body.data.document_id}/invitation`
  expect((await fixture.service.call('POST', path, { email })).status).toBe(201)
  await openMail(traveller, '/auth/invitation')
  await page.getByRole('button', { name: 'Join' }).click()
  await page.getByText('You have joined the account.').waitFor()
  expect(await page.locator('.facts').innerText()).toContain('Northwind Rail')
}

async function openSecondApp({ page, email, fixture }: Traveller): Promise<void> {
  const target = `${fixture.apps.b}/orders`
  await page.goto(`/auth/sign-in?redirect_url=${encodeURIComponent(target)}`)
  await page.waitForURL(target)
  expect(await page.locator('#who').textContent()).toBe(`Signed in as ${email}.`)
}

/** The session JWTs that the browser holds: of the service and of the second app. */
async function readTokens({ context, fixture }: Traveller): Promise<string[]> {
  const cookies = await context.cookies([fixture.origin, fixture.apps.b])
  return cookies.filter(({ name }) => name === 'signalbox_session').map(({ value }) => value)
}

/** The statuses of requests with these tokens at both processes. */
async function readStatuses({ fixture }: Traveller, tokens: readonly string[]): Promise<number[]> {
  const requests = [fixture.service, fixture.other].flatMap(({ url }) =>
    tokens.map((token) => fetch(`${url}/api/v3/auth/session`, { headers: { authorization: `Bearer ${token}` } })),
  )
  return (await Promise.all(requests)).map(({ status }) => status)
}

async function expectOut(traveller: Traveller): Promise<void> {
  const { page, email, fixture } = traveller
  const tokens = await readTokens(traveller)
  expect(tokens).toHaveLength(2)
  expect(await readStatuses(traveller, tokens)).toEqual([200, 200, 200, 200])
  const { body } = await fixture.service.call(
    'GET',
    `/api/v3/identity/user?filters=email|eq|${encodeURIComponent(email)}`,
  )
  const path = `/api/v3/identity/user/${body.data[0].document_id}/disable`
  expect((await fixture.service.call('POST', path)).status).toBe(200)
  const disabledAt = performance.now()
  await waitFor('the end of the sessions', async () =>
    (await readStatuses(traveller, tokens)).every((status) => status === 401) ? true : undefined,
  )
  expect(performance.now() - disabledAt).toBeLessThan(1_000 + BUSY_MS)
  await page.goto('/auth/')
  expect(await page.locator('h1').innerText()).toBe('Sign in')
  await page.goto(`${fixture.apps.b}/orders`)
  expect(new URL(page.url()).origin).toBe(fixture.apps.a)
  await page.goto('/auth/sign-in')
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await page.getByText('This passkey is unknown').waitFor()
}

describe.each<EngineName>(['embedded', 'supabase'])('with the %s engine', (engine) => {
  test('one user signs in in four ways, joins by invitation, arrives at a second app, and is out everywhere within a second of being disabled', async () => {
    await using fixture = await startIdentityFixture(engine)
    const traveller = await arrive(fixture)
    await signInWithPassword(traveller)
    await signInWithPasskey(traveller)
    await signInWithProvider(traveller)
    await join(traveller)
    await openSecondApp(traveller)
    await expectOut(traveller)
    await traveller.giveBack()
  })
})
