import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryApp } from '../harness/app/delivery-app.ts'
import {
  type ConsoleBrowser,
  expectAccessibleScreens,
  follow,
  OPERATOR,
  type Screen,
  startConsoleBrowser,
  takePicture,
  waitForHeading,
} from './console-browser.ts'

const IDENTITY = '/api/v3/identity'

let c: ConsoleBrowser
let d: DeliveryApp
let operator: string

beforeAll(async () => {
  c = await startConsoleBrowser({
    SOCIAL_GOOGLE_CLIENT_ID: 'client',
    SOCIAL_GOOGLE_CLIENT_SECRET: 'secret',
    SSO_TARGETS: 'https://shop.example.test,https://blog.example.test',
  })
  d = c.d
  operator = c.operator
})
afterAll(() => c?.[Symbol.asyncDispose]())

const created = async (path: string, body: object): Promise<string> =>
  (await d.call('POST', path, body)).body.data.document_id

const addApp = () =>
  created('/api/v3/oauth/client', {
    name: 'Partner',
    type: 'confidential',
    publisher: 'Partner Inc.',
    redirect_uris: ['https://partner.example/back'],
    scopes: ['openid', 'profile', 'email', 'webhook:read'],
  })

/** The consent of a user to an app. */
const addConsent = (user: string, app: string) =>
  d.t.database.pool.query(
    `insert into oauth_grant (document_id, "user", client, scopes, refused_scopes, created_at, updated_at)
     values (gen_random_uuid(), $1, $2, '{openid,email}', '{}', $3, $3)`,
    [user, app, new Date(d.t.clock.now())],
  )

/** A user's identity at a provider. */
const addIdentity = (user: string) =>
  d.t.database.pool.query(
    `insert into identity (document_id, "user", provider, subject, email, is_email_verified, last_login_at, created_at, updated_at)
     values (gen_random_uuid(), $1, 'google', $1::uuid::text, 'olga@example.test', true, $2, $2, $2)`,
    [user, new Date(d.t.clock.now())],
  )

const dialog = (page: Page, name: string) => page.getByRole('dialog', { name })
const confirm = (page: Page, title: string, name: string) =>
  dialog(page, title).getByRole('button', { name, exact: true }).click()

describe('an operator, in the browser alone', () => {
  test('reads which membership needs the proof of which connection', async () => {
    const user = { email: 'nina@narrow.example.test', name: 'Nina Narrow' }
    const id = await c.addUser(user)
    const [closed, open] = [
      await created(`${IDENTITY}/account`, { name: 'Closed' }),
      await created(`${IDENTITY}/account`, { name: 'Open' }),
    ]
    const oidc = { issuer: 'https://login.narrow.example.test', client_id: 'x', client_secret: 'y' }
    const path = `${IDENTITY}/account/${closed}/connection`
    const connection = await created(path, { kind: 'oidc', name: 'Narrow', oidc })
    const { pool } = d.t.database
    await pool.query(
      `insert into connection_domain (document_id, connection, account, domain, token, verified_at, verified_by,
         created_at, updated_at)
       values (gen_random_uuid(), $1, $2, 'narrow.example.test', 'token', $3, 'operator', $3, $3)`,
      [connection, closed, new Date(d.t.clock.now())],
    )
    for (const account of [closed, open]) await d.call('POST', `${IDENTITY}/account/${account}/member`, { user: id })
    await d.call('PATCH', `${path}/${connection}`, { is_enforced: true })
    await using opened = await c.open(`/console/users/${id}?tab=access`)
    const { page, complaints } = opened
    await page.getByRole('link', { name: 'Open', exact: true }).waitFor()
    expect(await page.getByText('in sessions that its connection has proven:').count()).toBe(1)
    expect(await page.getByText(connection).count()).toBe(1)
    expect(complaints).toEqual([])
  })

  test('disables a user, whose session ends in its own browser, and reads why it may what it may', async () => {
    const user = { email: 'paul@example.test', name: 'Paul Person' }
    const id = await c.addUser(user)
    await using theirs = await c.open('/auth/devices', user)
    await theirs.page.getByRole('heading', { level: 1 }).waitFor()
    await using opened = await c.open('/console/users')
    const { page, complaints } = opened
    await page.getByRole('textbox', { name: 'Search' }).fill('paul')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByLabel('State', { exact: true }).selectOption('active')
    await page.getByLabel('Role', { exact: true }).selectOption('member')
    await expect.poll(() => page.url()).toMatch(/q=paul&state=active&role=./)
    await page.getByRole('link', { name: user.name }).click()
    await waitForHeading(page, user.name)
    await page.getByRole('tab', { name: 'Roles and permissions' }).click()
    await page.getByRole('heading', { name: 'permission' }).waitFor()
    await page.getByRole('tab', { name: 'Sign-ins' }).click()
    await page.getByRole('cell', { name: 'Success' }).first().waitFor()
    await page.getByRole('tab', { name: 'Sessions' }).click()
    await page.getByRole('button', { name: 'End' }).waitFor()
    await page.getByRole('button', { name: 'Disable' }).click()
    await confirm(page, `Disable user ${user.name}`, 'Disable')
    await page.getByRole('button', { name: 'Enable' }).waitFor()
    await page.getByText('No session is open.').waitFor()
    await theirs.page.reload()
    await theirs.page.getByLabel('Password', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Enable' }).click()
    await page.getByRole('button', { name: 'Disable' }).waitFor()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: 'Delete the user' }).click()
    const asked = dialog(page, `Delete user ${user.name}`)
    await expect.poll(() => asked.getByRole('button', { name: 'Delete the user' }).isDisabled()).toBe(true)
    await asked.getByLabel(`Type ${user.email} to confirm`).fill(user.email)
    await confirm(page, `Delete user ${user.name}`, 'Delete the user')
    await waitForHeading(page, 'Users')
    expect((await d.t.admin('GET', `${IDENTITY}/user/${id}`)).status).toBe(404)
    expect(complaints).toEqual([])
  })

  test('creates a user with a role, and finds it', async () => {
    await using opened = await c.open('/console/users')
    const { page, complaints } = opened
    await page.getByRole('button', { name: 'New user' }).click()
    const form = dialog(page, 'New user')
    await form.getByLabel('E-mail').fill('nina@example.test')
    await form.getByLabel('Name', { exact: true }).fill('Nina New')
    await takePicture(page, 'user-new')
    await form.getByRole('button', { name: 'Create the user' }).click()
    await waitForHeading(page, 'Nina New')
    await page.getByLabel('Name', { exact: true }).fill('Nina Newer')
    await page.getByRole('button', { name: 'Save' }).click()
    await waitForHeading(page, 'Nina Newer')
    await follow(page, 'users')
    await page.getByRole('columnheader', { name: 'Roles' }).waitFor()
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByLabel('Roles', { exact: true }).uncheck()
    await page.getByRole('columnheader', { name: 'Roles' }).waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
  })

  test('changes what a role may in the matrix, after reading what changes and who has it', async () => {
    const role = await created(`${IDENTITY}/role`, { name: 'support', permissions: ['user:find-all'] })
    await d.call('PATCH', `${IDENTITY}/user/${await c.addUser({ email: 's@example.test', name: 'Sam Support' })}`, {
      roles: [role],
    })
    await using opened = await c.open('/console/roles')
    const { page, complaints } = opened
    await waitForHeading(page, 'Roles')
    await page.getByLabel('Part of a permission').fill('user:')
    await page.getByLabel('support: user:find-one').check()
    await page.getByLabel('support: user:find-all').uncheck()
    await expect.poll(() => page.getByLabel('administrator: user:find-one').isDisabled()).toBe(true)
    await takePicture(page, 'roles-draft')
    await page.getByRole('button', { name: 'Review the changes' }).click()
    const review = dialog(page, 'Review the changes')
    await review.getByText('+ user:find-one').waitFor()
    await review.getByText('− user:find-all').waitFor()
    await takePicture(page, 'roles-review')
    await review.getByRole('button', { name: 'Save the changes' }).click()
    await review.waitFor({ state: 'detached' })
    const { body } = await d.call('GET', `${IDENTITY}/role/${role}`)
    expect(body.data.permissions).toEqual(['user:find-one'])
    await page.getByRole('button', { name: 'support', exact: true }).click()
    await dialog(page, 'support').getByRole('link', { name: 'Sam Support' }).waitFor()
    await takePicture(page, 'roles-holders')
    expect(complaints).toEqual([])
  })

  test('is warned when it takes a permission from itself', async () => {
    const permissions = ['role:*', 'permission:find-all', 'user:find-one', 'contract:find-all']
    await created(`${IDENTITY}/role`, { name: 'keeper', permissions })
    const keeper = { email: 'keeper@example.test', name: 'Kim Keeper' }
    await c.addUser(keeper, 'keeper')
    await using opened = await c.open('/console/roles', keeper)
    const { page } = opened
    await page.getByLabel('Part of a permission').fill('contract:')
    await page.getByLabel('keeper: contract:find-all').uncheck()
    await page.getByRole('button', { name: 'Review the changes' }).click()
    const review = dialog(page, 'Review the changes')
    await review.getByText('You lose these permissions yourself').waitFor()
    // Screens that the user may not see are not offered, and a direct link names the permission.
    expect(await page.getByRole('link', { name: 'Accounts' }).count()).toBe(0)
    await page.goto('/console/accounts')
    await page.getByText('account:find-all').waitFor()
  })

  test('registers an app, tries its consent, and changes where it returns to', async () => {
    await using opened = await c.open('/console/apps/new')
    const { page, complaints } = opened
    await page.getByRole('textbox', { name: 'Name' }).fill('Ledger')
    const next = page.getByRole('button', { name: 'Next' })
    await next.click()
    const redirects = page.getByRole('textbox', { name: 'Redirect URIs' })
    await redirects.fill('https://ledger.example/back http://ledger.example/*')
    await page.getByText('no wildcard').waitFor()
    await expect.poll(() => next.isDisabled()).toBe(true)
    await redirects.fill('https://ledger.example/back http://127.0.0.1:4711/back')
    await page.getByText('for development alone').waitFor()
    await takePicture(page, 'app-new-redirects')
    await next.click()
    await page.getByRole('checkbox', { name: 'refresh_token' }).waitFor()
    await takePicture(page, 'app-new-scopes')
    await next.click()
    await page.getByText('authorization_code, refresh_token').waitFor()
    await page.getByRole('button', { name: 'Register the app' }).click()
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByLabel('I have stored it').check()
    await page.getByRole('button', { name: 'Done' }).click()
    await waitForHeading(page, 'Ledger')
    await page.getByText('Authlib').click()
    await page.getByText('authorize_redirect("https://ledger.example/back")').waitFor()
    await page.getByRole('tab', { name: 'Secrets' }).click()
    await page.getByRole('button', { name: 'Revoke the secret' }).click()
    const revoke = dialog(page, 'Revoke secret')
    await revoke.getByText('It is the only valid secret').waitFor()
    await takePicture(page, 'app-secrets')
    await revoke.getByRole('button', { name: 'Revoke the secret' }).click()
    await page.getByText('No secret is valid').waitFor()
    await page.getByRole('tab', { name: 'Consent preview' }).click()
    await page.getByText('See your e-mail address').waitFor()
    await page.getByRole('tab', { name: 'Settings' }).click()
    await page.getByLabel('Redirect URIs', { exact: true }).fill('https://ledger.example/next')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('tab', { name: 'Audit log' }).click()
    await page.getByText('oauth-client.update').waitFor()
    expect(complaints).toEqual([])
  })

  test('makes an account, invites a user, sets a limit, and deletes it', async () => {
    await using opened = await c.open('/console/accounts')
    const { page, complaints } = opened
    await page.getByRole('button', { name: 'New account' }).click()
    await dialog(page, 'New account').getByLabel('Name').fill('Acme')
    await dialog(page, 'New account').getByRole('button', { name: 'Create the account' }).click()
    await waitForHeading(page, 'Acme')
    await page.getByRole('button', { name: 'Add a user' }).click()
    const add = dialog(page, 'Add a user')
    await add.getByLabel('E-mail').fill(OPERATOR.email)
    await add.getByRole('button', { name: 'Add a user' }).click()
    await page.getByRole('link', { name: OPERATOR.name }).waitFor()
    await page.getByRole('tab', { name: 'Invitations' }).click()
    await page.getByRole('button', { name: 'Invite a user' }).click()
    await dialog(page, 'Invite a user').getByLabel('E-mail').fill('guest@example.test')
    await dialog(page, 'Invite a user').getByRole('button', { name: 'Send the invitation' }).click()
    await page.getByRole('cell', { name: 'guest@example.test' }).waitFor()
    await page.getByRole('tab', { name: 'Limits' }).click()
    await page.getByRole('textbox', { name: 'Webhooks' }).fill('7')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('0 of 7').waitFor()
    await page.getByRole('button', { name: 'Delete the account' }).click()
    await dialog(page, 'Delete account Acme').getByLabel('Type Acme to confirm').fill('Acme')
    await confirm(page, 'Delete account Acme', 'Delete the account')
    await waitForHeading(page, 'Accounts')
    expect(complaints).toEqual([])
  })

  test('ends the consent of a user to an app', async () => {
    const user = await c.addUser({ email: 'consents@example.test', name: 'Carla Consents' })
    await addConsent(user, await addApp())
    await using opened = await c.open(`/console/users/${user}?tab=apps`)
    const { page, complaints } = opened
    await page.getByRole('row').getByRole('button', { name: 'Revoke' }).click()
    await dialog(page, 'Revoke the access of Partner').getByText('Partner loses').waitFor()
    await confirm(page, 'Revoke the access of Partner', 'Revoke')
    await page.getByText('Nobody allows an app anything.').waitFor()
    expect((await d.call('GET', `/api/v3/oauth/grant?filters=user|eq|${user}`)).body.data).toEqual([])
    expect(complaints).toEqual([])
  })

  test('disconnects a user from a provider', async () => {
    const user = await c.addUser({ email: 'connected@example.test', name: 'Connie Connected' })
    await addIdentity(user)
    await using opened = await c.open(`/console/users/${user}?tab=identities`)
    const { page, complaints } = opened
    await page.getByRole('row').getByRole('button', { name: 'Disconnect' }).click()
    await dialog(page, 'Disconnect google').getByRole('button', { name: 'Disconnect' }).click()
    await page.getByText('No provider is connected.').waitFor()
    expect((await d.call('GET', `${IDENTITY}/user/${user}/identity`)).body.data).toEqual([])
    expect(complaints).toEqual([])
  })

  test('makes an API key that is shown once, asks before it is lost, and revokes it', async () => {
    await using opened = await c.open('/console/users')
    const { page, complaints } = opened
    await page.getByRole('link', { name: 'API keys', exact: true }).click()
    await page.getByRole('button', { name: 'New API key' }).click()
    const form = dialog(page, 'New API key')
    await form.getByLabel('Name').fill('nightly')
    for (const permission of ['contract:find-all', 'api-key:create']) {
      await form.getByLabel('Permissions').fill(permission)
      await form.getByLabel('Permissions').press('Enter')
    }
    await form.getByLabel('Name').click()
    await form.getByRole('button', { name: 'Create the key' }).click()
    await page.getByTestId('secret').waitFor()
    await page.goBack()
    await dialog(page, 'Leave without saving?').getByRole('button', { name: 'Stay' }).click()
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    const key = await page.getByTestId('secret').innerText()
    await page.getByLabel('I have stored it').check()
    await page.getByRole('button', { name: 'Done' }).click()
    const asKey = () => d.t.callAs(key)('GET', '/api/v3/contract/contract')
    expect((await asKey()).status).toBe(200)
    const child = { name: 'child', permissions: ['contract:find-all'] }
    expect((await d.t.callAs(key)('POST', '/api/v3/identity/api-key', child)).status).toBe(201)
    const row = page.getByRole('row').filter({ hasText: 'nightly' })
    await row.getByRole('button', { name: 'Revoke' }).click()
    await dialog(page, 'Revoke nightly').getByText('The key child was created with it and stays valid.').waitFor()
    await dialog(page, 'Revoke nightly').getByRole('button', { name: 'Revoke' }).click()
    await row.waitFor({ state: 'detached' })
    expect((await asKey()).status).toBe(401)
    expect(complaints).toEqual([])
  })

  test('tests a handshake, and reads an entry of the audit log of it', async () => {
    await using opened = await c.open('/console/handshake')
    const { page, complaints } = opened
    await page.getByRole('button', { name: 'Start a handshake' }).click()
    await page.getByText('The app gets this token.').waitFor()
    await page.getByRole('cell', { name: 'https://shop.example.test', exact: true }).last().waitFor()
    await follow(page, 'audit?action=sso.handshake')
    await page.getByRole('button', { name: 'sso.handshake' }).first().click()
    await dialog(page, 'sso.handshake').getByRole('cell', { name: 'https://shop.example.test' }).waitFor()
    await page.keyboard.press('Escape')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      (async () => {
        await page.getByRole('button', { name: 'Export' }).click()
        await page.getByRole('menuitem', { name: 'NDJSON' }).click()
      })(),
    ])
    expect(download.suggestedFilename()).toBe('audit-log.ndjson')
    expect(complaints).toEqual([])
  })
})

/** Fills what the screens show, and returns the paths of the screens with a text of each. */
async function fillScreens(): Promise<Screen[]> {
  const account = await created(`${IDENTITY}/account`, { name: 'Northwind' })
  await d.call('POST', `${IDENTITY}/account/${account}/member`, { user: operator })
  await d.call('POST', `${IDENTITY}/account/${account}/invitation`, { email: 'invited@example.test' })
  await d.makeWebhook({ account: account as never })
  await d.call('POST', '/api/v3/contract/contract', { account, name: 'Lease' })
  for (const name of ['Ada Lovelace', 'Grace Hopper', 'Alan Turing', 'Edsger Dijkstra'])
    await c.addUser({ email: `${name.toLowerCase().replace(' ', '.')}@example.test`, name })
  const app = await addApp()
  const { pool } = d.t.database
  const now = new Date(d.t.clock.now())
  await pool.query(
    `insert into audit_log (document_id, action, outcome, "user", detail, created_at)
     values (gen_random_uuid(), 'oauth-decision.create', 'success', $1, $2, $3)`,
    [operator, { decision: 'deny', client: app }, now],
  )
  await addConsent(operator, app)
  await addIdentity(operator)
  await pool.query(
    `insert into audit_log (document_id, action, outcome, detail, count, created_at)
     select gen_random_uuid(), action, outcome, detail::jsonb, count, $1 from (values
       ('login.oauth-start', 'success', '{"provider": "google"}', 48),
       ('login.oauth', 'success', '{"provider": "google"}', 41),
       ('login.oauth', 'failure', '{"provider": "google", "reason": "denied"}', 5),
       ('login.oauth', 'failure', '{"provider": "google", "reason": "state_expired"}', 2),
       ('sso.exchange', 'success', '{"audience": "https://shop.example.test"}', 310),
       ('sso.exchange', 'failure', '{"audience": "https://shop.example.test", "reason": "replayed"}', 12),
       ('sso.exchange', 'failure', '{"reason": "signature"}', 3)) x (action, outcome, detail, count)`,
    [now],
  )
  return [
    ['users', 'Grace Hopper'],
    [`users/${operator}`, 'User id'],
    [`users/${operator}?tab=access`, 'everywhere'],
    [`users/${operator}?tab=sessions`, 'this session'],
    [`users/${operator}?tab=sign-ins`, 'Success'],
    [`users/${operator}?tab=identities`, 'google'],
    [`users/${operator}?tab=apps`, 'Partner'],
    [`users/${operator}?tab=provisioning`, 'There is no provisioning target.'],
    ['accounts', 'Northwind'],
    [`accounts/${account}`, OPERATOR.name],
    [`accounts/${account}?tab=invitations`, 'invited@example.test'],
    [`accounts/${account}?tab=limits`, '1 of'],
    [`accounts/${account}?tab=webhooks`, 'Active'],
    [`accounts/${account}?tab=events`, 'contract.create'],
    ['roles', 'administrator'],
    ['sessions', OPERATOR.name],
    ['keys', 'test'],
    ['apps', 'Partner'],
    [`apps/${app}`, 'Endpoints'],
    [`apps/${app}?tab=settings`, 'Our own app'],
    [`apps/${app}?tab=secrets`, 'Only a hash of a secret is stored'],
    [`apps/${app}?tab=preview`, 'See webhooks and deliveries'],
    [`apps/${app}?tab=consents`, OPERATOR.name],
    ['consents', 'Refused'],
    ['providers', 'Google'],
    ['handshake', 'replayed'],
    ['audit', 'contract.create'],
  ]
}

describe('the screens', () => {
  test('have no accessibility fault, light and dark, and fit a phone', async () => {
    const screens = await fillScreens()
    await using opened = await c.open('/console/health')
    const { page, complaints } = opened
    await waitForHeading(page, 'Health')
    await expectAccessibleScreens(page, screens)
    expect(complaints).toEqual([])
  })
})
