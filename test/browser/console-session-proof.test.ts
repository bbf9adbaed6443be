import { afterAll, beforeAll, expect, test } from 'vitest'
import { COMPANY_OIDC } from '../harness/app/connection-app.ts'
import { type ProviderFixture, startProviderFixture } from '../harness/fakes/provider/provider-fixture.ts'
import { type ConsoleBrowser, signIn, startConsoleBrowser, takePicture } from './console-browser.ts'
import { findViolationsInBothSchemes, NO_VIOLATIONS } from './page-browser.ts'

/** The proof of a session in the console (docs/contract/connections.md#proof-of-a-session). */

const ACCOUNT = '/api/v3/identity/account'
const USER = { email: 'ada@corp.example', name: 'Ada Both' }

let c: ConsoleBrowser
let fixture: ProviderFixture

beforeAll(async () => {
  fixture = await startProviderFixture(() => c.d.t.clock.now())
  c = await startConsoleBrowser({}, { fetchProvider: fixture.fetch })
})
afterAll(async () => {
  await c?.[Symbol.asyncDispose]()
  await fixture?.[Symbol.asyncDispose]()
})

/** An account with this user as its administrator. */
async function makeAccount(name: string, user: string): Promise<string> {
  const account = (await c.d.call('POST', ACCOUNT, { name })).body.data.document_id
  const role = (await c.d.call('GET', '/api/v3/identity/role?filters=name|eq|account-admin')).body.data[0].document_id
  await c.d.call('POST', `${ACCOUNT}/${account}/member`, { user, roles: [role] })
  return account
}

test('the console offers the account that a session lacks, by the provider, and comes back to the screen', async () => {
  const user = await c.addUser(USER)
  await c.d.t.database.pool.query('update "user" set email_verified_at = now() where document_id = $1', [user])
  const [closed] = [await makeAccount('Corp', user), await makeAccount('Own', user)]
  const body = { kind: 'oidc', name: 'Corp login', is_enforced: true, oidc: COMPANY_OIDC }
  const connection = (await c.d.call('POST', `${ACCOUNT}/${closed}/connection`, body)).body.data.document_id
  const domains = `${ACCOUNT}/${closed}/connection/${connection}/domain`
  const domain = (await c.d.call('POST', domains, { domain: 'corp.example' })).body.data.document_id
  expect((await c.d.call('POST', `${domains}/${domain}/approve`)).status).toBe(200)

  await using opened = await c.open('/console/accounts', USER)
  const { page } = opened
  // A redirect is not intercepted: the page that leads to the provider is.
  await page.route('**/auth/organization/enter?*', async (route) => {
    fixture.fakes.company.user = { sub: 'ada', email: USER.email, isEmailVerified: true }
    const { location = '' } = (await route.fetch({ maxRedirects: 0 })).headers()
    const { url } = await fixture.fakes.company.authorize(location)
    await route.fulfill({ contentType: 'text/html', body: `<script>location.replace(${JSON.stringify(url)})</script>` })
  })
  await page.getByText('Corp signs its members in by its own provider.', { exact: false }).waitFor()
  await page.getByRole('link', { name: 'Own', exact: true }).first().waitFor()
  expect(await page.getByRole('link', { name: 'Corp', exact: true }).count()).toBe(0)
  await takePicture(page, 'account-closed')

  await page.goto(`/console/accounts/${closed}`)
  await page.getByText('connection_required').first().waitFor()
  await page.getByRole('link', { name: 'Sign in there' }).first().click()
  await page.waitForURL(`**/console/accounts/${closed}`)
  await page.getByRole('heading', { level: 1, name: 'Corp', exact: true }).waitFor()
  expect(await page.getByText('by its own provider', { exact: false }).count()).toBe(0)
})

/** Ends every session of a user. */
async function endSessions(user: string): Promise<void> {
  const { body } = await c.d.call('GET', `/api/v3/identity/session?filters=user|eq|${user}`)
  expect(body.data.length).toBeGreaterThan(0)
  for (const { document_id } of body.data) await c.d.call('DELETE', `/api/v3/identity/session/${document_id}`)
}

test('a session that ends keeps what was typed until the user is signed in again, and leaves a page without entries', async () => {
  const eve = { email: 'eve@example.test', name: 'Eve' }
  const user = await c.addUser(eve)
  await using opened = await c.open('/console/settings', eve)
  const { page } = opened
  await page.getByLabel('Name', { exact: true }).fill('Eve Typed')
  await endSessions(user)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  const asked = page.getByRole('dialog', { name: 'Your session has ended' })
  await asked.getByText('not saved yet').waitFor()
  expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
  await takePicture(page, 'signed-out')
  // Whoever comes back without a sign-in is asked still.
  await asked.getByRole('button', { name: 'I have signed in' }).click()
  const [other] = await Promise.all([
    page.context().waitForEvent('page'),
    asked.getByRole('link', { name: 'Sign in in a new tab' }).click(),
  ])
  await signIn(other, eve)
  await other.waitForURL((url) => url.pathname === '/auth/')
  await other.close()
  await asked.getByRole('button', { name: 'I have signed in' }).click()
  await asked.waitFor({ state: 'hidden' })
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Eve Typed')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await expect
    .poll(async () => (await c.d.call('GET', `/api/v3/identity/user/${user}`)).body.data.name)
    .toBe('Eve Typed')

  await page.goto('/console/consents')
  await page.getByRole('heading', { level: 1, name: 'Consents' }).waitFor()
  await endSessions(user)
  await page.evaluate(() => dispatchEvent(new Event('visibilitychange')))
  await page.getByRole('link', { name: 'Sessions' }).first().click()
  await page.waitForURL('**/auth/sign-in?*')
})
