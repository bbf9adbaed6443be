import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { DEVICE_GRANT } from '../../src/oauth/client/client.store.ts'
import { startExample, startOauthExample } from '../harness/browser/oauth-example.ts'
import { openBrowser, readForm } from '../harness/browser/oauth-service.ts'
import { checkOpenSignIns, checkTwoTabs } from '../harness/browser/two-tabs.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

const example = await openForFile(startOauthExample())

test('a user signs in at the example app, and the app knows who it is', async () => {
  const { fixture, origin } = example
  const [user, browser] = [await fixture.user(), openBrowser()]
  const start = await browser.visit(`${origin}/sign-in`)
  const end = await fixture.walk(browser, start.headers.location ?? '', { user })
  await browser.visit(end.location ?? '')
  expect((await browser.visit(`${origin}/`)).body).toContain(`Signed in as ${user.email}`)
})

test('the example app reads the contracts of the user who signed in, if the user lets it', async () => {
  const { fixture, origin } = example
  const [user, browser] = [await fixture.user(), openBrowser()]
  const { admin } = fixture.app
  const account = (await admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  await admin('POST', `/api/v3/identity/account/${account}/member`, { user: user.userId })
  await admin('POST', '/api/v3/contract/contract', { account, name: 'Lease' })
  for (const [without, shown] of [
    [[], '1 contracts'],
    [['contract:read'], 'no contracts (403)'],
  ] as const) {
    const start = await browser.visit(`${origin}/sign-in`)
    // The clock of the service is that of the machine, like the provider's.
    fixture.app.clock.set(Date.now())
    const end = await fixture.walk(browser, start.headers.location ?? '', { user, without })
    await browser.visit(end.location ?? '')
    expect((await browser.visit(`${origin}/`)).body).toContain(`Signed in as ${user.email}, ${shown}`)
    await fixture.app.database.pool.query('update oauth_grant set revoked_at = now() where "user" = $1', [user.userId])
  }
})

test('a user signs out at the example app and at the service, and comes back to the app', async () => {
  const { fixture, origin } = example
  const [user, browser] = [await fixture.user(), openBrowser()]
  const start = await browser.visit(`${origin}/sign-in`)
  await browser.visit((await fixture.walk(browser, start.headers.location ?? '', { user })).location ?? '')
  expect((await browser.visit(`${origin}/`)).body).toMatch(/Hello, User \d+\./)
  const left = await browser.visit(`${origin}/sign-out`, { method: 'POST', form: {} })
  const page = await browser.visit(left.headers.location ?? '')
  const action = /<form[^>]* action="([^"]+)"/.exec(page.body)?.[1] ?? ''
  const done = await browser.visit(new URL(action, page.url).href, {
    method: 'POST',
    form: { ...readForm(page.body, action), logout: 'yes' },
  })
  expect(done.headers.location).toBe(`${origin}/`)
  expect((await browser.visit(`${origin}/`)).body).toContain('href="/sign-in"')
  const again = await browser.visit(`${origin}/sign-in`)
  expect((await fixture.walk(browser, again.headers.location ?? '')).body).toContain('action="/auth/sign-in"')
})

test('two tabs that begin to sign in at the example app both end signed in, whichever is first', async () => {
  const { fixture, origin } = example
  const user = await fixture.user()
  await checkTwoTabs(origin, async (browser, url) => (await fixture.walk(browser, url, { user })).location)
})

test('a browser keeps at most 16 sign-ins at the example app that it has not finished', () =>
  checkOpenSignIns(example.origin))

test('a user who refuses is not signed in at the example app', async () => {
  const { fixture, origin } = example
  const [user, browser] = [await fixture.user(), openBrowser()]
  const start = await browser.visit(`${origin}/sign-in`)
  const end = await fixture.walk(browser, start.headers.location ?? '', { user, decision: 'deny' })
  expect((await browser.visit(end.location ?? '')).body).toBe('Not signed in: access_denied')
})

test('an error that somebody puts into the address is shown as text, and a browser has another cookie after a sign-in', async () => {
  const { fixture, origin } = example
  const [user, browser] = [await fixture.user(), openBrowser()]
  const start = await browser.visit(`${origin}/sign-in`)
  const state = new URL(start.headers.location ?? '').searchParams.get('state') ?? ''
  const query = new URLSearchParams({
    error: '<script>alert(1)</script>',
    state,
    iss: `${fixture.baseUrl}/api/v3/oauth`,
  })
  const shown = await browser.visit(`${origin}/callback?${query}`)
  expect(shown.body).toContain('<script>')
  expect(shown.headers).toMatchObject({ 'content-type': 'text/plain', 'x-content-type-options': 'nosniff' })

  const cookies = browser.cookiesOf(origin).set('app', 'known-before')
  const begun = await browser.visit(`${origin}/sign-in`)
  const end = await fixture.walk(browser, begun.headers.location ?? '', { user })
  await browser.visit(end.location ?? '')
  expect(cookies.get('app')).toMatch(/^[0-9a-f-]{36}$/)
})

test('a user signs in at the example command line by a code', async () => {
  const { fixture } = example
  const [user, browser] = [await fixture.user(), openBrowser()]
  const client = await fixture.client({
    type: 'public',
    application_type: 'native',
    redirect_uris: [],
    grant_types: [DEVICE_GRANT, 'refresh_token'],
  })
  const command = startExample(fixture, 'oauth-device', { OAUTH_CLIENT_ID: client.id })
  try {
    const [, address = '', code = ''] = await command.waitForOutput(/Open (\S+) and enter (\S+)/)
    const page = await browser.visit(address)
    const confirm = await browser.visit(address, {
      method: 'POST',
      form: { ...readForm(page.body, address), user_code: code },
    })
    const next = await browser.visit(address, { method: 'POST', form: readForm(confirm.body, address) })
    const done = await fixture.walk(browser, new URL(next.headers.location ?? '', address).href, { user })
    expect(done.body).toContain('Device connected')
    await command.waitForOutput(new RegExp(`Signed in as ${user.email}`))
  } finally {
    await command.kill()
  }
})

test('the example app has at most 90 lines, as its README says', async () => {
  const text = await readFile(new URL('../../examples/oauth-client/main.ts', import.meta.url), 'utf8')
  expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(90)
  expect(await readFile(new URL('../../examples/oauth-client/README.md', import.meta.url), 'utf8')).toContain(
    '90 lines',
  )
})
