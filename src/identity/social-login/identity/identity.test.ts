import { describe, expect, test } from 'vitest'
import type { TestCall } from '../../../../test/harness/app/app.ts'
import { createSocialApp, MOBILE_APP, redirectUrlOf, WEB_APP } from '../../../../test/harness/app/social-app.ts'
import type { PersonalityName } from '../../../../test/harness/fakes/provider/personalities.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const IDENTITY = '/api/v3/identity/identity'

let users = 0

const t = await openForFile(createSocialApp())

const someone = () => {
  users += 1
  return `50${users}`
}

/** A user who signed in with Google. */
async function signedIn() {
  const sub = someone()
  t.seat('google', { sub })
  const { data } = (await t.signIn(t.browser(), 'google')).body
  return { call: t.app.callAs(data.jwt), id: data.user.document_id as string, sub }
}

/** Walks through the flow that connects a provider: the `link_code` that reaches the app. */
async function obtainLinkCode(call: TestCall, provider: PersonalityName, redirectUrl = WEB_APP): Promise<string> {
  const begun = await call('POST', `${IDENTITY}/link/${provider}`, { redirect_url: redirectUrl })
  const step = await t.fixture.fakes[provider].authorize(begun.body.data.redirectUrl)
  const browser = t.browser()
  if (step.method === 'POST') await browser.post(step.url, step.form ?? {})
  const answer = await browser.get(redirectUrlOf(step), 'application/json')
  const location = new URL(String(answer.headers.location))
  expect(location.href.startsWith(redirectUrl)).toBe(true)
  return location.searchParams.get('link_code') ?? `error ${location.searchParams.get('error')}`
}

async function link(call: TestCall, provider: PersonalityName, sub = someone()) {
  t.seat(provider, { sub, email: `other-${sub}@example.com`, isEmailVerified: false })
  return call('POST', IDENTITY, { code: await obtainLinkCode(call, provider) })
}

describe('the identities of a user', () => {
  test('are listed for that user only, without the subject', async () => {
    const [user, other] = [await signedIn(), await signedIn()]
    const mine = await user.call('GET', IDENTITY)
    expect(mine.body.data).toMatchObject([
      { provider: 'google', email: `${user.sub}@example.com`, is_email_verified: true },
    ])
    expect(mine.body.data[0]).not.toHaveProperty('subject')
    const [{ document_id: id }] = mine.body.data
    expect((await user.call('GET', `${IDENTITY}/${id}`)).status).toBe(200)
    expect((await other.call('GET', `${IDENTITY}/${id}`)).status).toBe(404)
    expect((await other.call('DELETE', `${IDENTITY}/${id}`)).status).toBe(404)
    expect((await t.app.admin('GET', `${IDENTITY}/${id}`)).status).toBe(404)
  })
})

describe('connecting a provider', () => {
  test('joins an identity whose address is another and unverified, because the user proves both sides', async () => {
    const user = await signedIn()
    const linked = await link(user.call, 'github')
    expect([linked.status, linked.body.data.provider]).toEqual([201, 'github'])
    const again = await t.signIn(t.browser(), 'github')
    expect(again.body.data.user.document_id).toBe(user.id)
  })

  test.each(['apple', 'company', 'linkedin'] as const)('works with %s and for an app', async (provider) => {
    const user = await signedIn()
    t.seat(provider, { sub: someone() })
    const code = await obtainLinkCode(user.call, provider, MOBILE_APP)
    expect((await user.call('POST', IDENTITY, { code })).status).toBe(201)
  })

  test('is refused for the code of a flow that another user began (link CSRF)', async () => {
    const [attacker, victim] = [await signedIn(), await signedIn()]
    t.seat('github', { sub: someone() })
    const code = await obtainLinkCode(attacker.call, 'github')
    const answer = await victim.call('POST', IDENTITY, { code })
    expect([answer.status, answer.body.code]).toEqual([409, 'identity_not_linked'])
    expect((await attacker.call('POST', IDENTITY, { code })).status).toBe(409)
  })

  test('is refused for an identity that another user has', async () => {
    const [user, other] = [await signedIn(), await signedIn()]
    const sub = someone()
    expect((await link(user.call, 'github', sub)).status).toBe(201)
    expect((await link(other.call, 'github', sub)).status).toBe(409)
  })

  test('is refused for a code that was used, is old, or is a code of a sign-in', async () => {
    const user = await signedIn()
    t.seat('discord', { sub: someone() })
    const code = await obtainLinkCode(user.call, 'discord')
    expect((await user.call('POST', IDENTITY, { code })).status).toBe(201)
    expect((await user.call('POST', IDENTITY, { code })).status).toBe(409)
    t.seat('discord', { sub: someone() })
    const late = await obtainLinkCode(user.call, 'discord')
    t.app.clock.advance(60_000)
    expect((await user.call('POST', IDENTITY, { code: late })).status).toBe(409)
    const fresh = await obtainLinkCode(user.call, 'discord')
    const exchanged = await t.app.anonymous('POST', '/api/v3/auth/login/code', {
      code: fresh,
      code_verifier: 'v'.repeat(43),
    })
    expect(exchanged.status).toBe(401)
    expect((await user.call('POST', IDENTITY, { code: fresh })).status).toBe(201)
  })

  test('opens no session and sets no cookie at the callback', async () => {
    const user = await signedIn()
    t.seat('github', { sub: someone() })
    const begun = await user.call('POST', `${IDENTITY}/link/github`, { redirect_url: WEB_APP })
    const step = await t.fixture.fakes.github.authorize(begun.body.data.redirectUrl)
    const answer = await t.browser().get(redirectUrlOf(step))
    expect([answer.status, answer.headers['set-cookie']]).toEqual([302, undefined])
    expect(new URL(String(answer.headers.location)).searchParams.has('access_token')).toBe(false)
  })

  test('leads the error of the provider to the app', async () => {
    const user = await signedIn()
    t.seat('github', { sub: someone(), denies: true })
    expect(await obtainLinkCode(user.call, 'github')).toBe('error access_denied')
  })

  test('is not open to an API key, or with a redirect_url that is not allowed', async () => {
    const key = (await t.app.admin('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['*:*'] })).body.data
      .key
    const byKey = await t.app.callAs(key)('POST', `${IDENTITY}/link/github`, { redirect_url: WEB_APP })
    expect([byKey.status, byKey.body.code]).toEqual([403, 'permission_denied'])
    expect((await t.app.callAs(key)('POST', IDENTITY, { code: 'c' })).status).toBe(403)
    const user = await signedIn()
    const evil = await user.call('POST', `${IDENTITY}/link/github`, { redirect_url: 'https://evil.example/' })
    expect(evil.body.code).toBe('redirect_url_not_allowed')
    const unknown = await user.call('POST', `${IDENTITY}/link/nothing`, { redirect_url: WEB_APP })
    expect(unknown.body.code).toBe('provider_unknown')
  })
})

describe('disconnecting a provider', () => {
  const idsOf = async (call: TestCall): Promise<string[]> =>
    (await call('GET', IDENTITY)).body.data.map((row: { document_id: string }) => row.document_id)

  test('leaves a user with a passkey in', async () => {
    const user = await signedIn()
    const [id] = await idsOf(user.call)
    await t.app.database.pool.query(
      `insert into passkey (document_id, "user", credential_id, public_key, counter, transports, name, is_backup_eligible,
         is_backed_up, created_at, updated_at)
       values (gen_random_uuid(), $1, $2, '\\x00', 0, '{}', 'Phone', false, false, now(), now())`,
      [user.id, user.id],
    )
    expect((await user.call('DELETE', `${IDENTITY}/${id}`)).status).toBe(200)
  })

  test('never takes the last way in', async () => {
    const user = await signedIn()
    const [id] = await idsOf(user.call)
    const answer = await user.call('DELETE', `${IDENTITY}/${id}`)
    expect([answer.status, answer.body.code]).toEqual([409, 'conflict'])
  })

  test('is possible with another provider, and then not any more', async () => {
    const user = await signedIn()
    await link(user.call, 'github')
    const [first, second] = await idsOf(user.call)
    expect((await user.call('DELETE', `${IDENTITY}/${first}`)).status).toBe(200)
    expect((await user.call('DELETE', `${IDENTITY}/${second}`)).status).toBe(409)
  })

  test('is possible with a password', async () => {
    const user = await signedIn()
    await t.app.admin('PATCH', `/api/v3/identity/user/${user.id}`, { password: 'correct horse battery' })
    t.seat('google', { sub: user.sub })
    const again = t.app.callAs((await t.signIn(t.browser(), 'google')).body.data.jwt)
    const [id] = await idsOf(again)
    expect((await again('DELETE', `${IDENTITY}/${id}`)).status).toBe(200)
    expect(await idsOf(again)).toEqual([])
  })

  test('does not count on a provider that is off', async () => {
    const user = await signedIn()
    await link(user.call, 'github')
    await t.app.database.db
      .updateTable('identity')
      .set({ provider: 'retired' })
      .where('user', '=', user.id)
      .where('provider', '=', 'github')
      .execute()
    const google = (await user.call('GET', `${IDENTITY}?filters=provider|eq|google`)).body.data[0].document_id
    expect((await user.call('DELETE', `${IDENTITY}/${google}`)).status).toBe(409)
  })

  test('of both providers at the same time leaves one', async () => {
    const user = await signedIn()
    await link(user.call, 'github')
    const ids = await idsOf(user.call)
    const answers = await Promise.all(ids.map((id) => user.call('DELETE', `${IDENTITY}/${id}`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  })
})
