import { createHash, randomBytes } from 'node:crypto'
import type { AuthClient } from '@supabase/auth-js'
import { decodeJwt } from 'jose'
import { beforeEach, describe, expect, test } from 'vitest'
import { signInOfficially } from '../harness/fakes/supabase-simulator/official-client.ts'
import { startSupabaseSimulator } from '../harness/fakes/supabase-simulator/simulator.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/**
 * Behaviour of the simulator of Supabase Auth that equals that of the server v2.196.0, asked by the official client
 * where it can ask.
 */

const REDIRECT = 'https://app.example.com/back'

let users = 0

const simulator = await openForFile(startSupabaseSimulator(() => Date.now()))
const app = simulator.oauth.register(REDIRECT)
beforeEach(() => {
  users += 1
  simulator.user = { sub: `p-${users}`, email: `p-${users}@example.com`, isEmailVerified: true, name: 'Ada' }
})

/** The official client, with a user who is signed in. */
const signIn = () => signInOfficially(simulator, REDIRECT)

const VERIFIER = randomBytes(32).toString('base64url')

async function authorize(other: Record<string, string | undefined> = {}) {
  const parameters = {
    client_id: app.client_id,
    redirect_uri: REDIRECT,
    scope: 'openid email',
    state: 'kept',
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    code_challenge_method: 'S256',
    ...other,
  }
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined)
  const answer = await fetch(`${simulator.url}/oauth/authorize?${new URLSearchParams(given)}`, { redirect: 'manual' })
  const location = answer.headers.get('location')
  const query = Object.fromEntries(new URL(location ?? 'https://none.example').searchParams)
  return { status: answer.status, query, body: location === null ? await answer.json() : undefined }
}

async function askToken(fields: Record<string, string>) {
  const { client_id, client_secret } = app
  const body = new URLSearchParams({ client_id, client_secret, ...fields })
  const answer = await fetch(`${simulator.url}/oauth/token`, { method: 'POST', body })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

async function approve(official: InstanceType<typeof AuthClient>, scope?: string) {
  const { query } = await authorize({ ...(scope && { scope }), nonce: 'n-1' })
  const id = query.authorization_id ?? ''
  const details = await official.oauth.getAuthorizationDetails(id)
  const known = (details.data as { redirect_url?: string }).redirect_url
  const url = known ?? (await official.oauth.approveAuthorization(id, { skipBrowserRedirect: true })).data?.redirect_url
  return {
    grant_type: 'authorization_code',
    code: new URL(url ?? '').searchParams.get('code') ?? '',
    code_verifier: VERIFIER,
  }
}

const refreshNative = async (token: string) => {
  const answer = await fetch(`${simulator.url}/token?grant_type=refresh_token`, {
    method: 'POST',
    body: JSON.stringify({ refresh_token: token }),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

describe('its OAuth server', () => {
  test('answers the end of a grant that is not there with 404', async () => {
    const { official } = await signIn()
    const { error } = await official.oauth.revokeGrant({ clientId: app.client_id })
    expect(error).toMatchObject({ code: 'oauth_consent_not_found', status: 404 })
    await askToken(await approve(official))
    expect((await official.oauth.revokeGrant({ clientId: app.client_id })).error).toBeNull()
  })

  test('gives an ID token for openid, and none without it or at a refresh', async () => {
    const { official, session } = await signIn()
    const { body } = await askToken(await approve(official))
    const claims = decodeJwt(body.id_token ?? '')
    expect(claims).toMatchObject({ aud: app.client_id, sub: session.user.id, nonce: 'n-1', email: session.user.email })
    const next = await askToken({ grant_type: 'refresh_token', refresh_token: body.refresh_token ?? '' })
    expect(next.body).not.toHaveProperty('id_token')
    expect((await askToken(await approve(official, 'email'))).body).not.toHaveProperty('id_token')
  })

  test('refuses an unknown scope and a request without PKCE as invalid_request, with the state', async () => {
    for (const other of [
      { scope: 'openid unknown' },
      { code_challenge: undefined },
      { code_challenge_method: undefined },
    ])
      expect((await authorize(other)).query).toEqual({
        error: 'invalid_request',
        error_description: expect.stringMatching(/\w/),
        state: 'kept',
      })
    expect((await authorize({ scope: 'x', state: undefined })).query).not.toHaveProperty('state')
  })

  test('takes no redirect URI at the token endpoint but that of the request, where one is sent', async () => {
    const { official } = await signIn()
    const code = await approve(official)
    const refused = await askToken({ ...code, redirect_uri: 'https://app.example.com/other' })
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect((await askToken({ ...code, redirect_uri: REDIRECT })).status).toBe(200)
  })

  test('takes approve and deny for a consent, and decides nothing for another word', async () => {
    const { official, session } = await signIn()
    const { query } = await authorize()
    await official.oauth.getAuthorizationDetails(query.authorization_id ?? '')
    const answer = await fetch(`${simulator.url}/oauth/authorizations/${query.authorization_id}/consent`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session.access_token}` },
      body: JSON.stringify({ action: 'maybe' }),
    })
    expect(answer.status).toBe(400)
    const denied = await official.oauth.denyAuthorization(query.authorization_id ?? '', { skipBrowserRedirect: true })
    expect(denied.data?.redirect_url).toContain('error=access_denied')
  })

  test('adds no state to the denial of a request without one', async () => {
    const { official } = await signIn()
    const { query } = await authorize({ state: undefined })
    await official.oauth.getAuthorizationDetails(query.authorization_id ?? '')
    const denied = await official.oauth.denyAuthorization(query.authorization_id ?? '', { skipBrowserRedirect: true })
    expect(new URL(denied.data?.redirect_url ?? '').searchParams.has('state')).toBe(false)
  })

  test('tells a redirect URI that is not registered from a client that is not', async () => {
    expect((await authorize({ redirect_uri: 'https://evil.example/' })).body).toMatchObject({
      error_code: 'validation_failed',
    })
    expect((await authorize({ client_id: 'nobody' })).body).toMatchObject({ error_code: 'oauth_client_not_found' })
  })

  test('writes the metadata of the user into the tokens of apps', async () => {
    const { official } = await signIn()
    const { body } = await askToken(await approve(official))
    expect(decodeJwt(body.access_token ?? '')).toMatchObject({
      app_metadata: { provider: 'google' },
      user_metadata: { email_verified: true },
    })
  })

  test('refuses an unknown grant type as invalid_credentials', async () => {
    expect((await askToken({ grant_type: 'client_credentials' })).body.error_code).toBe('invalid_credentials')
    const answer = await fetch(`${simulator.url}/token?grant_type=unknown`, { method: 'POST', body: '{}' })
    expect(await answer.json()).toMatchObject({ error_code: 'invalid_credentials' })
  })
})

describe('its sessions', () => {
  test('end with their refresh token at a local sign-out', async () => {
    const { official, session } = await signIn()
    expect((await official.signOut({ scope: 'local' })).error).toBeNull()
    expect(await refreshNative(session.refresh_token)).toMatchObject({
      status: 400,
      body: { error_code: 'refresh_token_not_found' },
    })
  })

  test('give the active token again for its parent, and refuse the parent of a spent one', async () => {
    const { session } = await signIn()
    const first = await refreshNative(session.refresh_token)
    const repeated = await refreshNative(session.refresh_token)
    expect(repeated).toMatchObject({ status: 200, body: { refresh_token: first.body.refresh_token } })
    await refreshNative(first.body.refresh_token ?? '')
    expect((await refreshNative(session.refresh_token)).body.error_code).toBe('refresh_token_already_used')
  })

  test('are not refreshed by the token of an app', async () => {
    const { official } = await signIn()
    const { body } = await askToken(await approve(official))
    expect(await refreshNative(body.refresh_token ?? '')).toMatchObject({
      status: 400,
      body: { error: 'invalid_client' },
    })
  })
})

describe('its providers', () => {
  const begin = async (query: string) =>
    (await fetch(`${simulator.url}/authorize?${query}`, { redirect: 'manual' })).status

  test('are those that there are: an unknown custom one is 400', async () => {
    expect(await begin('provider=custom:nobody')).toBe(400)
    expect(await begin('provider=custom:acme-sso')).toBe(302)
  })

  test('are begun with a method of PKCE that there is', async () => {
    const challenge = 'x'.repeat(43)
    expect(await begin(`provider=google&code_challenge=${challenge}&code_challenge_method=md5`)).toBe(400)
    expect(await begin(`provider=google&code_challenge=${challenge}&code_challenge_method=S256`)).toBe(302)
  })

  test('leave an empty object of claims of their own in the identity', async () => {
    const { official } = await signIn()
    const { data } = await official.getUser()
    expect(data.user?.identities?.[0]?.identity_data).toMatchObject({ custom_claims: {} })
  })
})
