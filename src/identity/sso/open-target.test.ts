import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { createSocialApp, type SocialApp, WEB_APP } from '../../../test/harness/app/social-app.ts'
import { readPayload } from '../../../test/harness/app/sso-app.ts'
import { buildPageVisitor, PAGE_ENV, type PageReply } from '../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const ORIGIN = new URL(WEB_APP).origin

const social = await openForFile(createSocialApp({ env: { SSO_TARGETS: ORIGIN } }))

const exchange = (token: string | null) => social.app.anonymous('POST', '/api/v3/auth/sso/exchange', { token })
const signIn = async (sub: string, app: SocialApp = social) => {
  app.seat('google', { sub })
  return (await app.signIn(app.browser(), 'google')).body.data
}

test('a sign-in with a provider continues at a target on another domain with a handshake', async () => {
  const { redirect_url, jwt } = await signIn('arrives')
  const url = new URL(redirect_url)
  expect(`${url.origin}${url.pathname}`).toBe(WEB_APP)
  const answer = await exchange(url.searchParams.get('sso_token'))
  expect(answer.status).toBe(200)
  const session = await social.app.callAs(answer.body.jwt)('GET', '/api/v3/auth/session')
  expect(session.body.data.session).toMatchObject({ parent: readPayload(jwt).sid, amr: ['fed', 'sso'] })
})

test('the session at the target says how and when the user signed in', async () => {
  const { redirect_url, jwt } = await signIn('proves')
  social.app.clock.advance(30_000)
  const answer = await exchange(new URL(redirect_url).searchParams.get('sso_token'))
  const { auth_time } = readPayload(jwt)
  expect(readPayload(answer.body.jwt)).toMatchObject({ auth_time, amr: ['fed', 'sso'] })
})

test('a sign-in that returns to an app that is no target gets its URL back', async () => {
  await using other = await createSocialApp()
  expect((await signIn('returns', other)).redirect_url).toBe(WEB_APP)
})

test('a sign-in that returns to a host of the session cookie gets its URL back', async () => {
  const env = {
    BASE_URL: 'https://id.example.com',
    SESSION_COOKIE_DOMAIN: 'example.com',
    SSO_TARGETS: ORIGIN,
  }
  await using sibling = await createSocialApp({ env })
  expect((await signIn('stays', sibling)).redirect_url).toBe(WEB_APP)
})

test('the sign-in page continues at a target with a handshake, after the form and without it, and audits each', async () => {
  const env = { ...PAGE_ENV, AUTH_REDIRECT_ALLOW_LIST: ORIGIN, SSO_TARGETS: ORIGIN }
  await using app = await createTestApp({ env })
  const user = { email: 'page@example.com', password: 'correct horse battery' }
  await app.admin('POST', '/api/v3/identity/user', user)
  const visitor = buildPageVisitor(app)
  const path = `/auth/sign-in?redirect_url=${encodeURIComponent(WEB_APP)}`
  await visitor.get(path)
  const arrive = async (reply: PageReply) => {
    expect(reply.location).toMatch(/^\/auth\/continue\?/)
    return (await visitor.follow(reply)).location
  }
  const locations = [await arrive(await visitor.post('/auth/sign-in', user)), await arrive(await visitor.get(path))]
  const parent = readPayload(visitor.cookies.get('signalbox_session')?.value ?? '').sid
  for (const location of locations) {
    const url = new URL(location ?? '')
    expect(`${url.origin}${url.pathname}`).toBe(WEB_APP)
    const token = url.searchParams.get('sso_token')
    const answer = await app.anonymous('POST', '/api/v3/auth/sso/exchange', { token })
    expect(answer.status).toBe(200)
    const { session } = (await app.callAs(answer.body.jwt)('GET', '/api/v3/auth/session')).body.data
    expect(session.parent).toBe(parent)
  }
  const { rows } = await app.database.pool.query(
    "select session, detail->>'audience' as audience from audit_log where action = 'sso.handshake'",
  )
  expect(rows).toEqual(Array.from({ length: 2 }, () => ({ session: parent, audience: ORIGIN })))
})
