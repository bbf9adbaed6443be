import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as oauth from 'oauth4webapi'
import { describe, expect, test } from 'vitest'
import { openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const fixture = await openForFile(startOauthFixture())
const user = await fixture.user()
const client = await fixture.client()
const flow = await openFlow(fixture, client)

const OFFLINE = { prompt: 'consent' }

describe('discovery', () => {
  test('the metadata are the same at the path of OpenID and at that of RFC 8414', async () => {
    const [metadata, other] = await Promise.all([
      fetch(`${fixture.issuer}/.well-known/openid-configuration`).then((answer) => answer.json()),
      fetch(`${fixture.baseUrl}/.well-known/oauth-authorization-server/api/v3/oauth`).then((answer) => answer.json()),
    ])
    expect(other).toEqual(metadata)
    expect(metadata.issuer).toBe(fixture.issuer)
    expect(metadata.code_challenge_methods_supported).toEqual(['S256'])
    expect(metadata.id_token_signing_alg_values_supported).toEqual(expect.arrayContaining(['ES256', 'RS256']))
    expect(metadata.authorization_response_iss_parameter_supported).toBe(true)
    expect(metadata.registration_endpoint).toBeUndefined()
    expect(metadata.request_parameter_supported).not.toBe(true)
  })

  test('no address of the metadata follows the Host header of a request', async () => {
    const answer = await fixture.app.anonymous('GET', '/api/v3/oauth/.well-known/openid-configuration', undefined, {
      host: 'evil.example',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-proto': 'https',
    })
    expect(answer.body.token_endpoint).toBe(`${fixture.issuer}/token`)
    expect(JSON.stringify(answer.body)).not.toContain('evil')
  })

  test('the routes of the service beside the provider are served by the service', async () => {
    expect((await fixture.app.anonymous('GET', '/api/v3/oauth/grant')).body.code).toBe('unauthenticated')
    expect((await fixture.app.anonymous('GET', '/api/v3/oauth/nothing')).status).toBe(404)
  })
})

describe('an access token', () => {
  test('is refused by the API with a word on its exchange, and an API key that is wrong without', async () => {
    const { tokens } = await flow.signIn(openBrowser(), { user: await fixture.user() })
    const ask = async (token: string) =>
      (
        await fetch(`${fixture.baseUrl}/api/v3/contract/contract`, { headers: { authorization: `Bearer ${token}` } })
      ).json()
    expect(await ask(tokens.access_token)).toMatchObject({
      code: 'unauthenticated',
      detail: expect.stringContaining('POST /api/v3/oauth/exchange'),
    })
    expect(await ask('sbx_x')).toMatchObject({ detail: expect.not.stringContaining('exchange') })
  })

  test('is a JWT for the API that verifies under the published keys and names its client, scopes and grant', async () => {
    const { tokens } = await flow.signIn(openBrowser(), { user, parameters: OFFLINE })
    const keys = createRemoteJWKSet(new URL(`${fixture.issuer}/jwks`))
    const { payload, protectedHeader } = await jwtVerify(tokens.access_token, keys, {
      issuer: fixture.issuer,
      audience: `${fixture.baseUrl}/api/v3`,
      typ: 'at+jwt',
      algorithms: ['ES256'],
    })
    expect(protectedHeader.alg).toBe('ES256')
    const [grant] = (await fixture.app.admin('GET', `/api/v3/oauth/grant?filters=user|eq|${user.userId}`)).body.data
    expect(payload).toMatchObject({ sub: user.userId, client_id: client.id, grant_id: grant.document_id })
    expect(payload.scope).toBe('openid email offline_access contract:read')
  })

  test('is told by introspection, and no longer once it is revoked', async () => {
    const { tokens } = await flow.signIn(openBrowser(), { user, parameters: OFFLINE })
    expect(await flow.introspect(tokens.access_token)).toMatchObject({
      active: true,
      client_id: client.id,
      sub: user.userId,
      aud: `${fixture.baseUrl}/api/v3`,
    })
    await flow.revoke(tokens.access_token)
    expect(await flow.introspect(tokens.access_token)).toEqual({ active: false })
    expect((await flow.userinfo(tokens.access_token)).status).toBe(401)
  })

  test('with a changed signature is no token, at introspection and at userinfo', async () => {
    const { tokens } = await flow.signIn(openBrowser(), { user })
    const forged = `${tokens.access_token.slice(0, -6)}AAAAAA`
    expect(await flow.introspect(forged)).toEqual({ active: false })
    expect((await flow.userinfo(forged)).status).toBe(401)
  })

  test('of another client is not told by introspection and not revoked', async () => {
    const other = await openFlow(fixture, await fixture.client())
    const { tokens } = await flow.signIn(openBrowser(), { user })
    expect(await other.introspect(tokens.access_token)).toEqual({ active: false })
    await other.revoke(tokens.access_token)
    expect(await flow.introspect(tokens.access_token)).toMatchObject({ active: true })
  })
})

test('codes, tokens and sessions live as long as the contract says', async () => {
  const { pool } = fixture.app.database
  const read = async () => {
    const text = `select model, payload, extract(epoch from expires_at)::float as until from oauth_state`
    const { rows } = await pool.query(text)
    // The clock goes on between both instants.
    const seconds = (row: { payload: { iat?: number }; until: number }) =>
      30 * Math.round((row.until - (row.payload.iat ?? 0)) / 30)
    return new Set(
      rows.map((row) => `${row.model} ${row.payload.accountId === undefined ? 'stranger' : 'user'} ${seconds(row)}`),
    )
  }
  await pool.query('delete from oauth_state')
  const browser = openBrowser()
  await openBrowser().visit(`${fixture.issuer}/device?user_code=BCDF-GHJK`)
  await flow.signIn(browser, { user, parameters: OFFLINE })
  const [day, lives] = [86_400, await read()]
  for (const [life, seconds] of [
    ...[['Session stranger', 1_800] as const, ['Session user', 90 * day] as const],
    ...[['AccessToken user', 900] as const, ['RefreshToken user', 30 * day] as const],
    ...[['AuthorizationCode user', 60] as const, ['Grant user', 90 * day] as const],
  ])
    expect([...lives]).toContain(`${life} ${seconds}`)
})

describe('a code', () => {
  test('is good for one redemption; the second ends what the first gave', async () => {
    const begun = await flow.begin(openBrowser(), { user, parameters: OFFLINE })
    const tokens = await flow.redeem(begun)
    await expect(flow.redeem(begun)).rejects.toMatchObject({ error: 'invalid_grant' })
    await expect(flow.refresh(tokens.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect(await flow.introspect(tokens.access_token)).toEqual({ active: false })
  })

  test('is worth nothing without its verifier, and with another one', async () => {
    const begun = await flow.begin(openBrowser(), { user })
    await expect(flow.redeem({ ...begun, verifier: oauth.generateRandomCodeVerifier() })).rejects.toMatchObject({
      error: 'invalid_grant',
    })
  })
})

describe('a refresh token', () => {
  test('rotates, and its first answer is repeated to the same client for ten seconds', async () => {
    const { tokens } = await flow.signIn(openBrowser(), { user, parameters: OFFLINE })
    const first = await flow.refresh(tokens.refresh_token)
    expect(first.refresh_token).not.toBe(tokens.refresh_token)
    expect(await flow.refresh(tokens.refresh_token)).toEqual(first)
    const next = await flow.refresh(first.refresh_token)
    expect(next.access_token).not.toBe(first.access_token)
  })

  test('is given without offline_access too, and ends with the session of the browser', async () => {
    const browser = openBrowser()
    const { tokens } = await flow.signIn(browser, { user, scope: 'openid email' })
    expect((await flow.refresh(tokens.refresh_token)).refresh_token).toBeTypeOf('string')
    const { tokens: again } = await flow.signIn(browser, { user, scope: 'openid email' })
    const page = await browser.visit(`${fixture.baseUrl}/auth/devices`)
    await flow.submit(browser, { page, action: '/auth/sign-out' })
    await expect(flow.refresh(again.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
  })

  test('of a disabled user gives nothing', async () => {
    const other = await fixture.user()
    const { tokens } = await flow.signIn(openBrowser(), { user: other, parameters: OFFLINE })
    // As a release before left it: the tokens of a user who is disabled now are deleted.
    await fixture.app.database.pool.query('update "user" set is_actived = false where document_id = $1', [other.userId])
    await expect(flow.refresh(tokens.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect((await flow.userinfo(tokens.access_token)).status).toBe(401)
    expect(await flow.introspect(tokens.access_token)).toEqual({ active: false })
    expect(await flow.introspect(tokens.refresh_token)).toEqual({ active: false })
    const audit = await fixture.app.admin('GET', `/api/v3/audit/log?filters=action|eq|oauth-token.create`)
    expect(audit.body.data).toMatchObject([
      { user: other.userId, outcome: 'failure', detail: { reason: 'user_inactive' } },
    ])
  })
})

describe('a pushed request', () => {
  test('is accepted once, and its parameters are those of the authorization', async () => {
    const { tokens } = await flow.signIn(openBrowser(), { user, isPushed: true })
    expect(tokens.access_token).toBeTypeOf('string')
  })
})

describe('a request without a question', () => {
  test('is answered for a user who is signed in here, though the provider has not seen the browser', async () => {
    const browser = openBrowser()
    await fixture.walk(browser, `${fixture.baseUrl}/auth/sign-in`, { user })
    await flow.signIn(openBrowser(), { user })
    const { tokens } = await flow.signIn(browser, { parameters: { prompt: 'none' } })
    expect(tokens.access_token).toBeTypeOf('string')
  })

  test('says login_required for a browser without a session', async () => {
    const begun = await flow.begin(openBrowser(), { parameters: { prompt: 'none' } })
    await expect(flow.redeem(begun)).rejects.toMatchObject({ error: 'login_required' })
  })
})

describe('sign-out by a client', () => {
  test('ends the session of the browser here too, with its event and audit entry, and returns to the client', async () => {
    const returnTo = 'http://127.0.0.1:4711/bye'
    const client = await fixture.client({ post_logout_redirect_uris: [returnTo] })
    const own = await openFlow(fixture, client)
    const browser = openBrowser()
    const { tokens } = await own.signIn(browser, { user })
    const url = `${fixture.issuer}/end-session?${new URLSearchParams({ id_token_hint: tokens.id_token ?? '', post_logout_redirect_uri: returnTo, state: 's' })}`
    const page = await browser.visit(url)
    expect(page.body).toContain('Sign out?')
    const done = await own.submit(browser, {
      page,
      action: `${fixture.issuer}/end-session/confirm`,
      fields: { logout: 'yes' },
    })
    expect(done.headers.location).toBe(`${returnTo}?state=s`)
    const { rows } = await fixture.app.database.pool.query(
      `select e.resource_id from event_occurrence e join audit_log a on a.target::text = e.resource_id and a.action = e.event
       where e.event = 'session.revoke' and a.detail ->> 'client' = $1`,
      [client.id],
    )
    expect(rows).toHaveLength(1)
    expect((await browser.visit(`${fixture.baseUrl}/auth/devices`)).headers.location).toContain('/auth/')
    const begun = await own.begin(browser, { parameters: { prompt: 'none' } })
    await expect(own.redeem(begun)).rejects.toMatchObject({ error: 'login_required' })
  })
})
