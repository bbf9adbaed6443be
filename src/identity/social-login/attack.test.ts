import { beforeEach, describe, expect, test } from 'vitest'
import type { TestAnswer } from '../../../test/harness/app/app.ts'
import {
  createSocialApp,
  MOBILE_APP,
  pathOf,
  redirectUrlOf,
  type TestBrowser,
  WEB_APP,
} from '../../../test/harness/app/social-app.ts'
import { readMails } from '../../../test/harness/browser/mailbox.ts'
import type { BrowserStep } from '../../../test/harness/fakes/provider/fake-provider.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

let users = 0

const t = await openForFile(createSocialApp({ env: { SIGN_UP: 'open' } }))
// Equal refusals of a minute are one audit entry.
beforeEach(() => t.app.clock.advance(60_000))

const someone = () => {
  users += 1
  return `70${users}`
}
const json = 'application/json'

const flowsOf = ({ cookies }: TestBrowser) => [...cookies].filter(([name]) => name.startsWith('signalbox_flow_'))

/** Newest audit entry of callback-redirect. */
async function findReason(): Promise<string> {
  const { body } = await t.app.admin('GET', '/api/v3/audit/log?filters=action|eq|login.oauth&page_size=1')
  return body.data[0].detail.reason
}

/** Expects the one answer to every failure that the user cannot mend, and its reason in the audit log. */
async function expectRefused(
  answer: TestAnswer,
  reason: string | RegExp,
  detail = 'The sign-in was not completed. Start it again.',
): Promise<void> {
  expect([answer.status, answer.body.code, answer.body.detail]).toEqual([401, 'social_login_failed', detail])
  expect(answer.headers['set-cookie']).toBeUndefined()
  expect(await findReason()).toMatch(reason)
}

const countUsers = async () =>
  (await t.app.admin('GET', '/api/v3/identity/user?count=true&page_size=1')).body.pagination.total

const createUser = async (body: object) => (await t.app.admin('POST', '/api/v3/identity/user', body)).body.data

/** Makes an address verified, as a link in a mail does. */
const verify = (id: string) =>
  t.app.database.db
    .updateTable('user')
    .set({ email_verified_at: new Date(t.app.clock.now()) })
    .where('document_id', '=', id)
    .execute()

/** A callback-redirect URL with its parameters changed. */
function change(url: string, changes: Record<string, string | null>): string {
  const parsed = new URL(url, 'https://service.test')
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) parsed.searchParams.delete(name)
    else parsed.searchParams.set(name, value)
  }
  return parsed.href
}

async function reach(provider: 'google' | 'github' | 'company' = 'google', query = {}) {
  const browser = t.browser()
  const step = await t.reachCallback(browser, provider, query)
  return { browser, url: redirectUrlOf(step), step }
}

const stateOf = (url: string) => new URL(url, 'https://service.test').searchParams.get('state') ?? ''

describe('the state', () => {
  test.each([
    ['is missing', null, 'state_missing'],
    ['is empty', '', 'state_missing'],
    ['is random text', 'x'.repeat(100), 'state_forged'],
    [
      'has the form of a state without a signature of ours',
      `${'a'.repeat(43)}.zzzzzz.${'b'.repeat(43)}`,
      'state_forged',
    ],
    ['is a session JWT', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl', 'state_forged'],
  ])('refuses a callback whose state %s', async (_, state, reason) => {
    const { browser, url } = await reach()
    await expectRefused(await browser.get(change(url, { state }), json), reason)
  })

  test.each([
    ['its random part', 0],
    ['its expiry', 1],
    ['its signature', 2],
  ])('refuses a state with a change in %s', async (_, part) => {
    const { browser, url } = await reach()
    const parts = stateOf(url).split('.')
    parts[part] = (parts[part] ?? '').replace(/./, (first) => (first === 'a' ? 'b' : 'a'))
    await expectRefused(await browser.get(change(url, { state: parts.join('.') }), json), 'state_forged')
  })

  test('refuses a state after 10 minutes, and takes it before', async () => {
    t.seat('google', { sub: someone() })
    const early = await reach()
    const late = await reach()
    t.app.clock.advance(599_000)
    expect((await early.browser.get(early.url, json)).status).toBe(200)
    t.app.clock.advance(2_000)
    await expectRefused(await late.browser.get(late.url, json), 'state_expired')
  })

  test('refuses a replayed callback', async () => {
    t.seat('google', { sub: someone() })
    const { browser, url } = await reach()
    expect((await browser.get(url, json)).status).toBe(200)
    await expectRefused(await browser.get(url, json), 'state_replayed')
  })

  test('lets one of several callbacks at the same time through', async () => {
    t.seat('google', { sub: someone() })
    const { browser, url } = await reach()
    const answers = await Promise.all(Array.from({ length: 6 }, () => browser.get(url, json)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401, 401])
  })

  test('is spent in every process', async () => {
    t.seat('google', { sub: someone() })
    const { browser, url } = await reach()
    await using other = await createSocialApp({ database: t.app.database, clock: t.app.clock })
    const elsewhere = other.browser()
    for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value)
    expect((await browser.get(url, json)).status).toBe(200)
    expect((await elsewhere.get(url, json)).status).toBe(401)
  })

  test('is not spent by the HEAD request of a link scanner', async () => {
    t.seat('google', { sub: someone() })
    const { browser, url } = await reach()
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const head = await t.app.app.server.inject({ method: 'HEAD', url, headers: { cookie } })
    expect([404, 405]).toContain(head.statusCode)
    expect((await browser.get(url, json)).status).toBe(200)
  })

  test('is stored as a hash, and the secrets of the flow are sealed', async () => {
    const { url, browser } = await reach()
    const rows = JSON.stringify(await t.app.database.db.selectFrom('login_flow').selectAll().execute())
    expect(rows).not.toContain(stateOf(url))
    expect(rows).not.toContain([...browser.cookies.values()][0])
    expect(rows).not.toMatch(/verifier|nonce/)
  })

  test('survives a rotation of SECRET_KEY that still lists the old key', async () => {
    t.seat('google', { sub: someone() })
    const { browser, url } = await reach()
    const secretKey = ['a-new-secret-key-of-at-least-32-bytes', 'test-secret-key-of-at-least-32-bytes']
    await using rotated = await createSocialApp({ database: t.app.database, clock: t.app.clock, secretKey })
    // The code is known to the first app's provider, so that the exchange fails only after the state was taken.
    const elsewhere = rotated.browser()
    for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value)
    t.app.clock.advance(1_000)
    await elsewhere.get(url, json)
    expect(await findReason()).toMatch(/^code_refused/)
  })
})

describe('mix-up', () => {
  test('refuses the state of one provider at the callback of another', async () => {
    const { browser, url } = await reach('google')
    await expectRefused(await browser.get(url.replace('/google/', '/github/'), json), 'state_forged')
  })

  test('refuses an answer in the name of another issuer, and does not send the code', async () => {
    t.fixture.fakes.company.fault = 'foreign iss'
    const { browser, url } = await reach('company')
    t.fixture.fakes.company.fault = undefined
    await expectRefused(await browser.get(url, json), /^issuer_mismatch/)
    expect(t.fixture.fakes.company.calls.at(-1)).toBe('/authorize')
  })

  test('refuses an answer without the issuer that the provider promises', async () => {
    const { browser, url } = await reach('company')
    await expectRefused(await browser.get(change(url, { iss: null }), json), /^issuer_mismatch: ISS_MISSING/)
  })

  test('refuses the code of another flow', async () => {
    t.seat('google', { sub: someone() })
    const [attacker, victim] = [await reach(), await reach()]
    const stolen = new URL(attacker.url, 'https://service.test').searchParams.get('code')
    await expectRefused(await victim.browser.get(change(victim.url, { code: stolen }), json), /^code_refused/)
  })

  test('refuses tokens in place of a code', async () => {
    const { browser, url } = await reach()
    const tokens = change(url, { code: null, access_token: 'stolen-token', refresh_token: 'r' })
    await expectRefused(await browser.get(tokens, json), /^callback_incomplete/)
  })
})

describe('login CSRF', () => {
  async function expectForeign(victim: TestBrowser) {
    const { url, browser: attacker } = await reach()
    await expectRefused(await victim.get(url, json), 'foreign_browser')
    expect((await victim.get(url.replace('/callback-redirect', '/callback'))).status).toBe(401)
    // Nothing was spent.
    expect((await attacker.get(url, json)).status).toBe(200)
  }

  test("refuses an attacker's callback in a browser that began nothing", async () => {
    t.seat('google', { sub: someone() })
    await expectForeign(t.browser())
  })

  test("refuses an attacker's callback in a browser that has a flow of its own", async () => {
    t.seat('google', { sub: someone() })
    const victim = t.browser()
    await t.reachCallback(victim, 'google')
    await expectForeign(victim)
  })

  test('gives no session cookie to a browser for a flow that began as JSON', async () => {
    t.seat('google', { sub: someone() })
    const attacker = t.browser()
    const started = await attacker.get(`${pathOf('google')}?redirect_url=${encodeURIComponent(WEB_APP)}`, json)
    const step = await t.fixture.fakes.google.authorize(started.body.data.redirectUrl)
    const answer = await t.browser().get(redirectUrlOf(step))
    expect([answer.status, answer.headers.location, answer.headers['set-cookie']]).toEqual([302, WEB_APP, undefined])
  })

  test('lets two tabs of one browser finish', async () => {
    t.seat('google', { sub: someone() })
    const browser = t.browser()
    const [callback, other] = [await t.reachCallback(browser, 'google'), await t.reachCallback(browser, 'github')]
    expect((await browser.get(redirectUrlOf(callback), json)).status).toBe(200)
    t.seat('github', { sub: someone() })
    expect((await browser.get(redirectUrlOf(other), json)).status).toBe(200)
  })

  test('lets two tabs finish that begin at the same moment, in both orders', async () => {
    for (const order of [(tabs: BrowserStep[]) => tabs, (tabs: BrowserStep[]) => tabs.toReversed()]) {
      const browser = t.browser()
      t.seat('google', { sub: someone() })
      const tabs = await Promise.all([t.reachCallback(browser, 'google'), t.reachCallback(browser, 'google')])
      expect(flowsOf(browser)).toHaveLength(2)
      for (const tab of order(tabs)) expect((await browser.get(redirectUrlOf(tab), json)).status).toBe(200)
      // The button back.
      const back = await browser.get(redirectUrlOf(tabs[0] as BrowserStep), json)
      expect([back.status, back.body.errors[0].code]).toEqual([401, 'used'])
    }
  })

  test('refuses a flow with the cookie of another flow, under whatever name', async () => {
    t.seat('google', { sub: someone() })
    const [{ browser: attacker, url: foreign }, { browser: victim, url }] = [await reach(), await reach()]
    const [[ownName = '', ownValue = ''] = []] = flowsOf(victim)
    const [[foreignName = ''] = []] = flowsOf(attacker)
    // The victim has a cookie of its own flow only.
    victim.cookies.set(foreignName, ownValue)
    await expectRefused(await victim.get(foreign, json), 'foreign_browser')
    victim.cookies.delete(ownName)
    await expectRefused(await victim.get(url, json), 'foreign_browser')
    victim.cookies.set(ownName, ownValue)
    expect((await victim.get(url, json)).status).toBe(200)
    expect((await attacker.get(foreign, json)).status).toBe(200)
  })
})

describe('open redirect', () => {
  test('ignores a redirect_url at the callback', async () => {
    t.seat('google', { sub: someone() })
    const { browser, url } = await reach()
    const answer = await browser.get(change(url, { redirect_url: 'https://evil.example/' }), json)
    expect(answer.body.data.redirect_url).toBe(WEB_APP)
  })

  test('leads nobody to the redirect_url of a flow that another browser began', async () => {
    const { step } = await reach('google', { redirect_url: MOBILE_APP })
    const answer = await t.browser().get(step.url)
    expect([answer.status, answer.headers.location]).toEqual([401, undefined])
    expect(answer.body).not.toContain('com.example.app')
  })
})

describe('taking over a user by an address', () => {
  test('joins an existing user when both sides have verified the address, in any case', async () => {
    const sub = someone()
    const user = await createUser({ email: `Mixed.Case.${sub}@Example.com` })
    await verify(user.document_id)
    t.seat('google', { sub, email: `mixed.case.${sub}@example.com` })
    const { data } = (await t.signIn(t.browser(), 'google')).body
    expect([data.user.document_id, data.is_new_user]).toEqual([user.document_id, false])
  })

  test('joins nobody who has not verified the address here (pre-hijacking)', async () => {
    const sub = someone()
    const user = await createUser({ email: `${sub}@example.com`, password: 'the attacker knows this' })
    t.seat('google', { sub })
    const answer = await t.signIn(t.browser(), 'google')
    expect([answer.status, answer.body.code]).toEqual([409, 'identity_not_linked'])
    expect(await findReason()).toBe('owner_unverified')
    const rows = await t.app.database.db.selectFrom('identity').where('user', '=', user.document_id).execute()
    expect(rows).toEqual([])
  })

  test('leaves nothing to whoever signed up with the address before its owner came', async () => {
    const email = `${someone()}@example.com`
    const asked = await t.app.anonymous('POST', '/api/v3/auth/sign-up', { email })
    expect(asked.status).toBe(202)
    const [mail] = await readMails(t.app, email)
    t.seat('google', { sub: someone(), email })
    expect((await t.signIn(t.browser(), 'google')).body.data.is_new_user).toBe(true)
    const password = 'the attacker knows this'
    const late = await t.app.anonymous('POST', '/api/v3/auth/sign-up/confirm', { token: mail?.token, password })
    expect([late.status, late.body.code]).toEqual([410, 'link_invalid'])
    expect((await t.app.anonymous('POST', '/api/v3/auth/login/local', { email, password })).status).toBe(401)
  })

  test('joins and registers nobody by an address that the provider has not verified, and answers both alike', async () => {
    const sub = someone()
    const user = await createUser({ email: `${sub}@example.com` })
    await verify(user.document_id)
    const before = await countUsers()
    const answers: TestAnswer[] = []
    for (const email of [`${sub}@example.com`, `nobody-${sub}@example.com`]) {
      t.seat('google', { sub: someone(), email, isEmailVerified: false })
      answers.push(await t.signIn(t.browser(), 'google'))
    }
    const shown = answers.map(({ status, body: { request_id: _id, ...body } }) => ({ status, body }))
    expect(shown[0]).toEqual(shown[1])
    expect(shown[0]).toMatchObject({ status: 403, body: { code: 'email_not_verified' } })
    expect(await countUsers()).toBe(before)
  })

  test('believes no address of Microsoft without xms_edov', async () => {
    const sub = someone()
    const user = await createUser({ email: `ceo-${sub}@example.com` })
    await verify(user.document_id)
    t.seat('microsoft', { sub, email: `ceo-${sub}@example.com`, isEmailVerified: false })
    expect((await t.signIn(t.browser(), 'microsoft')).body.code).toBe('email_not_verified')
  })

  test('believes no public address of a GitHub profile', async () => {
    const user = await createUser({ email: 'public@victim.example' })
    await verify(user.document_id)
    t.seat('github', { sub: someone(), email: null })
    expect((await t.signIn(t.browser(), 'github')).body.code).toBe('email_required')
  })

  test('moves no known identity to the user of an address that it takes later', async () => {
    const sub = someone()
    t.seat('google', { sub })
    const mine = (await t.signIn(t.browser(), 'google')).body.data.user
    const victim = await createUser({ email: `victim-${sub}@example.com` })
    await verify(victim.document_id)
    t.seat('google', { sub, email: `victim-${sub}@example.com` })
    const { user } = (await t.signIn(t.browser(), 'google')).body.data
    expect([user.document_id, user.email]).toEqual([mine.document_id, mine.email])
  })

  test('registers nobody without an address', async () => {
    t.seat('facebook', { sub: someone(), email: null })
    const answer = await t.signIn(t.browser(), 'facebook')
    expect([answer.status, answer.body.code]).toEqual([403, 'email_required'])
  })
})

const DISABLED = 'The sign-in was not completed: the user is disabled. Ask an administrator of this service.'

describe('a disabled user', () => {
  test('is told so, once the identity is proven', async () => {
    const sub = someone()
    t.seat('google', { sub })
    const { user } = (await t.signIn(t.browser(), 'google')).body.data
    await t.app.admin('POST', `/api/v3/identity/user/${user.document_id}/disable`)
    await expectRefused(await t.signIn(t.browser(), 'google'), 'disabled', DISABLED)
  })

  test('gets no new identity by its address', async () => {
    const sub = someone()
    const user = await createUser({ email: `${sub}@example.com` })
    await verify(user.document_id)
    await t.app.admin('POST', `/api/v3/identity/user/${user.document_id}/disable`)
    t.seat('google', { sub })
    await expectRefused(await t.signIn(t.browser(), 'google'), 'disabled', DISABLED)
  })
})

describe('a provider that fails', () => {
  test.each([
    ['token endpoint down', /^provider_fault/],
    ['wrong nonce', /^id_token_invalid/],
    ['unknown key', /^id_token_invalid/],
    ['unsigned token', /^id_token_invalid/],
    ['code refused', /^code_refused/],
  ] as const)('with %s signs nobody in and registers nobody', async (fault, reason) => {
    const before = await countUsers()
    t.seat('google', { sub: someone() })
    const { browser, url } = await reach()
    t.fixture.fakes.google.fault = fault
    await expectRefused(await browser.get(url, json), reason)
    t.fixture.fakes.google.fault = undefined
    expect(await countUsers()).toBe(before)
  })
})

describe('what a failure tells', () => {
  test('is a page for a browser, with the way back of its own flow only', async () => {
    t.seat('facebook', { sub: someone(), email: null })
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'facebook')
    const page = await browser.get(redirectUrlOf(step))
    expect([page.status, page.headers['content-type']]).toEqual([403, 'text/html; charset=utf-8'])
    expect(page.body).toContain(`href="${WEB_APP}"`)
    expect(page.headers['content-security-policy']).toContain("default-src 'none'")
  })

  test.each([
    ['disabled', 'Your account is disabled', false],
    ['expired', 'The sign-in took too long. Start it again.', true],
    ['used', 'This sign-in is finished already.', true],
    ['other_browser', 'was started in another browser', false],
  ])('names the cause %s, and leads back only where a new try helps', async (cause, words, hasWay) => {
    const sub = someone()
    t.seat('google', { sub })
    const browser = t.browser()
    if (cause === 'disabled') {
      const { user } = (await t.signIn(t.browser(), 'google')).body.data
      await t.app.admin('POST', `/api/v3/identity/user/${user.document_id}/disable`)
    }
    const url = redirectUrlOf(await t.reachCallback(browser, 'google'))
    if (cause === 'used') await browser.get(url)
    if (cause === 'expired') t.app.clock.advance(3_600_000)
    const asked = cause === 'other_browser' ? t.browser() : browser
    const page = await asked.get(url)
    expect([page.status, page.body.includes(words)]).toEqual([401, true])
    expect(page.body).toMatch(/Reference <code>[^<]{8,}<\/code>/)
    expect(page.body.includes(`href="${WEB_APP}"`)).toBe(hasWay)
  })

  test('leaves the error of a provider out of the page', async () => {
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'google')
    const url = new URL(step.url)
    url.searchParams.delete('code')
    url.searchParams.set('error', '<b>server_error</b>')
    url.searchParams.set('error_description', 'Call this number')
    const page = await browser.get(url.href)
    expect(page.status).toBe(401)
    expect(page.body).not.toMatch(/server_error|Call this number/)
  })
})
