import { beforeEach, describe, expect, test } from 'vitest'
import type { TestAnswer } from '../../../../test/harness/app/app.ts'
import { COMPANY_OIDC, createConnectionApp, PASSWORD } from '../../../../test/harness/app/connection-app.ts'
import { MOBILE_APP, pathOf, redirectUrlOf, WEB_APP } from '../../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../../base/id.ts'

let account: AccountId
let connection: string
let people = 0

const t = await openForFile(createConnectionApp({ env: { SIGN_IN_BY_MAIL: 'true' } }))

const domainOf = () => `corp${people}.example`

beforeEach(async () => {
  t.app.clock.advance(60_000)
  people += 1
  account = await t.makeAccount()
  connection = await t.connect(account)
  await t.prove(account, connection, domainOf())
  t.fixture.fakes.company.fault = undefined
})

interface Person {
  sub?: string
  email?: string | null
  isEmailVerified?: boolean
  name?: string
}

const ada = (change: Person = {}) => ({
  sub: `ada-${people}`,
  email: `ada@${domainOf()}`,
  isEmailVerified: true,
  name: 'Ada',
  ...change,
})

/** A whole sign-in by a connection, in a new browser. */
async function signIn(person = ada(), by = connection): Promise<TestAnswer> {
  t.fixture.fakes.company.user = person
  const browser = t.browser()
  const started = await browser.get(`${pathOf(by)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)
  if (started.status !== 302) return started
  const step = await t.fixture.fakes.company.authorize(String(started.headers.location))
  return browser.get(redirectUrlOf(step), 'application/json')
}

async function expectRefused(answer: TestAnswer, reason: string): Promise<void> {
  expect(answer.body.data?.jwt).toBeUndefined()
  expect(answer.status).toBeGreaterThanOrEqual(401)
  const { body } = await t.app.admin('GET', '/api/v3/audit/log?filters=action|eq|login.oauth&page_size=1')
  expect(body.data[0].detail.reason).toContain(reason)
}

const login = (email: string) => t.app.anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD })
const change = (body: object) =>
  t.app.admin('PATCH', `/api/v3/identity/account/${account}/connection/${connection}`, body)
const whoAmI = (answer: TestAnswer) => t.callOf(answer)('GET', '/api/v3/auth/session')

describe('a sign-in by a connection', () => {
  test('registers an unknown person as a member of the account alone, once, also from two browsers at once', async () => {
    const answers = await Promise.all([signIn(), signIn(), signIn()])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(new Set(answers.map(({ body }) => body.data.user.document_id)).size).toBe(1)
    expect(answers.filter(({ body }) => body.data.is_new_user)).toHaveLength(1)
    const first = answers[0] as TestAnswer
    expect(first.body.data.account.document_id).toBe(account)
    expect((await whoAmI(first)).body.data.accounts).toMatchObject([{ document_id: account }])
    expect((await whoAmI(first)).body.data.session).toMatchObject({ amr: ['fed'] })
  })

  test('lets nobody unknown in without just-in-time registration', async () => {
    await change({ is_jit: false })
    await expectRefused(await signIn(), 'jit_off')
  })

  test('signs a verified member of the account alone in, whom the provider then knows by its id', async () => {
    await change({ is_jit: false })
    const user = await t.makeMember(`ada@${domainOf()}`, [account])
    const first = await signIn()
    expect(first.body.data).toMatchObject({ user: { document_id: user }, is_new_user: false })
    // By its id alone, whatever address of the domain the provider says.
    const later = await signIn(ada({ email: `ada.king@${domainOf()}` }))
    expect(later.body.data.user).toMatchObject({ document_id: user, email: `ada@${domainOf()}` })
    await expectRefused(await signIn(ada({ sub: 'another' })), 'subject_changed')
  })

  test.each<[string, Person, string]>([
    ['an address outside of its domains', { email: 'ada@other.example' }, 'email_outside'],
    ['an address below its domain', { email: 'ada@sub.DOMAIN' }, 'email_outside'],
    ['an unverified address', { isEmailVerified: false }, 'email_unverified'],
    ['no address', { email: null }, 'email_missing'],
  ])('is refused with %s', async (_, person, reason) => {
    const email = person.email?.replace('DOMAIN', domainOf())
    await expectRefused(await signIn(ada({ ...person, ...(email && { email }) })), reason)
  })

  test('opens a session of its hours, with its account', async () => {
    await change({ session_hours: 1 })
    const answer = await signIn()
    const session = (await whoAmI(answer)).body.data.session
    expect(Date.parse(session.expires_at) - t.app.clock.now()).toBeLessThanOrEqual(3_600_000)
  })
})

describe('the provider of a hostile account', () => {
  test('signs nobody in who belongs to another account too', async () => {
    const other = await t.makeAccount('Other')
    await t.makeMember(`ada@${domainOf()}`, [account, other])
    await expectRefused(await signIn(), 'user_elsewhere')
  })

  test('signs nobody in who belongs to another account alone, or to none', async () => {
    await t.makeMember(`ada@${domainOf()}`, [await t.makeAccount('Other')])
    await expectRefused(await signIn(), 'user_elsewhere')
    await t.makeMember(`bob@${domainOf()}`, [])
    await expectRefused(await signIn(ada({ sub: 'bob', email: `bob@${domainOf()}` })), 'not_member')
  })

  test('signs no operator in', async () => {
    const email = `root@${domainOf()}`
    const user = await t.makeMember(email, [account])
    const roles = [await t.findRole('administrator')]
    const before = (await t.app.admin('GET', `/api/v3/identity/user/${user}`)).body.data.roles
    await t.app.admin('PATCH', `/api/v3/identity/user/${user}`, { roles: [...before, ...roles] })
    await expectRefused(await signIn(ada({ email })), 'operator')
  })

  test('signs no member in who has not verified the address', async () => {
    const user = await t.makeMember(`ada@${domainOf()}`, [account])
    await t.app.database.db
      .updateTable('user')
      .set({ email_verified_at: null })
      .where('document_id', '=', user)
      .execute()
    await expectRefused(await signIn(), 'member_unverified')
  })

  test('gets no user without a way in of its own into another account, and no operator made of one', async () => {
    const answer = await signIn()
    const user = answer.body.data.user.document_id
    const other = await t.makeAccount('Other')
    await t.app.database.pool.query('update "user" set email_verified_at = null where document_id = $1', [user])
    const added = await t.app.admin('POST', `/api/v3/identity/account/${other}/member`, { user })
    expect(added).toMatchObject({ status: 409, body: { code: 'conflict' } })
    const before = (await t.app.admin('GET', `/api/v3/identity/user/${user}`)).body.data.roles
    const roles = [...before, await t.findRole('administrator')]
    expect((await t.app.admin('PATCH', `/api/v3/identity/user/${user}`, { roles })).status).toBe(409)
    const own = { email: 'ada@private.example' }
    expect((await t.callOf(answer)('POST', '/api/v3/auth/user/email-change', own)).status).toBe(409)
  })

  test('reaches the users of no other connection by their ids', async () => {
    const first = await signIn()
    const other = await t.makeAccount('Other')
    const foreign = await t.connect(other)
    await t.prove(other, foreign, `x${domainOf()}`)
    // The same id at the same provider: another connection knows nobody by it.
    const second = await signIn(ada({ email: `ada@x${domainOf()}` }), foreign)
    expect(second.body.data.user.document_id).not.toBe(first.body.data.user.document_id)
    // And an address of the first account is none of its own.
    await expectRefused(await signIn(ada(), foreign), 'email_outside')
  })

  test('forgets its people when its issuer or its client changes', async () => {
    const first = await signIn()
    await change({ oidc: { ...COMPANY_OIDC, client_id: 'another-client' } })
    expect((await whoAmI(first)).status).toBe(401)
    const { rows } = await t.app.database.pool.query('select from connection_identity where connection = $1', [
      connection,
    ])
    expect(rows).toHaveLength(0)
  })
})

describe('what ends the access of a person', () => {
  const isOpen = async (answer: TestAnswer) => (await whoAmI(answer)).status === 200
  const memberPath = () => `/api/v3/identity/account/${account}/member`

  test.each<[string, (user: string) => Promise<unknown>]>([
    ['disabling the connection', () => change({ is_enabled: false })],
    ['deleting it', () => t.app.admin('DELETE', `/api/v3/identity/account/${account}/connection/${connection}`)],
    [
      'removing the domain',
      async () => {
        const path = `/api/v3/identity/account/${account}/connection/${connection}/domain`
        const [domain] = (await t.app.admin('GET', path)).body.data
        return t.app.admin('DELETE', `${path}/${domain.document_id}`)
      },
    ],
    ['deleting the account', () => t.app.admin('DELETE', `/api/v3/identity/account/${account}`)],
    ['removing the member', (user) => t.app.admin('DELETE', memberPath(), { user })],
    ['disabling the user', (user) => t.app.admin('POST', `/api/v3/identity/user/${user}/disable`)],
    ['deleting the user', (user) => t.app.admin('DELETE', `/api/v3/identity/user/${user}`)],
  ])('%s ends its sessions, refreshes and keys, and opens none afterwards', async (_, end) => {
    const answer = await signIn()
    const user = answer.body.data.user.document_id
    const key = await t.callOf(answer)('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['contract:*'] })
    const ended = (await end(user)) as TestAnswer
    expect(ended.status).toBe(200)
    expect(await isOpen(answer)).toBe(false)
    const refresh = { refresh_token: answer.body.data.refresh_token }
    expect((await t.app.anonymous('POST', '/api/v3/auth/session/refresh', refresh)).status).toBe(401)
    const byKey = t.app.callAs(key.body.data.key)
    expect((await byKey('GET', '/api/v3/auth/session')).status).toBe(401)
    if (_ !== 'deleting the user') expect((await signIn()).body.data?.jwt).toBeUndefined()
  })

  test('a sign-in that is under way when the connection is disabled opens nothing', async () => {
    t.fixture.fakes.company.user = ada()
    const browser = t.browser()
    const started = await browser.get(`${pathOf(connection)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)
    const step = await t.fixture.fakes.company.authorize(String(started.headers.location))
    await change({ is_enabled: false })
    expect((await browser.get(redirectUrlOf(step), 'application/json')).body.code).toBe('provider_unknown')
    // Nor when it is enabled again: the code is spent by nobody, and the flow lives.
    await change({ is_enabled: true })
    expect((await browser.get(redirectUrlOf(step), 'application/json')).status).toBe(200)
  })

  test('a one-time code of an app ends with the connection', async () => {
    const { createHash } = await import('node:crypto')
    const verifier = 'v'.repeat(64)
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const code = async () => {
      t.fixture.fakes.company.user = ada()
      const browser = t.browser()
      const query = { redirect_url: MOBILE_APP, code_challenge: challenge, code_challenge_method: 'S256' }
      const started = await browser.get(`${pathOf(connection)}?${new URLSearchParams(query)}`)
      const step = await t.fixture.fakes.company.authorize(String(started.headers.location))
      const { headers } = await browser.get(redirectUrlOf(step), 'application/json')
      return new URL(String(headers.location)).searchParams.get('code')
    }
    const exchange = async (text: string | null) =>
      t.app.anonymous('POST', '/api/v3/auth/login/code', { code: text, code_verifier: verifier })
    const signedIn = await exchange(await code())
    expect(signedIn.status).toBe(200)
    expect(signedIn.body.data.account.document_id).toBe(account)
    const late = await code()
    await change({ is_enabled: false })
    expect((await exchange(late)).status).toBe(401)
    await change({ is_enabled: true })
    expect((await exchange(late)).status).toBe(401)
  })
})

describe('an enforced connection', () => {
  test('closes password and mail to its members, with the same answer as ever to a wrong password', async () => {
    const email = `ada@${domainOf()}`
    await t.makeMember(email, [account])
    const before = await login(email)
    expect(before.status).toBe(200)
    await change({ is_enforced: true })
    // What was opened by the closed ways ends.
    expect((await whoAmI(before)).status).toBe(401)
    expect(await login(email)).toMatchObject({ status: 403, body: { code: 'connection_required' } })
    const wrong = await t.app.anonymous('POST', '/api/v3/auth/login/local', { email, password: 'not this one' })
    const unknown = await login(`nobody@${domainOf()}`)
    expect([wrong.status, wrong.body.code, wrong.body.detail]).toEqual([
      unknown.status,
      unknown.body.code,
      unknown.body.detail,
    ])
    expect((await signIn()).status).toBe(200)
    await change({ is_enforced: false })
    expect((await login(email)).status).toBe(200)
  })

  test('leaves operators, other addresses and users of other accounts their ways in', async () => {
    await change({ is_enforced: true })
    const operator = await t.makeMember(`root@${domainOf()}`, [account])
    const before = (await t.app.admin('GET', `/api/v3/identity/user/${operator}`)).body.data.roles
    const roles = [...before, await t.findRole('administrator')]
    await t.app.admin('PATCH', `/api/v3/identity/user/${operator}`, { roles })
    await t.makeMember(`guest${people}@guest.example`, [account])
    await t.makeMember(`free@${domainOf()}`, [await t.makeAccount('Other')])
    for (const email of [`root@${domainOf()}`, `guest${people}@guest.example`, `free@${domainOf()}`])
      expect((await login(email)).status).toBe(200)
  })

  test('leaves a member of another account too its ways in, which do not open its account', async () => {
    const other = await t.makeAccount('Other')
    const user = await t.makeMember(`ada@${domainOf()}`, [other])
    await change({ is_enforced: true })
    const added = await t.app.admin('POST', `/api/v3/identity/account/${account}/member`, { user })
    expect(added.status).toBe(201)
    const answer = await login(`ada@${domainOf()}`)
    expect(answer.status).toBe(200)
    const { data } = (await whoAmI(answer)).body
    expect(data.accounts).toMatchObject([{ document_id: other }])
    const enter = `/auth/organization/enter?connection=${connection}`
    expect(data.closed_accounts).toEqual([{ document_id: account, name: 'Company', connection, enter_path: enter }])
  })
})

describe('roles by groups', () => {
  const rolesOf = async (user: string) => {
    const { body } = await t.app.admin('GET', `/api/v3/identity/account/${account}/member?filters=user|eq|${user}`)
    return body.data[0].roles as string[]
  }

  test('follow the groups at each sign-in, and leave other roles alone', async () => {
    const [admin, viewer, developer] = await Promise.all(
      ['account-admin', 'account-viewer', 'account-developer'].map(t.findRole),
    )
    await change({
      oidc: { groups_claim: 'groups' },
      default_role: viewer,
      group_roles: [
        { group: 'admins', role: admin },
        { group: 'builders', role: developer },
      ],
    })
    const withGroups = (groups: unknown, person: Person = {}) => {
      const claims = t.fixture.fakes.company
      claims.extraClaims = { groups }
      return signIn(ada(person))
    }
    const boss = await withGroups(['admins'], { sub: `boss-${people}`, email: `boss@${domainOf()}` })
    const user = (await withGroups(['admins', 'builders'])).body.data.user.document_id
    expect(await rolesOf(user)).toEqual([admin, developer].sort())
    await withGroups(['builders'])
    expect(await rolesOf(user)).toEqual([developer])
    await withGroups([])
    expect(await rolesOf(user)).toEqual([viewer])
    const extra = { name: `extra-${people}`, is_account_scoped: true, permissions: ['contract:*'] }
    const given = (await t.app.admin('POST', '/api/v3/identity/role', extra)).body.data.document_id
    const member = { user, roles: [given, viewer] }
    await t.app.admin('PATCH', `/api/v3/identity/account/${account}/member`, member)
    await withGroups('builders')
    expect(await rolesOf(user)).toEqual([developer, given].sort())
    // The last administrator of the account keeps its role.
    await withGroups(['builders'], { sub: `boss-${people}`, email: `boss@${domainOf()}` })
    expect(await rolesOf(boss.body.data.user.document_id)).toEqual([admin, developer].sort())
    t.fixture.fakes.company.extraClaims = {}
  })
})
