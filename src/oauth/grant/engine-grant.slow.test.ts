import { decodeJwt } from 'jose'
import { beforeEach, describe, expect, test } from 'vitest'
import { localOf } from '../../../test/harness/app/social-app.ts'
import { readPayload } from '../../../test/harness/app/sso-app.ts'
import { readForm } from '../../../test/harness/browser/oauth-service.ts'
import type { SimulatedClient } from '../../../test/harness/fakes/supabase-simulator/oauth-server.ts'
import {
  ENGINE_REDIRECT,
  type EngineSignUp,
  startSupabaseApp,
} from '../../../test/harness/fakes/supabase-simulator/supabase-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

/** Consents that users give at a managed engine alone, driven by the official client, beside those that they give here. */

const GRANTS = '/api/v3/oauth/grant'

let registered: SimulatedClient
let users = 0

const fixture = await openForFile(startSupabaseApp())
const { app, simulator } = fixture
beforeEach(() => {
  users += 1
  fixture.nextUser()
  registered = fixture.register(`App ${users}`)
})

const beginAuthorization = (scope?: string) => fixture.beginAuthorization(registered, scope)
const signUp = () => fixture.signUp()

type SignedUp = EngineSignUp

/** The user allows the app at the engine alone; returns the app's tokens. */
async function allowThere({ official }: SignedUp, scope?: string) {
  const { id, verifier } = await beginAuthorization(scope)
  const details = await official.oauth.getAuthorizationDetails(id)
  const covered = (details.data as { redirect_url?: string } | null)?.redirect_url
  const approved =
    covered ?? (await official.oauth.approveAuthorization(id, { skipBrowserRedirect: true })).data?.redirect_url
  return redeem(new URL(approved ?? '').searchParams.get('code') ?? '', verifier)
}

async function redeem(code: string, verifier: string) {
  return (await fixture.askToken(registered, { grant_type: 'authorization_code', code, code_verifier: verifier })).body
}

/** The browser comes to the page of this service, signs in there with the provider and sees it again. */
async function openPage(signedUp: SignedUp, scope?: string) {
  const { id, verifier } = await beginAuthorization(scope)
  const path = `/auth/oauth/engine?authorization_id=${id}`
  const { browser } = signedUp
  const page = await browser.get(path)
  const [, href = ''] = /href="(\/api\/v3\/auth\/login\/oauth\/google[^"]*)"/.exec(String(page.body)) ?? []
  const started = await browser.get(href.replaceAll('&amp;', '&'))
  const callback = await simulator.browse(String(started.headers.location))
  await browser.get(localOf(callback).replace('/callback', '/callback-redirect'))
  return { page: await browser.get(path), verifier }
}

const listGrants = async (userId: string) => (await app.admin('GET', `${GRANTS}?filters=user|eq|${userId}`)).body.data
const exchange = (token: string) => app.anonymous('POST', '/api/v3/oauth/exchange', { token })

describe('a consent that was given at the engine', () => {
  test('is recorded when it is covered, listed, and ends everything when it is taken back here', async () => {
    const signedUp = await signUp()
    const tokens = await allowThere(signedUp)
    expect(await listGrants(signedUp.userId)).toEqual([])
    // Less than what was allowed is covered, too.
    const { page } = await openPage(signedUp, 'email')
    expect(String(page.headers.refresh)).toContain(`${ENGINE_REDIRECT}?code=`)
    const [grant] = await listGrants(signedUp.userId)
    expect(grant).toMatchObject({ client: registered.client_id, scopes: ['openid', 'email'] })
    const opened = await exchange(tokens.access_token ?? '')
    expect(readPayload(opened.body.jwt)).toMatchObject({ grant_id: grant.document_id })
    expect((await app.admin('DELETE', `${GRANTS}/${grant.document_id}`)).status).toBe(200)
    expect((await exchange(tokens.access_token ?? '')).status).toBe(401)
    expect((await app.callAs(opened.body.jwt)('GET', '/api/v3/auth/session')).status).toBe(401)
  })

  test('of more scopes than were recorded is listed with all of them, once it is covered again', async () => {
    const signedUp = await signUp()
    await allowThere(signedUp, 'email')
    await openPage(signedUp, 'email')
    await allowThere(signedUp, 'openid email profile')
    await openPage(signedUp, 'email')
    const [grant] = await listGrants(signedUp.userId)
    expect(grant.scopes.toSorted()).toEqual(['email', 'openid', 'profile'])
  })

  test('is not recorded by a question of another app, which it does not answer', async () => {
    const signedUp = await signUp()
    await allowThere(signedUp)
    registered = fixture.register(`Other ${users}`)
    expect((await openPage(signedUp)).page.headers.refresh).toBeUndefined()
    expect(await listGrants(signedUp.userId)).toEqual([])
  })

  test('is removed by its user on the page of the apps', async () => {
    const signedUp = await signUp()
    const tokens = await allowThere(signedUp)
    await openPage(signedUp, 'email')
    const [grant] = await listGrants(signedUp.userId)
    const page = await signedUp.browser.get('/auth/apps')
    const form = { ...readForm(String(page.body), '/auth/apps/remove'), id: grant.document_id }
    const removed = await app.anonymous('POST', '/auth/apps/remove', new URLSearchParams(form).toString(), {
      cookie: [...signedUp.browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      origin: app.app.baseUrl(),
      'content-type': 'application/x-www-form-urlencoded',
    })
    expect([removed.status, removed.headers.location]).toEqual([303, '/auth/apps?notice=removed'])
    expect(await listGrants(signedUp.userId)).toEqual([])
    expect((await exchange(tokens.access_token ?? '')).status).toBe(401)
  })

  test('that was taken back here is asked for again until the engine has ended it', async () => {
    const signedUp = await signUp()
    await allowThere(signedUp)
    await openPage(signedUp)
    const [grant] = await listGrants(signedUp.userId)
    await app.admin('DELETE', `${GRANTS}/${grant.document_id}`)
    app.clock.advance(1_000)
    const { route } = simulator.oauth
    simulator.oauth.route = async (request, at, body) =>
      request.method === 'DELETE' ? { status: 500, body: 'no' } : route(request, at, body)
    const failed = await openPage(signedUp)
    simulator.oauth.route = route
    expect(failed.page.status).toBe(503)
    expect((await openPage(signedUp)).page.headers.refresh).toBeUndefined()
    expect(await listGrants(signedUp.userId)).toEqual([])
  })

  test('revives nothing of the API that was taken back here, and has a grant of its own', async () => {
    const signedUp = await signUp()
    await allowThere(signedUp)
    await openPage(signedUp)
    const [first] = await listGrants(signedUp.userId)
    await app.database.pool.query(
      `insert into oauth_engine_decision (authorization_id, "user", client_id, decision, api_scope, authorize_url, claimed_at,
        decided_at) values ($1, $2, $3, 'approve', 'contract:read', 'sealed', $4, $4)`,
      [`of-${users}`, signedUp.userId, registered.client_id, new Date(app.clock.now())],
    )
    await app.admin('DELETE', `${GRANTS}/${first.document_id}`)
    app.clock.advance(1_000)
    // The page ends it at the engine, and asks; the user then allows it at the engine alone.
    expect((await openPage(signedUp)).page.headers.refresh).toBeUndefined()
    await allowThere(signedUp)
    await openPage(signedUp)
    const [next] = await listGrants(signedUp.userId)
    expect(next.document_id).not.toBe(first.document_id)
    const tokens = await allowThere(signedUp)
    expect(decodeJwt(tokens.access_token ?? '')).not.toHaveProperty('api_scope')
    expect(readPayload((await exchange(tokens.access_token ?? '')).body.jwt).grant_id).toBe(next.document_id)
  })

  test('that nobody has recorded gives its session no grant, never the session at the engine', async () => {
    const signedUp = await signUp()
    const tokens = await allowThere(signedUp)
    const opened = await exchange(tokens.access_token ?? '')
    expect(opened.status).toBe(200)
    expect(readPayload(opened.body.jwt)).not.toHaveProperty('grant_id')
  })

  test('stays out of the list while the user takes it back during the question', async () => {
    const signedUp = await signUp()
    await allowThere(signedUp)
    await openPage(signedUp)
    const [grant] = await listGrants(signedUp.userId)
    app.clock.advance(1_000)
    await app.database.pool.query('update engine_grant set revoked_at = $2, updated_at = $2 where document_id = $1', [
      grant.document_id,
      new Date(app.clock.now() + 60_000),
    ])
    await app.database.pool.query('update engine_grant set is_ended_there = true where document_id = $1', [
      grant.document_id,
    ])
    await openPage(signedUp)
    expect(await listGrants(signedUp.userId)).toEqual([])
  })
})
