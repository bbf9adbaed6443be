import { expect, test } from 'vitest'
import { resetPassword } from '../../src/identity/user/password/administrator.ts'
import { createTestApp, type TestAnswer } from '../harness/app/app.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import { readForm, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { COLUMNS, type Column, type OpenedAccess, openEverything, openFlows } from '../harness/browser/opened-access.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Access and its ends: each cell of the table in docs/contract/sessions.md#what-ends-what, in two processes. */

const NEW = 'another horse battery staple'

const fixture = await openForFile(startOauthFixture({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000' } }))
const env = { APP_ENV: 'development', BASE_URL: fixture.baseUrl, RATE_LIMIT_STRICT_PER_MINUTE: '100000' }
/** Another process on the same database. */
const other = await openForFile(createTestApp({ database: fixture.app.database, clock: fixture.app.clock, env }))
const flows = await openFlows(fixture)

type Act = (opened: OpenedAccess) => Promise<TestAnswer | { status: number }>

const byAdministrator =
  (action: string, body?: object): Act =>
  ({ user }) =>
    fixture.app.admin('POST', `/api/v3/identity/user/${user.userId}/${action}`, body)

const change =
  (body: object): Act =>
  ({ user }) =>
    fixture.app.admin('PATCH', `/api/v3/identity/user/${user.userId}`, body)

const changeOwn =
  (more: object = {}): Act =>
  ({ call, user }) =>
    call('POST', '/api/v3/auth/password/change', { current_password: user.password, new_password: NEW, ...more })

const signOut =
  (body: object): Act =>
  ({ call }) =>
    call('POST', '/api/v3/auth/session/revoke', body)

const signOutBrowser =
  (body: object): Act =>
  ({ browserToken }) =>
    fixture.app.callAs(browserToken)('POST', '/api/v3/auth/session/revoke', body)

/** Signs out all other devices on the page of the browser, with these boxes. */
const signOutOthers =
  (boxes: Record<string, string>): Act =>
  async ({ browser }) => {
    const page = await browser.visit(`${fixture.baseUrl}/auth/devices`)
    const form = { ...readForm(page.body, '/auth/devices'), session: '', others: '1', ...boxes }
    const { status } = await browser.visit(`${fixture.baseUrl}/auth/devices`, { method: 'POST', form })
    return { status: status === 303 ? 200 : status }
  }

const resetByMail: Act = async ({ user }) => {
  await fixture.app.anonymous('POST', '/api/v3/auth/password/forgot', { email: user.email })
  const [mail] = await readMails(fixture.app, user.email)
  return fixture.app.anonymous('POST', '/api/v3/auth/password/reset', { token: mail?.token, password: NEW })
}

const changeOwnAddress: Act = async ({ user, call }) => {
  const change = '/api/v3/auth/user/email-change'
  const next = `new-${user.email}`
  await call('POST', change, { email: next })
  const answers = []
  for (const address of [next, user.email]) {
    const [mail] = await readMails(fixture.app, address)
    answers.push(await fixture.app.anonymous('POST', `${change}/confirm`, { token: mail?.token }))
  }
  return answers[1] as TestAnswer
}

const onTheCommandLine: Act = async ({ user }) => {
  const passwords = { hash: async () => 'a hash', isCorrect: async () => false } as never
  const input = { email: user.email, password: NEW, now: new Date(fixture.app.clock.now()) }
  return { status: (await resetPassword({ passwords }, fixture.app.database.db, input)).ok ? 200 : 500 }
}

const remove: Act = ({ user }) => fixture.app.admin('DELETE', `/api/v3/identity/user/${user.userId}`)

/** Of an app with offline_access. */
const OF_APPS = ['app', 'refresh', 'access token'] as const
const OF_BROWSER = ['browser', 'app of the browser', 'refresh of the browser', 'authorization code'] as const
const ALL_BUT = (...ended: readonly Column[]) => COLUMNS.filter((column) => !ended.includes(column))

/** Of each act, what is left. */
const ROWS: readonly (readonly [string, Act, readonly Column[]])[] = [
  ['nothing', async () => ({ status: 200 }), COLUMNS],
  ['revoke-sessions', byAdministrator('revoke-sessions'), []],
  ['revoke-sessions that keeps keys', byAdministrator('revoke-sessions', { keep_api_keys: true }), ['API key']],
  ['a reset by mail', resetByMail, []],
  ['a new password by an administrator', change({ password: NEW }), []],
  ['a new password on the command line', onTheCommandLine, []],
  [
    'a new address by an administrator',
    ({ user }) => change({ email: `new-${user.email}` })({ user } as never),
    ['API key'],
  ],
  ['removal of factors', byAdministrator('remove-factors'), []],
  ['removal of factors that keeps keys', byAdministrator('remove-factors', { keep_api_keys: true }), ['API key']],
  ['disabling', byAdministrator('disable'), []],
  ['deletion', remove, []],
  ['the own deletion', ({ user, call }) => call('DELETE', '/api/v3/auth/user', { email: user.email }), []],
  ['a change of the own address', changeOwnAddress, ['API key']],
  ['a change of the own password', changeOwn(), []],
  [
    'a change of the own password that keeps apps and keys',
    changeOwn({ keep_apps: true, keep_api_keys: true }),
    [...OF_APPS, 'API key'],
  ],
  ['sign-out everywhere', signOut({ all: true }), []],
  ['sign-out everywhere that keeps apps', signOut({ all: true, keep_apps: true }), [...OF_APPS]],
  ['sign-out everywhere that keeps keys', signOut({ all: true, keep_api_keys: true }), ['API key']],
  ['sign-out of all other devices on the page', signOutOthers({}), ['browser']],
  [
    'sign-out of all other devices that keeps apps and keys',
    signOutOthers({ 'keep-apps': '1', 'keep-keys': '1' }),
    [...OF_BROWSER, ...OF_APPS, 'API key'],
  ],
  ['a plain sign-out', signOutBrowser({}), ALL_BUT(...OF_BROWSER, 'handshake')],
  ['a plain sign-out of another session', signOut({}), COLUMNS],
]

test.each(ROWS)('%s leaves exactly what the table says', async (_name, act, left) => {
  const opened = await openEverything(fixture, other, flows)
  const answer = await act(opened)
  expect(answer.status).toBe(200)
  const living = await opened.listLiving()
  expect(living.toSorted()).toEqual([...left].toSorted())
  const { rows } = await fixture.app.database.pool.query(
    `select count(*)::int as live from oauth_grant where "user" = $1 and revoked_at is null`,
    [opened.user.userId],
  )
  // Consents are remembered.
  expect(rows[0].live).toBe(2)
})

test('enabling revives nothing that was open before', async () => {
  const opened = await openEverything(fixture, other, flows)
  expect((await byAdministrator('disable', { keep_api_keys: true })(opened)).status).toBe(200)
  expect((await byAdministrator('enable')(opened)).status).toBe(200)
  expect(await opened.listLiving()).toEqual(['API key'])
})
