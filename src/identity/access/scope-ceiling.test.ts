import { describe, expect, test } from 'vitest'
import { createSsoApp, readPayload, signForeign, TARGET } from '../../../test/harness/app/sso-app.ts'
import { CLIENT_ID, openClientSession } from '../../../test/harness/browser/client-session.ts'
import { buildPageVisitor } from '../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { type AccountId, buildIdMaker, type UserId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { refreshSession } from '../session/refresh.ts'
import { issueSession, loadSession } from '../session/session.ts'

const CONTRACT = '/api/v3/contract/contract'
const SCOPE = 'openid contract:read'

const sso = await openForFile(createSsoApp())

const now = () => new Date(sso.app.clock.now())
const deps = () => ({
  ids: buildIdMaker(sso.app.clock, systemRandom),
  random: systemRandom,
  keys: { secrets: ['the secret that signs sessions in tests'], issuer: () => sso.app.app.baseUrl() },
})

/** A user in an account, and an app that acts for it with these scopes. */
async function openApp(scope = SCOPE) {
  const account = (await sso.app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  const { userId, call, token } = await sso.app.signInMember([account])
  const session = await openClientSession(sso.app, userId, { scope, grantId: 'grant-1' })
  return { userId, user: call, token, session, call: sso.app.callAs(session.jwt), account: account as AccountId }
}

async function giveRole(user: UserId, permissions: string[]) {
  const name = `role ${systemRandom.bytes(4).toString('hex')}`
  const role = await sso.app.admin('POST', '/api/v3/identity/role', { name, permissions })
  return sso.app.admin('PATCH', `/api/v3/identity/user/${user}`, { roles: [role.body.data.document_id] })
}

describe('a session of an app', () => {
  test('reads what a scope opens and the user reaches, and changes nothing', async () => {
    const app = await openApp()
    expect((await app.call('GET', CONTRACT)).status).toBe(200)
    expect((await app.user('POST', CONTRACT, { account: app.account, name: 'One' })).status).toBe(201)
    const refused = await app.call('POST', CONTRACT, { account: app.account, name: 'Two' })
    expect(refused).toMatchObject({ status: 403, body: { detail: expect.stringContaining('contract:create') } })
  })

  test('gets no wider when the user gets another role', async () => {
    const app = await openApp()
    expect((await giveRole(app.userId, ['*:*'])).status).toBe(200)
    expect((await app.call('GET', '/api/v3/identity/user')).status).toBe(403)
    expect((await app.call('POST', CONTRACT, { account: app.account, name: 'Two' })).status).toBe(403)
    expect((await app.call('GET', CONTRACT)).status).toBe(200)
  })

  test('gets narrower at once when the user loses a permission', async () => {
    const app = await openApp('webhook:read')
    expect((await app.call('GET', '/api/v3/webhook/webhook')).status).toBe(403)
    await giveRole(app.userId, ['webhook:*'])
    expect((await app.call('GET', '/api/v3/webhook/webhook')).status).toBe(200)
    await sso.app.admin('PATCH', `/api/v3/identity/user/${app.userId}`, { roles: [] })
    expect((await app.call('GET', '/api/v3/webhook/webhook')).status).toBe(403)
  })

  test('has the app, the scopes and the grant in its JWT, and a user has none of them', async () => {
    const app = await openApp()
    expect(readPayload(app.session.jwt)).toMatchObject({ client_id: CLIENT_ID, scope: SCOPE, grant_id: 'grant-1' })
    for (const name of ['client_id', 'scope', 'grant_id']) expect(readPayload(app.token)).not.toHaveProperty(name)
  })

  test('is judged by its row, not by the claims of the JWT', async () => {
    const app = await openApp()
    const { pool } = sso.app.database
    await pool.query('update session set scope = $2 where document_id = $1', [app.session.sessionId, 'openid'])
    expect((await app.call('GET', CONTRACT)).status).toBe(403)
  })

  test('keeps app, scopes and grant at a refresh', async () => {
    const app = await openApp()
    const keyring = buildKeyring(['the secret that seals in tests, 32 bytes'], systemRandom)
    const refreshed = await inTransaction(sso.app.database.db, (tx) =>
      refreshSession({ ...deps(), keyring }, tx, {
        refreshToken: app.session.refreshToken ?? '',
        origin: { address: null, userAgent: null },
        now: now(),
      }),
    )
    if (refreshed.kind === 'refused') throw new Error(refreshed.reason)
    expect(readPayload(refreshed.issued.jwt)).toMatchObject({ client_id: CLIENT_ID, scope: SCOPE, grant_id: 'grant-1' })
    expect(refreshed.session.client).toEqual({ id: CLIENT_ID, scope: SCOPE, grantId: 'grant-1' })
  })

  test('hands its ceiling on to a session that is opened from it', async () => {
    const app = await openApp()
    const parent = await loadSession(sso.app.database.db, app.session.sessionId)
    const child = await inTransaction(sso.app.database.db, (tx) =>
      issueSession(deps(), tx, {
        userId: app.userId,
        parent,
        origin: { address: null, userAgent: null },
        now: now(),
      }),
    )
    expect(readPayload(child?.jwt ?? '')).toMatchObject({ client_id: CLIENT_ID, scope: SCOPE })
  })

  test('shows the app and what it may do to whom it reads', async () => {
    const app = await openApp('session:read contract:read')
    const { data } = (await app.call('GET', '/api/v3/auth/session')).body
    expect(data.session).toMatchObject({ client_id: CLIENT_ID, scope: 'session:read contract:read' })
    expect(data.key_permissions).toEqual(['contract:find-all', 'contract:find-one', 'session:find-one'])
    const own = (await app.user('GET', '/api/v3/auth/session')).body.data
    expect(own.session).toMatchObject({ client_id: null, scope: null })
  })

  test('stands in the list of sessions with its app, and is no device', async () => {
    const app = await openApp()
    const { body } = await app.user('GET', `/api/v3/identity/session?filters=client_id|eq|${CLIENT_ID}`)
    expect(body.data).toMatchObject([{ document_id: app.session.sessionId, client_id: CLIENT_ID, scope: SCOPE }])
    const visitor = buildPageVisitor(sso.app)
    visitor.cookies.set('signalbox_session', { value: app.token, path: '/' })
    const page = await visitor.get('/auth/devices')
    expect(page.status).toBe(200)
    expect(page.body).not.toContain(app.session.sessionId)
  })

  test('ends when the user is disabled', async () => {
    const app = await openApp()
    await sso.app.admin('POST', `/api/v3/identity/user/${app.userId}/disable`)
    expect((await app.call('GET', CONTRACT)).status).toBe(401)
  })
})

describe('an app cannot leave its ceiling', () => {
  test.each([
    ['POST', '/api/v3/auth/sso/handshake', { target_url: TARGET }],
    ['POST', '/api/v3/auth/password/change', { current_password: 'x', new_password: 'correct horse battery' }],
    ['PATCH', '/api/v3/auth/user', { name: 'Taken' }],
    ['DELETE', '/api/v3/auth/user', { email: 'a@example.com' }],
    ['POST', '/api/v3/auth/user/email-change', { email: 'a@example.com' }],
    ['POST', '/api/v3/identity/api-key', { name: 'key', permissions: ['contract:find-all'] }],
    ['POST', '/api/v3/auth/session/revoke', { all: true }],
    ['POST', '/api/v3/identity/identity/link/google', {}],
  ] as const)('by %s %s', async (method, path, body) => {
    const app = await openApp('openid profile email offline_access session:read contract:read contract:write')
    expect(await app.call(method, path, body)).toMatchObject({ status: 403, body: { code: 'permission_denied' } })
  })

  test('by its JWT as the cookie of a browser', async () => {
    const app = await openApp()
    const visitor = buildPageVisitor(sso.app)
    visitor.cookies.set('signalbox_session', { value: app.session.jwt, path: '/' })
    const page = await visitor.get('/auth/devices')
    expect([page.status, page.location]).toEqual([303, '/auth/sign-in?next=%2Fauth%2Fdevices'])
  })

  test('by its JWT inside a handshake of another issuer', async () => {
    const app = await openApp()
    const user = { userId: app.userId, sessionId: app.session.sessionId, jwt: app.session.jwt }
    const answer = await sso.exchange(signForeign(user, sso.seconds()))
    expect(answer).toMatchObject({ status: 401, body: { code: 'sso_exchange_failed' } })
    expect(await sso.entriesOf(answer)).toMatchObject([{ detail: { reason: 'session_of_app' } }])
  })
})

describe('the audit log', () => {
  const entriesOf = async (clientId: string) =>
    (await sso.app.admin('GET', `/api/v3/audit/log?filters=client_id|eq|${clientId}`)).body.data

  test('names the app beside the user, for what it did and for what it was refused', async () => {
    const { account, userId } = await openApp()
    const session = await openClientSession(sso.app, userId, { id: 'audited-app', scope: 'contract:write' })
    const call = sso.app.callAs(session.jwt)
    expect((await call('POST', CONTRACT, { account, name: 'One' })).status).toBe(201)
    expect((await call('GET', CONTRACT)).status).toBe(403)
    const seen = { user: userId, session: session.sessionId, client_id: 'audited-app' }
    expect(await entriesOf('audited-app')).toMatchObject([
      { action: 'contract.find-all', outcome: 'failure', ...seen },
      { action: 'contract.create', outcome: 'success', ...seen },
    ])
  })

  test('names no app for what the user does itself', async () => {
    const { account, user } = await openApp()
    const made = await user('POST', CONTRACT, { account, name: 'Own' })
    const target = made.body.data.document_id
    const { body } = await sso.app.admin('GET', `/api/v3/audit/log?filters=target|eq|${target}`)
    expect(body.data).toMatchObject([{ action: 'contract.create', client_id: null }])
  })
})
