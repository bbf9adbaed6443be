import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestApp, type TestAnswer } from '../harness/app/app.ts'
import { COMPANY_OIDC } from '../harness/app/connection-app.ts'
import { startOauthFixture } from '../harness/browser/oauth-service.ts'
import { COLUMNS, type Column, openEverything, openFlows } from '../harness/browser/opened-access.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/**
 * What the ends of connections leave of everything that a member has open, in two processes
 * (docs/contract/connections.md#what-ends-the-access-of-a-connection). Realtime:
 * test/concurrency/realtime-session-ends.test.ts.
 */

const ACCOUNTS = '/api/v3/identity/account'
/** That of the users of the fixture. */
const DOMAIN = 'example.com'

const fixture = await openForFile(startOauthFixture())
const env = { APP_ENV: 'development', BASE_URL: fixture.baseUrl, RATE_LIMIT_STRICT_PER_MINUTE: '100000' }
/** Another process on the same database. */
const other = await openForFile(createTestApp({ database: fixture.app.database, clock: fixture.app.clock, env }))
const flows = await openFlows(fixture)

let account: string
let path: string
let domain: string
beforeEach(async () => {
  account = (await succeed('POST', ACCOUNTS, { name: 'Corp' })).body.data.document_id
  const body = { kind: 'oidc', name: 'Corp', is_jit: true, oidc: COMPANY_OIDC }
  const connections = `${ACCOUNTS}/${account}/connection`
  path = `${connections}/${(await succeed('POST', connections, body)).body.data.document_id}`
  domain = await claim(DOMAIN)
})
afterEach(() => fixture.app.admin('DELETE', path))

async function succeed(method: 'DELETE' | 'PATCH' | 'POST', at: string, body?: object): Promise<TestAnswer> {
  const answer = await fixture.app.admin(method, at, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer
}
const claim = async (name: string) => (await succeed('POST', `${path}/domain`, { domain: name })).body.data.document_id
const prove = (id: string) => succeed('POST', `${path}/domain/${id}/approve`)
const change = (body: object) => succeed('PATCH', path, body)

/** Lets the connection know a user, as a sign-in by it does. */
async function know(user: string): Promise<void> {
  const { ids } = fixture.app.app
  await fixture.app.database.pool.query(
    `insert into connection_identity (document_id, connection, subject, "user", last_login_at, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $5, $5)`,
    [ids.next(), path.split('/').at(-1), `subject of ${user}`, user, new Date(fixture.app.clock.now())],
  )
}

type Act = (user: string) => Promise<unknown>

/** Acts on a member whom the connection knows. */
const OF_KNOWN: readonly (readonly [string, Act, readonly Column[]])[] = [
  ['another name, roles and hours', () => change({ name: 'Other', session_hours: 1, is_jit: false }), COLUMNS],
  ['another secret', () => change({ oidc: { ...COMPANY_OIDC, client_secret: 'a new secret' } }), COLUMNS],
  ['disabling the connection', () => change({ is_enabled: false }), []],
  ['deleting it', () => succeed('DELETE', path), []],
  ['another client', () => change({ oidc: { ...COMPANY_OIDC, client_id: 'another' } }), []],
  ['another issuer', () => change({ oidc: { ...COMPANY_OIDC, issuer: 'https://other.company.example' } }), []],
  ['removing the domain', () => succeed('DELETE', `${path}/domain/${domain}`), []],
  ['removing another domain', async () => succeed('DELETE', `${path}/domain/${await claim('else.example')}`), COLUMNS],
  ['removing the member', (user) => succeed('DELETE', `${ACCOUNTS}/${account}/member`, { user }), []],
  ['deleting the account', () => succeed('DELETE', `${ACCOUNTS}/${account}`), []],
  ['enforcing it', () => change({ is_enforced: true }), ['API key']],
]

test.each(OF_KNOWN)('%s leaves a known member exactly what the table says', async (_name, act, left) => {
  await prove(domain)
  const { user, listLiving } = await openEverything(fixture, other, flows)
  await succeed('POST', `${ACCOUNTS}/${account}/member`, { user: user.userId })
  await know(user.userId)
  await act(user.userId)
  expect((await listLiving()).toSorted()).toEqual([...left].toSorted())
})

/** Acts on a member who never signed in by the connection. */
const OF_MEMBER: readonly (readonly [string, Act, readonly Column[]])[] = [
  ['disabling the connection', () => change({ is_enabled: false }), COLUMNS],
  ['deleting it', () => succeed('DELETE', path), COLUMNS],
  ['enforcing it before its domain is proven', () => change({ is_enforced: true }), COLUMNS],
  ['enforcing a disabled one', () => change({ is_enabled: false, is_enforced: true }), COLUMNS],
  [
    'proving the domain of an enforced one',
    async () => {
      await change({ is_enforced: true })
      await prove(domain)
    },
    ['API key'],
  ],
  [
    'enabling an enforced one',
    async () => {
      await change({ is_enabled: false, is_enforced: true })
      await prove(domain)
      await change({ is_enabled: true })
    },
    ['API key'],
  ],
]

test.each(OF_MEMBER)('%s leaves another member exactly what the table says', async (_name, act, left) => {
  const { user, listLiving } = await openEverything(fixture, other, flows)
  await succeed('POST', `${ACCOUNTS}/${account}/member`, { user: user.userId })
  await act(user.userId)
  expect((await listLiving()).toSorted()).toEqual([...left].toSorted())
})

const ROLES = '/api/v3/identity/role'
let roles = 0
async function makeRole(): Promise<string> {
  roles += 1
  const body = { name: `operators ${roles}`, permissions: ['contract:find-all'] }
  return (await succeed('POST', ROLES, body)).body.data.document_id
}

/** Acts on the role beyond its accounts by which a member keeps its ways in. */
const OF_ROLE: readonly (readonly [string, (role: string) => Promise<unknown>, readonly Column[]])[] = [
  ['deleting it', (role) => succeed('DELETE', `${ROLES}/${role}`), ['API key']],
  ['its limit to accounts', (role) => succeed('PATCH', `${ROLES}/${role}`, { is_account_scoped: true }), ['API key']],
  ['fewer permissions', (role) => succeed('PATCH', `${ROLES}/${role}`, { permissions: [] }), COLUMNS],
]

test.each(OF_ROLE)(
  '%s leaves a member whose account closed its ways in exactly what the table says',
  async (_name, act, left) => {
    const { user, listLiving } = await openEverything(fixture, other, flows)
    const role = await makeRole()
    await give(user.userId, [role])
    await succeed('POST', `${ACCOUNTS}/${account}/member`, { user: user.userId })
    await prove(domain)
    await change({ is_enforced: true })
    await act(role)
    expect((await listLiving()).toSorted()).toEqual([...left].toSorted())
  },
)

test.each([
  ['who keeps another role beyond its accounts', { hasOther: true, isMember: true, isEnforced: true }],
  ['whose account lets its members in', { hasOther: false, isMember: true, isEnforced: false }],
  ['of another account', { hasOther: false, isMember: false, isEnforced: true }],
])('deleting a role leaves a user %s everything', async (_name, { hasOther, isMember, isEnforced }) => {
  const { user, listLiving } = await openEverything(fixture, other, flows)
  const role = await makeRole()
  await give(user.userId, hasOther ? [role, await makeRole()] : [role])
  const joined = isMember ? account : (await succeed('POST', ACCOUNTS, { name: 'Next' })).body.data.document_id
  await succeed('POST', `${ACCOUNTS}/${joined}/member`, { user: user.userId })
  await prove(domain)
  if (isEnforced) await change({ is_enforced: true })
  await succeed('DELETE', `${ROLES}/${role}`)
  expect((await listLiving()).toSorted()).toEqual([...COLUMNS].toSorted())
})

async function give(user: string, more: readonly string[]): Promise<void> {
  const { roles: held } = (await fixture.app.admin('GET', `/api/v3/identity/user/${user}`)).body.data
  await succeed('PATCH', `/api/v3/identity/user/${user}`, { roles: [...held, ...more] })
}

test('the domain of a deleted account can be proven elsewhere', async () => {
  await prove(domain)
  await succeed('DELETE', `${ACCOUNTS}/${account}`)
  const next = (await succeed('POST', ACCOUNTS, { name: 'Next' })).body.data.document_id
  const connections = `${ACCOUNTS}/${next}/connection`
  const body = { kind: 'oidc', name: 'Next', oidc: COMPANY_OIDC }
  path = `${connections}/${(await succeed('POST', connections, body)).body.data.document_id}`
  await prove(await claim(DOMAIN))
})
