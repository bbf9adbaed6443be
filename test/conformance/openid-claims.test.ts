import { decodeJwt } from 'jose'
import { describe, expect, test } from 'vitest'
import { openFlow } from '../harness/browser/oauth-flow.ts'
import { type OauthUser, openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Where the claims about a user stand, and how `claims` and `acr` are answered (docs/contract/oauth.md#claims). */
const fixture = await openForFile(startOauthFixture())
const user = await fixture.user()
const flow = await openFlow(fixture, await fixture.client())
const known = openBrowser()
await flow.signIn(known, { user })

const ask = (claims: unknown) => ({ claims: typeof claims === 'string' ? claims : JSON.stringify(claims) })

const readUserinfo = async (token: string) => (await (await flow.userinfo(token)).json()) as Record<string, unknown>

/** The claims of the ID token and those of userinfo. */
async function readBoth(scope: string, parameters: Record<string, string> = {}) {
  const { tokens } = await flow.signIn(known, { user, scope, parameters })
  const idToken: Record<string, unknown> = decodeJwt(tokens.id_token ?? '')
  return { idToken, userinfo: await readUserinfo(tokens.access_token), tokens }
}

/** The error that an authorization ends with. */
async function readError(parameters: Record<string, string>, browser = known): Promise<string | null> {
  const { callback } = await flow.begin(browser, { user, parameters })
  return new URL(callback).searchParams.get('error')
}

const PERSONAL = ['email', 'email_verified', 'name', 'picture', 'updated_at']

describe('e-mail and name', () => {
  test('stand in userinfo and not in the ID token, neither at the sign-in nor at a refresh', async () => {
    const { idToken, userinfo, tokens } = await readBoth('openid profile email offline_access')
    for (const name of PERSONAL) expect(idToken).not.toHaveProperty(name)
    expect(idToken.sub).toBe(user.userId)
    expect(userinfo).toMatchObject({ email: user.email, name: expect.stringMatching(/^User/) })
    const { updated_at: updatedAt } = (await fixture.app.admin('GET', `/api/v3/identity/user/${user.userId}`)).body.data
    expect(userinfo.updated_at).toBe(Math.floor(Date.parse(updatedAt) / 1000))
    const next = decodeJwt((await flow.refresh(tokens.refresh_token)).id_token ?? '')
    for (const name of PERSONAL) expect(next).not.toHaveProperty(name)
  })

  test('stand in the ID token when the client asks for them there, also at a refresh', async () => {
    const { idToken, tokens } = await readBoth(
      'openid profile email',
      ask({ id_token: { email: null, name: { essential: true } } }),
    )
    expect(idToken).toMatchObject({ email: user.email, name: expect.any(String) })
    expect(idToken).not.toHaveProperty('email_verified')
    expect(decodeJwt((await flow.refresh(tokens.refresh_token)).id_token ?? '')).toMatchObject({ email: user.email })
  })
})

describe('the parameter claims', () => {
  test('opens a claim without its scope once the user has allowed the scope, and only where it was asked for', async () => {
    const { idToken, userinfo } = await readBoth('openid', ask({ userinfo: { name: { essential: true } } }))
    expect(Object.keys(userinfo).sort()).toEqual(['name', 'sub'])
    expect(idToken).not.toHaveProperty('name')
  })

  test('asks the user for the scope that opens the claim, and takes a no', async () => {
    const other = await openFlow(fixture, await fixture.client())
    const parameters = ask({ userinfo: { email: null, name: null } })
    const { url, ...kept } = await other.prepare({ scope: 'openid', parameters })
    const page = await fixture.walk(openBrowser(), url, { user, decision: 'stop' })
    expect(page.body).toContain('name="allow:email"')
    const end = await fixture.walk(openBrowser(), url, { user, without: ['email'] })
    const tokens = await other.redeem({ ...kept, callback: end.location ?? '' })
    const userinfo = await readUserinfo(tokens.access_token)
    expect(userinfo).toMatchObject({ name: expect.any(String) })
    expect(userinfo).not.toHaveProperty('email')
    expect(tokens.scope).toBe('openid')
  })

  test('gives a client nothing that its scopes do not open, and ignores claims that are not there', async () => {
    const narrow = await openFlow(fixture, await fixture.client({ scopes: ['openid'] }))
    const parameters = ask({
      userinfo: { email: { essential: true }, phone_number: null },
      id_token: { __proto__: null },
    })
    const { tokens } = await narrow.signIn(known, { user, scope: 'openid', parameters })
    expect(Object.keys(await readUserinfo(tokens.access_token))).toEqual(['sub'])
  })

  test.each(['', '{', '[]', '"x"', '{}', '{"userinfo":1}', '{"id_token":[]}'])('%j is refused', async (claims) => {
    if (claims === '') return expect(await readError({ claims: ' ' })).toBe('invalid_request')
    expect(await readError({ claims })).toBe('invalid_request')
  })

  test('naming another user leads to the choice of the account, and never signs the wrong one in', async () => {
    const stranger = await fixture.user()
    const { url } = await flow.prepare({ parameters: ask({ id_token: { sub: { value: stranger.userId } } }) })
    const page = await fixture.walk(known, url, { user })
    expect(page.body).toContain('action="/auth/oauth/switch"')
    const form = { id: /name="id" value="([^"]+)"/.exec(page.body)?.[1] ?? '' }
    const token = /name="form_token" value="([^"]+)"/.exec(page.body)?.[1]
    const fields = token === undefined ? form : { ...form, form_token: token }
    const next = await known.visit(`${fixture.baseUrl}/auth/oauth/continue`, { method: 'POST', form: fields })
    const end = await fixture.walk(
      known,
      new URL(next.headers.refresh?.toString().split('url=')[1] ?? '', page.url).href,
    )
    expect(new URL(end.location ?? '').searchParams.get('error')).toBe('login_required')
    const own = ask({ id_token: { sub: { value: user.userId } } })
    expect((await readBoth('openid', own)).idToken.sub).toBe(user.userId)
  })
})

describe('acr', () => {
  test('is the class of the sign-in when the client asks for it, and is left out when it does not', async () => {
    expect((await readBoth('openid')).idToken).not.toHaveProperty('acr')
    expect((await readBoth('openid', { acr_values: 'aal2 aal1' })).idToken.acr).toBe('aal1')
    expect((await readBoth('openid', ask({ id_token: { acr: null } }))).idToken.acr).toBe('aal1')
  })

  test('that the client would like and the user has not is answered as it is', async () => {
    expect((await readBoth('openid', { acr_values: 'aal2' })).idToken.acr).toBe('aal1')
    expect((await readBoth('openid', ask({ id_token: { acr: { values: ['aal2'] } } }))).idToken.acr).toBe('aal1')
  })

  test('of a sign-in without a class is left out', async () => {
    const [browser, other] = [openBrowser(), await fixture.user()]
    await fixture.walk(browser, `${fixture.baseUrl}/auth/sign-in`, { user: other })
    await fixture.app.database.pool.query('update session set acr = null where "user" = $1', [other.userId])
    const { tokens } = await flow.signIn(browser, { user: other, parameters: { acr_values: 'aal1' } })
    expect(decodeJwt(tokens.id_token ?? '')).not.toHaveProperty('acr')
  })

  test('that the client needs is met, or fails the request once the user has signed in again', async () => {
    const met = ask({ id_token: { acr: { essential: true, values: ['aal1', 'aal2'] } } })
    expect((await readBoth('openid', met)).idToken.acr).toBe('aal1')
    const unmet = ask({ id_token: { acr: { essential: true, value: 'aal2' } } })
    // The provider reads the machine's clock, the sign-in that of the app.
    fixture.app.clock.set(Math.max(fixture.app.clock.now(), Date.now()) + 5_000)
    expect(await readError(unmet, openBrowser())).toBe('unmet_authentication_requirements')
    expect(await readError({ ...unmet, prompt: 'none' })).toBe('login_required')
  })

  test('that the service does not have fails at once', async () => {
    const claims = ask({ id_token: { acr: { essential: true, values: ['urn:example:gold'] } } })
    expect(await readError(claims)).toBe('unmet_authentication_requirements')
  })
})

test('the claim account is left out of the token of a user without an account, and is there for one with an account', async () => {
  const client = await fixture.client({ scopes: ['openid', 'account:read'] })
  const own = await openFlow(fixture, client)
  const readAccount = async (who: OauthUser) => {
    const { tokens } = await own.signIn(openBrowser(), { user: who, scope: 'openid account:read' })
    return decodeJwt(tokens.access_token)
  }
  const alone = await fixture.user()
  expect(await readAccount(alone)).not.toHaveProperty('account')
  const made = await fixture.app.admin('POST', '/api/v3/identity/account', { name: 'One' })
  const account = made.body.data.document_id
  const joined = await fixture.app.admin('POST', `/api/v3/identity/account/${account}/member`, { user: alone.userId })
  expect(joined.status).toBe(201)
  expect((await readAccount(alone)).account).toBe(account)
})
