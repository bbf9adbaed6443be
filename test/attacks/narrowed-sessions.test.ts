import { describe, expect, test } from 'vitest'
import type { TestAnswer } from '../harness/app/app.ts'
import { COMPANY_OIDC } from '../harness/app/connection-app.ts'
import { createNarrowedApp, ENTER, type TwoAccounts } from '../harness/app/narrowed-app.ts'
import { holdUser, race } from '../harness/plan/race.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Sessions of users of several accounts (docs/contract/connections.md#members-of-several-accounts). */
const t = await openForFile(
  createNarrowedApp({ env: { SIGN_IN_BY_MAIL: 'true', SSO_TARGETS: 'https://b.example.test' } }),
)

const sessionOf = async (jwt: string) => (await t.app.callAs(jwt)('GET', '/api/v3/auth/session')).body.data
const member = (account: string) => `/api/v3/identity/account/${account}/member`
const lastReason = async () => {
  const { body } = await t.app.admin('GET', '/api/v3/audit/log?filters=action|eq|login.oauth&page_size=1')
  return String(body.data[0].detail.reason)
}
const makeKey = async (jwt: string, body: object): Promise<TestAnswer> =>
  t.app.callAs(jwt)('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['account-member:*'], ...body })
/** A session that a handshake opened from another one. */
async function handshake(jwt: string): Promise<string> {
  const target = { target_url: 'https://b.example.test/' }
  const { body } = await t.app.callAs(jwt)('POST', '/api/v3/auth/sso/handshake', target)
  const token = new URL(body.data.redirect_url).searchParams.get('sso_token')
  return (await t.app.anonymous('POST', '/api/v3/auth/sso/exchange', { token })).body.jwt
}

describe('a session of a user of several accounts', () => {
  test('lacks the account that enforces its connection, at once, also one of before, and says by which connection', async () => {
    const world = await t.prepare()
    const before = await t.login(world)
    expect(await t.statuses(before, world)).toEqual([200, 200])
    await t.enforce(world)
    const after = await t.login(world)
    const path = `${ENTER}?connection=${world.connection}`
    for (const jwt of [before, after]) {
      expect(await t.statuses(jwt, world)).toEqual([403, 200])
      const { body } = await t.reach(jwt, world.closed)
      expect(body).toMatchObject({ code: 'connection_required', errors: [{ path: 'connection', message: path }] })
      const session = await sessionOf(jwt)
      expect(session.accounts).toMatchObject([{ document_id: world.open }])
      expect(session.account?.document_id).not.toBe(world.closed)
      expect(session.closed_accounts).toMatchObject([{ document_id: world.closed, connection: world.connection }])
    }
    await t.change(world, { is_enforced: false })
    for (const jwt of [before, after]) expect(await t.statuses(jwt, world)).toEqual([200, 200])
  })

  test('reaches it once the connection has proven the user there, and no other session does', async () => {
    const world = await t.narrow()
    const [browser, other] = [await t.enterPassword(world), await t.enterPassword(world)]
    const child = await handshake(browser.jwt)
    expect(await t.statuses(child, world)).toEqual([403, 200])
    const offer = `href="${ENTER}?connection=${world.connection}"`
    expect((await browser.visitor.get('/auth/')).body).toContain(offer)
    const answer = await t.proveSession(world, browser)
    expect((await browser.visitor.get('/auth/')).body).not.toContain(offer)
    expect([answer.status, answer.location]).toEqual([302, 'https://id.example.test/auth/'])
    expect(await t.statuses(browser.jwt, world)).toEqual([200, 200])
    expect(await t.statuses(child, world)).toEqual([200, 200])
    expect(await t.statuses(await handshake(browser.jwt), world)).toEqual([200, 200])
    expect(await t.statuses(other.jwt, world)).toEqual([403, 200])
    expect((await sessionOf(browser.jwt)).closed_accounts).toEqual([])
    // It opened no session of its own, and nobody is signed in by it.
    expect(answer.body).not.toContain('eyJ')
  })

  test('lacks it again when the hours of the connection are over, with those opened from it', async () => {
    const world = await t.narrow()
    await t.change(world, { session_hours: 1 })
    const browser = await t.enterPassword(world)
    await t.proveSession(world, browser)
    t.app.clock.advance(30 * 60_000)
    const child = await handshake(browser.jwt)
    expect(await t.statuses(child, world)).toEqual([200, 200])
    t.app.clock.advance(29 * 60_000)
    expect(await t.statuses(browser.jwt, world)).toEqual([200, 200])
    t.app.clock.advance(60_000)
    expect(await t.statuses(child, world)).toEqual([403, 200])
    const refreshed = await browser.visitor.get('/auth/')
    expect(refreshed.body).not.toBe('')
  })

  test('follows the groups of the person at a proof', async () => {
    const world = await t.narrow()
    const viewer = await t.findRole('account-viewer')
    await t.change(world, { oidc: { groups_claim: 'groups' }, group_roles: [{ group: 'readers', role: viewer }] })
    t.fixture.fakes.company.extraClaims = { groups: ['readers'] }
    await t.proveSession(world, await t.enterPassword(world))
    t.fixture.fakes.company.extraClaims = {}
    const { body } = await t.app.admin('GET', `${member(world.closed)}?filters=user|eq|${world.user}`)
    expect(body.data[0].roles).toContain(viewer)
  })

  test('is not opened by the connection, which signs in nobody of another account', async () => {
    const world = await t.narrow()
    await t.proveSession(world, await t.enterPassword(world))
    t.fixture.fakes.company.user = { sub: `sub-${world.user}`, email: world.email, isEmailVerified: true }
    const browser = t.browser()
    const start = `/api/v3/auth/login/oauth/${world.connection}?redirect_url=https://app.example.com`
    const step = await t.fixture.fakes.company.authorize(String((await browser.get(start)).headers.location))
    const answer = await browser.get(step.url.replace('/callback', '/callback-redirect'), 'application/json')
    expect(answer.body.code).toBe('social_login_failed')
    expect(await lastReason()).toContain('user_elsewhere')
  })

  test('keeps what reaches the account of an operator of the platform, and of an address of another domain', async () => {
    const world = await t.narrow()
    const guest = { ...world, email: `guest@other-${world.domain}` }
    await t.makeMember(guest.email, [world.closed, world.open], [await t.findRole('account-admin')])
    expect(await t.statuses(await t.login(guest), world)).toEqual([200, 200])
    const user = (await t.app.admin('GET', `/api/v3/identity/user/${world.user}`)).body.data
    const roles = [...user.roles, await t.findRole('administrator')]
    await t.app.admin('PATCH', `/api/v3/identity/user/${world.user}`, { roles })
    const jwt = await t.login(world)
    expect(await t.statuses(jwt, world)).toEqual([200, 200])
    await t.app.admin('PATCH', `/api/v3/identity/user/${world.user}`, { roles: user.roles })
    expect((await t.reach(jwt, world.open)).status).toBe(401)
    expect(await t.statuses(await t.login(world), world)).toEqual([403, 200])
  })

  test('of the user who enforces the connection keeps the account for its hours, so that a mistake can be undone', async () => {
    const world = await t.prepare()
    const [browser, other] = [await t.enterPassword(world), await t.enterPassword(world)]
    const path = `/api/v3/identity/account/${world.closed}/connection/${world.connection}`
    const change = (body: object) => t.app.callAs(browser.jwt)('PATCH', path, body)
    expect((await change({ is_enforced: true, session_hours: 1 })).status).toBe(200)
    expect(await t.statuses(browser.jwt, world)).toEqual([200, 200])
    expect(await t.statuses(other.jwt, world)).toEqual([403, 200])
    expect((await change({ is_enforced: false })).status).toBe(200)
    expect(await t.statuses(other.jwt, world)).toEqual([200, 200])
    expect((await change({ is_enforced: true })).status).toBe(200)
    t.app.clock.advance(3_599_000)
    expect(await t.statuses(await handshake(browser.jwt), world)).toEqual([200, 200])
    t.app.clock.advance(1_000)
    expect(await t.statuses(await t.login(world), world)).toEqual([403, 200])
  })
})

describe('a proof', () => {
  test.each<[string, (world: TwoAccounts) => object, string]>([
    ['of another address of the domain', ({ domain }) => ({ email: `eve@${domain}` }), 'other_person'],
    ['of an address outside of the domains', () => ({ email: 'ada@elsewhere.example' }), 'email_outside'],
    ['of an unverified address', () => ({ isEmailVerified: false }), 'email_unverified'],
    ['without an address', () => ({ email: null }), 'email_missing'],
  ])('%s opens nothing', async (_, person, reason) => {
    const world = await t.narrow()
    const browser = await t.enterPassword(world)
    expect([401, 403]).toContain((await t.proveSession(world, browser, person(world))).status)
    expect(await lastReason()).toContain(reason)
    expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
  })

  test('is of the same person as the first one, whatever address of the domain the provider says', async () => {
    const world = await t.narrow()
    const browser = await t.enterPassword(world)
    await t.proveSession(world, browser)
    const later = await t.enterPassword(world)
    await t.proveSession(world, later, { email: `ada.king@${world.domain}` })
    expect(await t.statuses(later.jwt, world)).toEqual([200, 200])
    const third = await t.enterPassword(world)
    await t.proveSession(world, third, { sub: 'somebody else' })
    expect(await lastReason()).toContain('subject_changed')
    expect(await t.statuses(third.jwt, world)).toEqual([403, 200])
    // A person whom the connection knows as another user.
    const eve = { ...world, email: `eve@${world.domain}` }
    await t.makeMember(eve.email, [world.closed, world.open], [await t.findRole('account-admin')])
    const hers = await t.enterPassword(eve)
    await t.proveSession(world, hers, { sub: `sub-${world.user}`, email: eve.email })
    expect(await lastReason()).toContain('other_person')
    expect((await t.reach(hers.jwt, world.closed)).body.code).toBe('connection_required')
  })

  test('of a user who has not verified the address opens nothing', async () => {
    const world = await t.narrow()
    const browser = await t.enterPassword(world)
    await t.app.database.pool.query('update "user" set email_verified_at = null where document_id = $1', [world.user])
    await t.proveSession(world, browser)
    expect(await lastReason()).toContain('member_unverified')
    expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
  })

  test('that another browser brings back opens nothing, in neither, and the right one opens once', async () => {
    const world = await t.narrow()
    const [attacker, victim] = [await t.enterPassword(world), await t.enterPassword(world)]
    // The attacker has the password, begins, and lures the owner to the provider.
    const path = await t.begin(world, attacker)
    expect((await victim.visitor.get(path)).status).toBe(401)
    expect(await lastReason()).toContain('foreign_browser')
    for (const { jwt } of [attacker, victim]) expect(await t.statuses(jwt, world)).toEqual([403, 200])
    expect((await attacker.visitor.get(path)).status).toBe(302)
    await t.app.database.pool.query('delete from connection_proof')
    expect((await attacker.visitor.get(path)).status).toBe(401)
    expect(await lastReason()).toContain('state_replayed')
    expect(await t.statuses(attacker.jwt, world)).toEqual([403, 200])
  })

  test('begins in a browser that is signed in alone', async () => {
    const world = await t.narrow()
    const { visitor, jwt } = await t.enterPassword(world)
    const signedOut = await t.app.anonymous('GET', `${ENTER}?connection=${world.connection}`)
    expect(String(signedOut.headers.location)).toContain('/auth/sign-in')
    // A bearer token is no browser.
    const byToken = await t.app.callAs(jwt)('GET', `${ENTER}?connection=${world.connection}`)
    expect(String(byToken.headers.location)).toContain('/auth/sign-in')
    const foreign = await visitor.get(`${ENTER}?connection=${world.connection}&redirect_url=https://evil.example/`)
    expect([foreign.status, foreign.location]).toEqual([422, undefined])
    const next = await visitor.get(`${ENTER}?connection=${world.connection}&next=//evil.example/`)
    expect(new URL(String(next.location)).host).toBe('login.company.example')
  })

  test('of the connection of another account is none', async () => {
    const [world, other] = [await t.narrow(), await t.narrow()]
    const browser = await t.enterPassword(world)
    const begun = await browser.visitor.get(`${ENTER}?connection=${other.connection}`)
    expect(begun.location).toBe('https://id.example.test/auth/')
    for (const id of ['x', world.user])
      expect((await browser.visitor.get(`${ENTER}?connection=${id}`)).status).toBe(302)
    const { rows } = await t.app.database.pool.query(
      'select from login_flow where session is not null and connection = $1',
      [other.connection],
    )
    expect(rows).toHaveLength(0)
    // The answer of one connection at the callback of the other.
    const path = await t.begin(world, browser)
    const swapped = await browser.visitor.get(path.replace(world.connection, other.connection))
    expect(swapped.status).toBe(401)
    expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
  })

  test('of a session that ended meanwhile, or of a removed member, opens nothing', async () => {
    const world = await t.narrow()
    const browser = await t.enterPassword(world)
    const path = await t.begin(world, browser)
    await t.app.callAs(browser.jwt)('POST', '/api/v3/auth/session/revoke')
    expect((await browser.visitor.get(path)).status).toBe(401)
    expect(await lastReason()).toContain('session_ended')
    const next = await t.enterPassword(world)
    const late = await t.begin(world, next)
    await t.app.admin('DELETE', member(world.closed), { user: world.user })
    expect((await next.visitor.get(late)).status).toBe(401)
    expect(await lastReason()).toContain('not_member')
    const roles = [await t.findRole('account-admin')]
    await t.app.admin('POST', member(world.closed), { user: world.user, roles })
    expect((await t.reach(next.jwt, world.closed)).body.code).toBe('connection_required')
  })

  test.each<[string, object, string]>([
    ['disabled', { is_enabled: false }, 'provider_unknown'],
    ['not enforced any more', { is_enforced: false }, 'proof_not_needed'],
  ])('by a connection that was %s meanwhile opens nothing', async (_, change, reason) => {
    const world = await t.narrow()
    const browser = await t.enterPassword(world)
    const path = await t.begin(world, browser)
    await t.change(world, change)
    const answer = await browser.visitor.get(path)
    expect([401, 404]).toContain(answer.status)
    if (answer.status === 401) expect(await lastReason()).toContain(reason)
    await t.change(world, { is_enabled: true, is_enforced: true })
    expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
  })
})

describe('what ends a proof', () => {
  const connectionPath = ({ closed, connection }: TwoAccounts) =>
    `/api/v3/identity/account/${closed}/connection/${connection}`

  test.each<[string, (world: TwoAccounts) => Promise<unknown>]>([
    ['disabling the connection', (world) => t.change(world, { is_enabled: false })],
    ['another client of its provider', (world) => t.change(world, { oidc: { ...COMPANY_OIDC, client_id: 'other' } })],
    ['opening the ways in', (world) => t.change(world, { is_enforced: false })],
    [
      'removing the domain',
      async (world) => {
        const [domain] = (await t.app.admin('GET', `${connectionPath(world)}/domain`)).body.data
        return t.app.admin('DELETE', `${connectionPath(world)}/domain/${domain.document_id}`)
      },
    ],
    [
      'removing the member',
      async (world) => {
        await t.app.admin('DELETE', member(world.closed), { user: world.user })
        const roles = [await t.findRole('account-admin')]
        return t.app.admin('POST', member(world.closed), { user: world.user, roles })
      },
    ],
  ])('%s does, and the session stays', async (_, end) => {
    const world = await t.narrow()
    const browser = await t.enterPassword(world)
    await t.proveSession(world, browser)
    const bound = (await makeKey(browser.jwt, { account: world.closed })).body.data.key
    expect((await t.reach(bound, world.closed)).status).toBe(200)
    await end(world)
    const { rows } = await t.app.database.pool.query('select from connection_proof where connection = $1', [
      world.connection,
    ])
    expect(rows).toHaveLength(0)
    // The ways in are closed again by the same provider.
    const { body } = await t.app.admin('GET', `${connectionPath(world)}/domain`)
    if (body.data.length === 0) await t.prove(world.closed, world.connection, world.domain)
    await t.change(world, { is_enabled: true, is_enforced: true })
    expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
    if (_ !== 'opening the ways in') expect((await t.reach(bound, world.closed)).status).toBe(401)
  })

  test('deleting the connection, or the account, does', async () => {
    for (const path of [connectionPath, ({ closed }: TwoAccounts) => `/api/v3/identity/account/${closed}`]) {
      const world = await t.narrow()
      const browser = await t.enterPassword(world)
      await t.proveSession(world, browser)
      expect((await t.app.admin('DELETE', path(world))).status).toBe(200)
      const { rows } = await t.app.database.pool.query(
        'select from connection_proof p join session s on s.document_id = p.session where s."user" = $1',
        [world.user],
      )
      expect(rows).toHaveLength(0)
      expect((await t.reach(browser.jwt, world.open)).status).toBe(200)
    }
  })

  test('a proof and an end at once leave nothing open', async () => {
    for (const end of [{ is_enabled: false }, { oidc: { ...COMPANY_OIDC, client_id: 'another' } }]) {
      const world = await t.narrow()
      const browser = await t.enterPassword(world)
      const path = await t.begin(world, browser)
      const requests = [() => browser.visitor.get(path), () => t.change(world, end)]
      await race<unknown>(t.app.database, holdUser(world.user), requests)
      await t.change(world, { is_enabled: true })
      expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
    }
  })

  test('a proof and the removal of the member at once leave no proof', async () => {
    const world = await t.narrow()
    const browser = await t.enterPassword(world)
    const path = await t.begin(world, browser)
    const remove = () => t.app.admin('DELETE', member(world.closed), { user: world.user })
    await race<unknown>(t.app.database, holdUser(world.user), [() => browser.visitor.get(path), remove])
    const roles = [await t.findRole('account-admin')]
    await t.app.admin('POST', member(world.closed), { user: world.user, roles })
    expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
  })
})
