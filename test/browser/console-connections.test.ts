import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { COMPANY_OIDC } from '../harness/app/connection-app.ts'
import type { DeliveryApp } from '../harness/app/delivery-app.ts'
import { type ProviderFixture, startProviderFixture } from '../harness/fakes/provider/provider-fixture.ts'
import { buildFakeIdp, type FakeIdp } from '../harness/fakes/saml-idp/fake-idp.ts'
import { createSamlKey } from '../harness/fakes/saml-idp/saml-key.ts'
import {
  type ConsoleBrowser,
  expectAccessibleScreens,
  follow,
  startConsoleBrowser,
  takePicture,
  waitForHeading,
} from './console-browser.ts'
import { measureOverflow } from './page-browser.ts'

const ACCOUNT = '/api/v3/identity/account'

/** Longer than the pause between two looks at the record of a domain, ms. */
const LOOK_PAUSE_MS = 11_000

let c: ConsoleBrowser
let d: DeliveryApp
let fixture: ProviderFixture
let idp: FakeIdp
const records = new Map<string, string[]>()

beforeAll(async () => {
  fixture = await startProviderFixture(() => d.t.clock.now())
  c = await startConsoleBrowser(
    {},
    { fetchProvider: fixture.fetch, resolveTxt: async (name) => records.get(name) ?? [] },
  )
  d = c.d
  idp = await buildFakeIdp({ origin: 'https://idp.corp.example', now: () => new Date(d.t.clock.now()) })
})
afterAll(async () => {
  await c?.[Symbol.asyncDispose]()
  await fixture?.[Symbol.asyncDispose]()
})

const makeAccount = async (name: string): Promise<string> =>
  (await d.call('POST', ACCOUNT, { name })).body.data.document_id

/** Makes a connection through the API; its path in the API. */
async function connect(account: string, body: object): Promise<{ id: string; path: string }> {
  const made = await d.call('POST', `${ACCOUNT}/${account}/connection`, body)
  const id: string = made.body.data.document_id
  return { id, path: `${ACCOUNT}/${account}/connection/${id}` }
}

const OIDC = { kind: 'oidc', name: 'Corp login', oidc: COMPANY_OIDC }

/** Signs a person in by a connection, in a browser without a console. */
async function signIn(connection: string, email: string): Promise<number> {
  fixture.fakes.company.user = { sub: email, email, isEmailVerified: true, name: 'Ada' }
  const query = new URLSearchParams({ redirect_url: `${c.origin}/auth/` })
  const started = await fetch(`${c.origin}/api/v3/auth/login/oauth/${connection}?${query}`, { redirect: 'manual' })
  const cookie = started.headers
    .getSetCookie()
    .map((set) => set.split(';')[0])
    .join('; ')
  const step = await fixture.fakes.company.authorize(String(started.headers.get('location')))
  const at = new URL(step.url, c.origin)
  const back = `${c.origin}${at.pathname.replace('/callback', '/callback-redirect')}${at.search}`
  const { status } = await fetch(back, {
    headers: { cookie, accept: 'application/json' },
    redirect: 'manual',
  })
  return status
}

const dialog = (page: Page, name: string) => page.getByRole('dialog', { name })
const tab = (page: Page, name: string) => page.getByRole('tab', { name, exact: true })
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

describe('an operator connects the provider of an account', () => {
  test('by OpenID Connect: makes it, reads the redirect URI, proves a domain, enforces, disables and deletes it', async () => {
    const account = await makeAccount('Corp')
    await using opened = await c.open(`/console/accounts/${account}?tab=sign-in`)
    const { page, complaints } = opened
    await page.getByText('The account has no connection.').waitFor()
    await page.getByRole('link', { name: 'New connection' }).click()
    await waitForHeading(page, 'New connection')
    await page.getByRole('textbox', { name: 'Name', exact: false }).first().fill('Corp login')
    await page.getByLabel('Issuer').fill(COMPANY_OIDC.issuer)
    await page.getByLabel('Client id').fill(COMPANY_OIDC.client_id)
    await page.getByLabel('Client secret').first().fill(COMPANY_OIDC.client_secret)
    await page.getByLabel('Groups claim').fill('groups')
    await page.getByRole('switch', { name: 'Let in people' }).check()
    await button(page, 'Add a group').click()
    await page.getByLabel('Group 1', { exact: true }).fill('engineering')
    await page.getByLabel('Role of group 1').selectOption('account-developer')
    await takePicture(page, 'connection-new-filled')
    await button(page, 'Create the connection').click()
    await waitForHeading(page, 'Corp login')

    const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    const path = `${ACCOUNT}/${account}/connection/${id}`
    const { data: made } = (await d.call('GET', path)).body
    expect(made).toMatchObject({ is_jit: true, is_enforced: false, oidc: { groups_claim: 'groups' } })
    expect(made.group_roles).toMatchObject([{ group: 'engineering' }])
    const redirectUri = `${c.origin}${made.oidc.redirect_path}`
    await page.getByText(redirectUri, { exact: true }).waitFor()
    const start = await page.getByText(`/api/v3/auth/login/oauth/${id}?`).innerText()
    const started = await fetch(start, { redirect: 'manual' })
    const target = new URL(started.headers.get('location') ?? '')
    expect(target.origin).toBe(new URL(COMPANY_OIDC.issuer).origin)
    expect(target.searchParams.get('redirect_uri')).toBe(redirectUri)
    expect(complaints).toEqual([])

    await tab(page, 'Domains').click()
    await page.getByLabel('Domain', { exact: true }).fill('corp.example')
    await button(page, 'Claim the domain').click()
    await page.getByText('_signalbox-challenge.corp.example').waitFor()
    await button(page, 'Verify now').click()
    await page.getByText('domain_unproven').waitFor()
    await takePicture(page, 'connection-domain-unproven')
    const [domain] = (await d.call('GET', `${path}/domain`)).body.data
    await page.getByText(domain.record_value, { exact: true }).waitFor()
    records.set(domain.record_name, [domain.record_value])
    d.t.clock.advance(LOOK_PAUSE_MS)
    await button(page, 'Verify now').click()
    await page.getByText('Proven by its record').waitFor()

    await button(page, 'Enforce').click()
    const enforce = dialog(page, 'Enforce connection Corp login')
    await enforce.getByText('API keys stay valid.').waitFor()
    await takePicture(page, 'connection-enforce')
    expect(await enforce.getByRole('button', { name: 'Enforce' }).isDisabled()).toBe(true)
    await enforce.getByLabel('Type Corp login to confirm').fill('Corp login')
    await enforce.getByRole('button', { name: 'Enforce' }).click()
    await button(page, 'Stop enforcing').waitFor()
    expect((await d.call('GET', path)).body.data.is_enforced).toBe(true)

    await button(page, 'Disable').click()
    await dialog(page, 'Disable connection Corp login').getByRole('button', { name: 'Disable' }).click()
    await button(page, 'Enable').waitFor()
    expect((await d.call('GET', path)).body.data.is_enabled).toBe(false)

    await page.getByRole('link', { name: 'Sign-in', exact: true }).click()
    const row = page.getByRole('row').filter({ hasText: 'Corp login' })
    await row.getByText('1 proven, 0 pending').waitFor()
    await row.getByText('Disabled').waitFor()
    await row.getByRole('link', { name: 'Corp login' }).click()
    await button(page, 'Delete').click()
    const remove = dialog(page, 'Delete connection Corp login')
    await remove.getByLabel('Type Corp login to confirm').fill('Corp login')
    await remove.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('The account has no connection.').waitFor()
    expect((await d.t.admin('GET', path)).status).toBe(404)
  })

  test('by SAML: fills the fields from pasted metadata, and reads what the provider needs', async () => {
    const account = await makeAccount('Samuel')
    await using opened = await c.open(`/console/accounts/${account}/sign-in/new`)
    const { page, complaints } = opened
    await page.getByText('SAML 2.0').click()
    await page.getByRole('textbox', { name: 'Name', exact: false }).first().fill('Samuel login')
    await page.getByLabel('Metadata (XML)').fill(idp.metadata)
    await button(page, 'Read the metadata').click()
    await expect.poll(() => page.getByLabel('Entity id of the provider').inputValue()).toBe(idp.entityId)
    expect(await page.getByLabel('Single sign-on URL').inputValue()).toBe(idp.ssoUrl)
    await page.getByLabel('Attribute of the groups').fill('memberOf')
    await takePicture(page, 'connection-new-saml')
    await button(page, 'Create the connection').click()
    await waitForHeading(page, 'Samuel login')
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    const { saml } = (await d.call('GET', `${ACCOUNT}/${account}/connection/${id}`)).body.data
    expect(saml).toMatchObject({ idp_entity_id: idp.entityId, groups_attribute: 'memberOf', email_attribute: null })
    await page.getByText(`${c.origin}${saml.acs_path}`, { exact: true }).waitFor()
    await page.getByText(`${c.origin}${saml.metadata_path}`, { exact: true }).waitFor()
    expect(complaints).toEqual([])
  })

  test('reads at its fields what the API refuses, of the connection and of the metadata', async () => {
    const account = await makeAccount('Refused')
    await using opened = await c.open(`/console/accounts/${account}/sign-in/new`)
    const { page } = opened
    const isInvalid = (label: string) => page.getByLabel(label).first().getAttribute('aria-invalid')
    await page.getByRole('textbox', { name: 'Name', exact: false }).first().fill('Inside')
    await page.getByLabel('Issuer').fill('https://10.1.2.3/realm')
    await page.getByLabel('Client id').fill('client')
    await page.getByLabel('Client secret').first().fill('secret')
    await button(page, 'Create the connection').click()
    await expect.poll(() => isInvalid('Issuer')).toBe('true')
    await takePicture(page, 'connection-refused')
    await page.getByText('SAML 2.0').click()
    await page.getByLabel('Metadata (XML)').fill('<none/>')
    await button(page, 'Read the metadata').click()
    await expect.poll(() => isInvalid('Metadata (XML)')).toBe('true')
    await page.getByLabel('Entity id of the provider').fill(idp.entityId)
    await page.getByLabel('Single sign-on URL').fill(idp.ssoUrl)
    await page.getByLabel('Signing certificates').fill('no certificate')
    await button(page, 'Create the connection').click()
    await expect.poll(() => isInvalid('Signing certificates')).toBe('true')
    expect((await d.call('GET', `${ACCOUNT}/${account}/connection`)).body.data).toEqual([])
  })
})

test('of two operators who edit one connection the second is told, and the stored secret stays', async () => {
  const account = await makeAccount('Shared')
  const { id, path } = await connect(account, OIDC)
  await using opened = await c.open(`/console/accounts/${account}/sign-in/${id}?tab=settings`)
  const { page } = opened
  const name = page.getByRole('textbox', { name: 'Name', exact: false }).first()
  await name.fill('Of this operator')
  await d.call('PATCH', path, { name: 'Of the other' })
  await button(page, 'Save').click()
  const conflict = page.getByTestId('conflict')
  await conflict.getByText('Of the other').waitFor()
  await takePicture(page, 'connection-conflict')
  await conflict.getByRole('button', { name: 'Overwrite with mine' }).click()
  await page.getByText('Saved').waitFor()
  expect((await d.call('GET', path)).body.data.name).toBe('Of this operator')
  await page.getByLabel('Issuer').fill('https://other.example')
  await page.getByText('This makes the provider another one').waitFor()
  await button(page, 'Save').click()
  await expect.poll(() => page.getByLabel('Client secret').first().getAttribute('aria-invalid')).toBe('true')
  expect((await d.call('GET', path)).body.data.oidc.issuer).toBe(COMPANY_OIDC.issuer)
})

test('a domain is approved by an operator, and removed', async () => {
  const account = await makeAccount('Approved')
  const { id, path } = await connect(account, OIDC)
  await d.call('POST', `${path}/domain`, { domain: 'approved.example' })
  await using opened = await c.open(`/console/accounts/${account}/sign-in/${id}?tab=domains`)
  const { page, complaints } = opened
  await button(page, 'Approve').click()
  await dialog(page, 'Approve approved.example').getByRole('button', { name: 'Approve' }).click()
  await page.getByText('Proven by an operator').waitFor()
  await button(page, 'Remove').click()
  await dialog(page, 'Remove approved.example').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No domain is claimed.').waitFor()
  expect((await d.call('GET', `${path}/domain`)).body.data).toEqual([])
  expect(complaints).toEqual([])
})

test('an administrator of the account has the same screens, and approves no domain', async () => {
  const account = await makeAccount('Owned')
  const { id, path } = await connect(account, OIDC)
  await d.call('POST', `${path}/domain`, { domain: 'owned.example' })
  const owner = { email: 'owner@example.test', name: 'Otto Owner' }
  const user = await c.addUser(owner)
  const roles = (await d.call('GET', '/api/v3/identity/role?filters=name|eq|account-admin')).body.data
  await d.call('POST', `${ACCOUNT}/${account}/member`, { user, roles: [roles[0].document_id] })
  await using opened = await c.open(`/console/accounts/${account}/sign-in/${id}?tab=domains`, owner)
  const { page, complaints } = opened
  await button(page, 'Verify now').waitFor()
  expect(await button(page, 'Approve').count()).toBe(0)
  await tab(page, 'Settings').click()
  // Only roles that it may give itself.
  const role = page.getByLabel('Default role')
  await role.getByText('account-viewer').waitFor({ state: 'attached' })
  expect(await role.locator('option').allTextContents()).not.toContain('administrator')
  await role.selectOption('account-viewer')
  await page.getByLabel('Groups claim').fill('teams')
  await button(page, 'Save').click()
  await page.getByText('Saved').waitFor()
  const viewer = (await d.call('GET', '/api/v3/identity/role?filters=name|eq|account-viewer')).body.data[0].document_id
  expect((await d.call('GET', path)).body.data).toMatchObject({ oidc: { groups_claim: 'teams' }, default_role: viewer })
  await takePicture(page, 'connection-of-account-admin')
  // And of its members.
  await follow(page, `accounts/${account}?tab=members`)
  await page.getByRole('row', { name: /Otto Owner.*account-admin/ }).waitFor()
  expect(complaints).toEqual([])
})

test('who may not see connections is offered none', async () => {
  const account = await makeAccount('Hidden')
  const { id } = await connect(account, OIDC)
  const permissions = ['account:find-all', 'account:find-one', 'account-member:find-all']
  await d.call('POST', '/api/v3/identity/role', { name: 'account-reader', permissions })
  const reader = { email: 'reader@example.test', name: 'Rita Reader' }
  await c.addUser(reader, 'account-reader')
  await using opened = await c.open(`/console/accounts/${account}`, reader)
  const { page } = opened
  await tab(page, 'Members').waitFor()
  expect(await tab(page, 'Sign-in').count()).toBe(0)
  await follow(page, `accounts/${account}/sign-in/${id}`)
  await page.getByText('connection:find-one').waitFor()
  await follow(page, `accounts/${account}/sign-in/new`)
  await page.getByText('connection:create').waitFor()
})

test('the page of a connection shows its last sign-in, and what became of the attempts of the day', async () => {
  const account = await makeAccount('Active')
  const { id, path } = await connect(account, { ...OIDC, is_jit: true })
  const made = await d.call('POST', `${path}/domain`, { domain: 'active.example' })
  await d.call('POST', `${path}/domain/${made.body.data.document_id}/approve`)
  const screen = `accounts/${account}/sign-in/${id}`
  await using opened = await c.open('/console/accounts')
  const { page, complaints } = opened
  await waitForHeading(page, 'Accounts')
  // The page compares the day with its own clock.
  await page.clock.setFixedTime(d.t.clock.now())
  const fact = (name: string) => page.getByRole('row').filter({ hasText: name })
  await page.goto(`/console/${screen}`)
  await fact('Last sign-in').getByText('None yet').waitFor()
  await fact('Refused today').getByText('0', { exact: true }).waitFor()

  const people = ['ada@active.example', 'ada@active.example', 'eve@elsewhere.example']
  const statuses: number[] = []
  for (const email of people) statuses.push(await signIn(id, email))
  expect(statuses).toEqual([200, 200, 401])
  await page.reload()
  await fact('Sign-ins today').getByText('2', { exact: true }).waitFor()
  await fact('Refused today').getByText('email_outside: 1').waitFor()
  expect(await fact('Last sign-in').innerText()).not.toContain('None yet')
  await expectAccessibleScreens(page, [[screen, 'email_outside: 1']])
  expect(complaints).toEqual([])

  // The same day is over: its attempts are not those of today.
  await d.t.database.pool.query("update connection_activity set day = day - interval '2 days' where connection = $1", [
    id,
  ])
  await page.reload()
  await fact('Refused today').getByText('0', { exact: true }).waitFor()
  await fact('Sign-ins today').getByText('0', { exact: true }).waitFor()
})

test('who reads connections without their activity sees the page without it', async () => {
  const account = await makeAccount('Quiet')
  const { id } = await connect(account, OIDC)
  const permissions = ['account:find-all', 'account:find-one', 'connection:find-all', 'connection:find-one']
  await d.call('POST', '/api/v3/identity/role', { name: 'connection-reader', permissions })
  const reader = { email: 'quiet@example.test', name: 'Quinn Quiet' }
  await c.addUser(reader, 'connection-reader')
  await using opened = await c.open(`/console/accounts/${account}/sign-in/${id}`, reader)
  const { page, complaints } = opened
  await page.getByRole('rowheader', { name: 'Redirect URI' }).waitFor()
  expect(await page.getByText('Refused today').count()).toBe(0)
  expect(complaints).toEqual([])
})

test('the screens pass axe in both themes, fit a phone, and warn of a certificate that has ended', async () => {
  const account = await makeAccount('Finch')
  const { certificate } = await createSamlKey({ notBefore: new Date('2020-01-01'), notAfter: new Date('2021-01-01') })
  const saml = { idp_entity_id: idp.entityId, sso_url: idp.ssoUrl, certificates: [idp.key.certificate, certificate] }
  const oidc = await connect(account, { ...OIDC, is_enforced: true })
  const old = await connect(account, { kind: 'saml', name: 'Old login', saml })
  for (const domain of ['finch.example', 'a-longer-name-of-a-domain.finch.example'])
    await d.call('POST', `${oidc.path}/domain`, { domain })
  const base = `accounts/${account}`
  await using opened = await c.open('/console/accounts')
  await waitForHeading(opened.page, 'Accounts')
  await expectAccessibleScreens(opened.page, [
    [`${base}?tab=sign-in`, 'Certificate ended'],
    [`${base}/sign-in/new`, 'Create the connection'],
    [`${base}/sign-in/${oidc.id}`, 'Redirect URI'],
    [`${base}/sign-in/${oidc.id}?tab=domains`, '_signalbox-challenge.finch.example'],
    [`${base}/sign-in/${oidc.id}?tab=settings`, 'Groups claim'],
    [`${base}/sign-in/${old.id}`, 'A certificate is due'],
    [`${base}/sign-in/${old.id}?tab=settings`, 'Fill from the metadata'],
  ])
  expect(opened.complaints).toEqual([])
})

test('the screens are whole in German, and fit a phone there too', async () => {
  const account = await makeAccount('Fink')
  const { id, path } = await connect(account, { ...OIDC, name: 'Anmeldung bei Fink' })
  await d.call('POST', `${path}/domain`, { domain: 'fink.example' })
  await using opened = await c.open('/console/accounts')
  const { page } = opened
  await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
  await page.reload()
  await page.setViewportSize({ width: 320, height: 700 })
  const base = `accounts/${account}`
  const screens = [
    ['list', `${base}?tab=sign-in`, '0 nachgewiesen, 1 offen'],
    ['new', `${base}/sign-in/new`, 'Verbindung anlegen'],
    ['setup', `${base}/sign-in/${id}`, 'Für den Anbieter'],
    ['domains', `${base}/sign-in/${id}?tab=domains`, 'Jetzt prüfen'],
    ['settings', `${base}/sign-in/${id}?tab=settings`, 'Claim der Gruppen'],
  ] as const
  for (const [name, path, text] of screens) {
    await follow(page, path)
    await page.locator('#main').getByText(text).first().waitFor()
    await takePicture(page, `connection-${name}-german`)
    expect(await measureOverflow(page), name).toBe(0)
  }
})
