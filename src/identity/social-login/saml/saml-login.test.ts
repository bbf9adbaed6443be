import { beforeEach, describe, expect, test } from 'vitest'
import type { TestAnswer } from '../../../../test/harness/app/app.ts'
import { createConnectionApp } from '../../../../test/harness/app/connection-app.ts'
import { localOf, MOBILE_APP, pathOf, type TestBrowser, WEB_APP } from '../../../../test/harness/app/social-app.ts'
import { type AnswerChange, buildFakeIdp } from '../../../../test/harness/fakes/saml-idp/fake-idp.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../../base/id.ts'

let account: AccountId
let connection: string
let people = 0

const t = await openForFile(createConnectionApp())
const idp = await buildFakeIdp({ origin: 'https://idp.corp.example', now: () => new Date(t.app.clock.now()) })

const domainOf = () => `saml${people}.example`
const samlOf = (change: object = {}) => ({
  idp_entity_id: idp.entityId,
  sso_url: idp.ssoUrl,
  certificates: [idp.key.certificate],
  ...change,
})
const connect = async (owner: AccountId, saml: object = samlOf()) => {
  const body = { kind: 'saml', name: 'Corp', is_jit: true, saml }
  const made = await t.app.admin('POST', `/api/v3/identity/account/${owner}/connection`, body)
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  return made.body.data.document_id as string
}

beforeEach(async () => {
  t.app.clock.advance(60_000)
  people += 1
  account = await t.makeAccount()
  connection = await connect(account)
  await t.prove(account, connection, domainOf())
  idp.person = {
    nameId: `ada-${people}`,
    attributes: { email: `ada@${domainOf()}`, displayName: 'Ada', groups: 'staff' },
  }
})

const acsOf = (by = connection) => `/api/v3/auth/login/saml/${by}/acs`

/** Starts in a browser. Returns the request that reached the provider. */
async function begin(browser: TestBrowser, query: Record<string, string> = {}, by = connection) {
  const started = await browser.get(`${pathOf(by)}?${new URLSearchParams({ redirect_url: WEB_APP, ...query })}`)
  expect(started.status, JSON.stringify(started.body)).toBe(302)
  return idp.readRequest(String(started.headers.location))
}

const post = (browser: TestBrowser, response: string, by = connection) =>
  browser.post(acsOf(by), { SAMLResponse: response })

/** Follows the redirect of the post through the bridge page. */
async function complete(browser: TestBrowser, posted: TestAnswer): Promise<TestAnswer> {
  const callback = localOf(String(posted.headers.location))
  const page = await browser.get(callback)
  expect(page.headers['content-type']).toMatch(/text\/html/)
  return browser.get(callback.replace('/callback', '/callback-redirect'), 'application/json')
}

async function signIn(change: AnswerChange = {}, browser = t.browser()): Promise<TestAnswer> {
  const request = await begin(browser)
  const posted = await post(browser, idp.answer(request, change))
  return posted.status === 303 ? complete(browser, posted) : posted
}

/** Expects that a post was refused for this reason, and told the user nothing of it. */
async function expectRefused(answer: TestAnswer, reason: string): Promise<void> {
  expect(answer.status).toBeGreaterThanOrEqual(400)
  expect(answer.headers.location).toBeUndefined()
  expect(answer.headers['content-type']).toMatch(/text\/html/)
  expect(JSON.stringify(answer.body)).not.toContain(reason)
  // Equal refusals are one entry.
  const { body } = await t.app.admin('GET', '/api/v3/audit/log?filters=action|eq|login.saml-response&page_size=100')
  const reasons = body.data.map(({ detail }: { detail: { reason?: string } }) => detail.reason ?? '')
  expect(reasons.filter((shown: string) => shown.includes(reason))).not.toEqual([])
}

describe('a sign-in by SAML', () => {
  test('asks the provider of the connection, and registers the person as a member of its account', async () => {
    const browser = t.browser()
    const request = await begin(browser)
    expect(request).toEqual({
      id: expect.stringMatching(/^_[A-Za-z0-9_-]{43}\./),
      issuer: `https://service.test/api/v3/auth/login/saml/${connection}/metadata`,
      acsUrl: `https://service.test${acsOf()}`,
      destination: idp.ssoUrl,
      issuedAt: new Date(t.app.clock.now()),
    })
    const posted = await post(browser, idp.answer(request))
    expect(posted.status).toBe(303)
    const answer = await complete(browser, posted)
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    expect(answer.body.data).toMatchObject({
      is_new_user: true,
      user: { email: `ada@${domainOf()}`, name: 'Ada' },
      account: { document_id: account },
    })
    const again = await signIn()
    expect(again.body.data.user.document_id).toBe(answer.body.data.user.document_id)
    expect(again.body.data.is_new_user).toBe(false)
  })

  test('cuts the name to what a name may have', async () => {
    idp.person.attributes = { email: `ada@${domainOf()}`, displayName: `Ada ${'a'.repeat(250)}` }
    const { user } = (await signIn()).body.data
    expect(user.name).toBe(`Ada ${'a'.repeat(196)}`)
  })

  test('gives the roles of its groups', async () => {
    const viewer = await t.findRole('account-viewer')
    const path = `/api/v3/identity/account/${account}/connection/${connection}`
    expect((await t.app.admin('PATCH', path, { group_roles: [{ group: 'staff', role: viewer }] })).status).toBe(200)
    const answer = await signIn()
    const members = await t.app.admin('GET', `/api/v3/identity/account/${account}/member`)
    const member = members.body.data.find(
      (candidate: { user: string }) => candidate.user === answer.body.data.user.document_id,
    )
    expect(JSON.stringify(member.roles)).toContain(viewer)
  })

  test('ends in a one-time code for a mobile app', async () => {
    const browser = t.browser()
    const request = await begin(browser, { redirect_url: MOBILE_APP })
    const posted = await post(browser, idp.answer(request))
    const ended = await browser.get(localOf(String(posted.headers.location)).replace('/callback', '/callback-redirect'))
    expect(String(ended.headers.location)).toMatch(/^com\.example\.app:/)
  })

  test('completes only in the browser that began it, with the code of its post', async () => {
    const [victim, attacker] = [t.browser(), t.browser()]
    // The attacker has its own response posted by the browser of the victim.
    const request = await begin(attacker)
    const posted = await post(victim, idp.answer(request))
    expect(posted.status).toBe(303)
    const callback = localOf(String(posted.headers.location)).replace('/callback', '/callback-redirect')
    expect((await victim.get(callback, 'application/json')).body.code).toBe('social_login_failed')
    // The victim signs in where the attacker began: the attacker has the state, and not the code.
    const other = await begin(attacker)
    expect((await post(victim, idp.answer(other))).status).toBe(303)
    const state = other.id.slice(1)
    for (const code of ['', 'x'.repeat(43)]) {
      const query = new URLSearchParams({ state, ...(code && { code }) })
      const stolen = await attacker.get(`${pathOf(connection, '/callback-redirect')}?${query}`, 'application/json')
      expect(stolen.body.code).toBe('social_login_failed')
    }
  })

  test('that no browser is bound to needs the code too', async () => {
    const started = await t.app.anonymous('GET', `${pathOf(connection)}?format=json&redirect_url=${WEB_APP}`)
    const request = idp.readRequest(started.body.data.redirectUrl ?? started.body.data.redirect_url)
    const posted = await post(t.browser(), idp.answer(request))
    expect(posted.status).toBe(303)
    const query = new URLSearchParams({ state: request.id.slice(1), code: 'x'.repeat(43) })
    const stolen = await t.browser().get(`${pathOf(connection, '/callback-redirect')}?${query}`, 'application/json')
    expect(stolen.body.code).toBe('social_login_failed')
  })

  test('keeps nothing readable of the person in the row of the sign-in', async () => {
    const browser = t.browser()
    await post(browser, idp.answer(await begin(browser)))
    const { rows } = await t.app.database.pool.query(
      'select posted_answer from login_flow where posted_answer is not null',
    )
    expect(rows.length).toBeGreaterThan(0)
    for (const { posted_answer: kept } of rows) expect(kept).toMatch(/^v1\.[0-9a-f]{8}\./)
  })
})

const alive = async (answer: TestAnswer) => (await t.callOf(answer)('GET', '/api/v3/auth/session')).status === 200

describe('a session by SAML', () => {
  test.each<[string, (path: string) => Promise<TestAnswer>]>([
    ['is disabled', (path) => t.app.admin('PATCH', path, { is_enabled: false })],
    ['has another provider', (path) => t.app.admin('PATCH', path, { saml: { idp_entity_id: 'https://new.example' } })],
    ['is deleted', (path) => t.app.admin('DELETE', path)],
  ])('ends when its connection %s', async (_what, end) => {
    const answer = await signIn()
    expect(await alive(answer)).toBe(true)
    expect((await end(`/api/v3/identity/account/${account}/connection/${connection}`)).status).toBe(200)
    expect(await alive(answer)).toBe(false)
    const refresh_token = answer.body.data.refresh_token
    const refreshed = await t.app.anonymous('POST', '/api/v3/auth/session/refresh', { refresh_token })
    expect(refreshed.status).toBe(401)
  })
})

describe('a response is refused', () => {
  test('that was posted before, at once or later, also to another process', async () => {
    const browser = t.browser()
    const response = idp.answer(await begin(browser))
    const answers = await Promise.all([1, 2, 3, 4].map(() => post(t.browser(), response)))
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1)
    await expectRefused(await post(browser, response), 'replayed')
    const done = answers.find(({ status }) => status === 303) as TestAnswer
    expect((await complete(browser, done)).status).toBe(200)
    await expectRefused(await post(browser, response), 'replayed')
  })

  test('and counts for its connection where it answers a sign-in', async () => {
    const path = `/api/v3/identity/account/${account}/connection/${connection}/activity`
    const read = async () => {
      const { refusals = [] } = (await t.app.admin('GET', path)).body.data.days[0] ?? {}
      return Object.fromEntries(refusals.map((item: { reason: string; count: number }) => [item.reason, item.count]))
    }
    expect(await read()).toEqual({})
    const browser = t.browser()
    const request = await begin(browser)
    const stranger = await buildFakeIdp({ origin: 'https://idp.corp.example', now: () => new Date(t.app.clock.now()) })
    await expectRefused(await post(browser, stranger.answer(request)), 'signature_invalid')
    await expectRefused(
      await post(browser, idp.answer(request, { facts: { audience: 'https://x.test' } })),
      'other_audience',
    )
    // Of these the sign-in is not looked for, or not found.
    await expectRefused(await post(browser, idp.answer(request, { response: { status: 'Responder' } })), 'denied')
    await expectRefused(await post(browser, idp.answer({ ...request, id: '_unknown' })), 'state')
    expect(await read()).toEqual({ answer_refused: 2 })
  })

  test('whose assertion id was used for another request, until it ends', async () => {
    const facts = { id: '_the_same' }
    expect((await signIn({ facts })).status).toBe(200)
    await expectRefused(await signIn({ facts }), 'replayed')
    t.app.clock.advance(361_000)
    expect((await t.app.app.maintenance.sweep()).samlAssertions).toBeGreaterThan(0)
    expect((await signIn({ facts })).status).toBe(200)
  })

  test('of another connection, account, or request', async () => {
    const other = await connect(await t.makeAccount('Other'))
    const browser = t.browser()
    const request = await begin(browser)
    // Posted to another connection, which trusts the same provider.
    await expectRefused(await post(browser, idp.answer(request), other), 'state_forged')
    // For another connection, posted to this one.
    const foreign = await begin(browser, {}, other)
    await expectRefused(await post(browser, idp.answer(foreign)), 'state_forged')
    // With the audience or the URL of the other.
    await expectRefused(await post(browser, idp.answer({ ...request, issuer: foreign.issuer })), 'other_audience')
    await expectRefused(await post(browser, idp.answer({ ...request, acsUrl: foreign.acsUrl })), 'other_recipient')
    // To a request that nobody made.
    await expectRefused(await post(browser, idp.answer({ ...request, id: '_made-up' })), 'state_forged')
    await expectRefused(await post(browser, idp.answer(request, { response: { inResponseTo: null } })), 'unsolicited')
    // None of them has spent the sign-in.
    expect((await complete(browser, await post(browser, idp.answer(request)))).status).toBe(200)
  })

  test('that comes too late, or while its connection is disabled or deleted', async () => {
    const browser = t.browser()
    const late = await begin(browser)
    const path = `/api/v3/identity/account/${account}/connection/${connection}`
    const request = await begin(browser)
    const posted = await post(browser, idp.answer(request))
    expect((await t.app.admin('PATCH', path, { is_enabled: false })).status).toBe(200)
    expect((await post(browser, idp.answer(late))).status).toBe(404)
    // Verified before, completed after.
    const callback = localOf(String(posted.headers.location)).replace('/callback', '/callback-redirect')
    expect((await browser.get(callback, 'application/json')).status).toBe(404)
    expect((await browser.get(`${pathOf(connection)}?redirect_url=${WEB_APP}`, 'application/json')).status).toBe(404)
    expect((await t.app.admin('PATCH', path, { is_enabled: true })).status).toBe(200)
    const waiting = await begin(browser)
    t.app.clock.advance(600_000)
    await expectRefused(await post(browser, idp.answer(waiting)), 'state_expired')
    expect((await t.app.admin('DELETE', path)).status).toBe(200)
    expect((await post(browser, idp.answer(waiting))).status).toBe(404)
  })

  test('that another key signed, or the former certificate', async () => {
    const stranger = await buildFakeIdp({ origin: 'https://evil.example', now: idp.now })
    const signing = { key: stranger.key.key }
    await expectRefused(await signIn({ signing }), 'signature_invalid')
    const path = `/api/v3/identity/account/${account}/connection/${connection}`
    const saml = { certificates: [stranger.key.certificate] }
    expect((await t.app.admin('PATCH', path, { saml })).status).toBe(200)
    await expectRefused(await signIn(), 'signature_invalid')
    expect((await signIn({ signing })).status).toBe(200)
  })

  test('that was verified by a certificate or of a provider that the connection has no longer when its browser comes', async () => {
    const stranger = await buildFakeIdp({ origin: 'https://new.corp.example', now: idp.now })
    const path = `/api/v3/identity/account/${account}/connection/${connection}`
    for (const saml of [{ certificates: [stranger.key.certificate] }, { idp_entity_id: stranger.entityId }]) {
      const browser = t.browser()
      const posted = await post(browser, idp.answer(await begin(browser)))
      expect(posted.status).toBe(303)
      expect((await t.app.admin('PATCH', path, { saml })).status).toBe(200)
      const ended = await complete(browser, posted)
      expect(ended.body.code).toBe('social_login_failed')
      expect((await t.app.admin('PATCH', path, { saml: samlOf() })).status).toBe(200)
    }
  })

  test('by the provider itself, which the page says', async () => {
    const browser = t.browser()
    const request = await begin(browser)
    const refused = await post(browser, idp.answer(request, { response: { status: 'Responder' } }))
    await expectRefused(refused, 'denied')
  })

  test('that proves an address outside of the proven domains', async () => {
    idp.person.attributes = { email: 'ada@elsewhere.example' }
    const answer = await signIn()
    expect(answer.body.data?.jwt).toBeUndefined()
    expect(answer.status).toBeGreaterThanOrEqual(400)
  })

  test.each([
    ['two domains, the second of a stranger', (domain: string) => `ada@${domain}@elsewhere.example`],
    ['two recipients', (domain: string) => `ada@${domain}, eve@elsewhere.example`],
    ['the form of a mailbox', (domain: string) => `Eve <ada@${domain}>`],
    ['a space', (domain: string) => `a da@${domain}`],
    ['no local part', (domain: string) => `@${domain}`],
    ['markup', (domain: string) => `<b>ada</b>@${domain}`],
    ['more characters than an address has', (domain: string) => `${'a'.repeat(255 - domain.length)}@${domain}`],
  ])('whose address has %s', async (_what, addressOf) => {
    const email = addressOf(domainOf())
    const nameIdFormat = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress'
    await expectRefused(await signIn({ facts: { attributes: { email } } }), 'attribute_invalid email')
    await expectRefused(
      await signIn({ facts: { nameId: email, nameIdFormat, attributes: {} } }),
      'attribute_invalid email',
    )
    const { rows } = await t.app.database.pool.query('select from "user" where email = $1', [email])
    expect(rows).toEqual([])
  })

  test.each([
    ['no form', undefined, 422],
    ['no base64', { SAMLResponse: '%%%' }, 401],
    ['no XML', { SAMLResponse: 'QUJD' }, 401],
    ['a mebibyte', { SAMLResponse: 'A'.repeat(1_048_576) }, 413],
    ['too long a response', { SAMLResponse: 'A'.repeat(190_000) }, 422],
    ['another member', { SAMLResponse: 'QUJD', SAMLRequest: 'x' }, 422],
  ])('with %s', async (_what, form, status) => {
    const answer = await t.browser().post(acsOf(), form ?? {})
    expect(answer.status).toBe(status)
  })
})

describe('the metadata of the service', () => {
  test('is there for a SAML connection, disabled or not, and for nothing else', async () => {
    const read = (id: string) => t.app.anonymous('GET', `/api/v3/auth/login/saml/${id}/metadata`)
    const path = `/api/v3/identity/account/${account}/connection/${connection}`
    await t.app.admin('PATCH', path, { is_enabled: false })
    const answer = await read(connection)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe('application/samlmetadata+xml')
    const text = String(answer.body)
    expect(text).toContain(`entityID="https://service.test/api/v3/auth/login/saml/${connection}/metadata"`)
    expect(text).toContain(`Location="https://service.test${acsOf()}"`)
    expect((await read(await t.connect(account))).status).toBe(404)
    expect((await read('018f0000-0000-7000-8000-000000000000')).status).toBe(404)
    expect((await read('x')).status).toBe(404)
  })
})

// The last one: the administrator of the tests is signed out by then too.
test('a session by SAML ends after the hours of its connection', async () => {
  const path = `/api/v3/identity/account/${account}/connection/${connection}`
  expect((await t.app.admin('PATCH', path, { session_hours: 1 })).status).toBe(200)
  const answer = await signIn()
  t.app.clock.advance(3_600_000)
  expect(await alive(answer)).toBe(false)
  const refresh_token = answer.body.data.refresh_token
  const refreshed = await t.app.anonymous('POST', '/api/v3/auth/session/refresh', { refresh_token })
  expect(refreshed.status).toBe(401)
})
