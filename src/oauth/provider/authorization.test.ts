import * as openid from 'openid-client'
import { describe, expect, test } from 'vitest'
import { type OauthClient, openBrowser, startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import type { Visitor } from '../../../test/harness/browser/visitor.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const fixture = await openForFile(startOauthFixture())
const user = await fixture.user()
const client = await fixture.client()

const discover = (app: OauthClient = client) =>
  openid.discovery(
    new URL(fixture.issuer),
    app.id,
    app.secret ?? undefined,
    app.secret === null ? openid.None() : undefined,
    {
      execute: [openid.allowInsecureRequests],
    },
  )

/** Begins an authorization with PKCE, walks through it in a browser, and redeems the code. */
async function signIn(
  options: { scope?: string; browser?: Visitor; app?: OauthClient; parameters?: Record<string, string> } = {},
) {
  const { scope = 'openid email offline_access contract:read', browser = openBrowser(), app = client } = options
  const config = await discover(app)
  const pkceCodeVerifier = openid.randomPKCECodeVerifier()
  const expectedState = openid.randomState()
  const expectedNonce = openid.randomNonce()
  const url = openid.buildAuthorizationUrl(config, {
    redirect_uri: app.redirectUri,
    scope,
    code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    state: expectedState,
    nonce: expectedNonce,
    ...options.parameters,
  })
  const end = await fixture.walk(browser, url.href, { user })
  if (end.location === undefined) throw new Error(`the walk ended at ${end.url} (${end.status}): ${end.body}`)
  const tokens = await openid.authorizationCodeGrant(config, new URL(end.location), {
    pkceCodeVerifier,
    expectedState,
    expectedNonce,
  })
  return { config, tokens, browser, callback: end.location, pkceCodeVerifier }
}

describe('the authorization code flow', () => {
  test('openid-client signs a user in, with PKCE, nonce and issuer', async () => {
    const { tokens, config } = await signIn({ parameters: { prompt: 'consent' } })
    expect(tokens.claims()).toMatchObject({ sub: user.userId, aud: client.id })
    expect(tokens.token_type).toBe('bearer')
    expect(tokens.expires_in).toBeLessThanOrEqual(900)
    const info = await openid.fetchUserInfo(config, tokens.access_token, user.userId)
    expect(info).toMatchObject({ sub: user.userId, email: user.email, email_verified: false })
  })

  test('sets one cookie, that no script reads and no form of another site sends', async () => {
    const config = await discover()
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: client.redirectUri,
      scope: 'openid',
      code_challenge: await openid.calculatePKCECodeChallenge(openid.randomPKCECodeVerifier()),
      code_challenge_method: 'S256',
    })
    const { headers } = await openBrowser().visit(url.href)
    expect(headers['set-cookie']).toEqual([
      expect.stringMatching(
        /^signalbox_flow_[\w-]{8}=[0-9a-z]+\.[\w-]{22}; Max-Age=1800; Path=\/; HttpOnly; SameSite=Lax$/,
      ),
    ])
  })

  test('answers by form_post with the page of the service, whose script is a file', async () => {
    const config = await discover()
    const browser = openBrowser()
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri: client.redirectUri,
      scope: 'openid',
      response_mode: 'form_post',
      code_challenge: await openid.calculatePKCECodeChallenge(openid.randomPKCECodeVerifier()),
      code_challenge_method: 'S256',
    })
    const page = await fixture.walk(browser, url.href, { user })
    expect(page.location).toBeUndefined()
    expect(page.body).toContain(`action="${client.redirectUri}"`)
    expect(page.body).toContain('src="/auth/submit-form.js')
    expect(page.body).not.toMatch(/<script>|onload/)
    expect(page.headers['content-security-policy']).toContain(
      `form-action 'self' ${new URL(client.redirectUri).origin}`,
    )
  })
})
