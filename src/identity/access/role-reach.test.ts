import { beforeEach, describe, expect, test } from 'vitest'
import type { TestAnswer } from '../../../test/harness/app/app.ts'
import { createConnectionApp, PASSWORD } from '../../../test/harness/app/connection-app.ts'
import { pathOf, redirectUrlOf, WEB_APP } from '../../../test/harness/app/social-app.ts'
import { type Barrier, holdUser, race } from '../../../test/harness/plan/race.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, UserId } from '../../base/id.ts'

/** What a change of the reach of a role means for accounts that bring their own provider (docs/contract/connections.md). */

const ROLES = '/api/v3/identity/role'
let account: AccountId
let connection: string
let count = 0
const t = await openForFile(createConnectionApp())

beforeEach(async () => {
  t.app.clock.advance(60_000)
  count += 1
  account = await t.makeAccount()
  connection = await t.connect(account)
  await t.prove(account, connection, domainOf())
})

const domainOf = () => `corp${count}.example`
const emailOf = () => `ada@${domainOf()}`
const connectionPath = () => `/api/v3/identity/account/${account}/connection/${connection}`
const enforce = () => t.app.admin('PATCH', connectionPath(), { is_enforced: true })
const login = () => t.app.anonymous('POST', '/api/v3/auth/login/local', { email: emailOf(), password: PASSWORD })
const join = (user: string) => t.app.admin('POST', `/api/v3/identity/account/${account}/member`, { user })
const deleteRole = (role: string) => t.app.admin('DELETE', `${ROLES}/${role}`)
const globalize = (role: string) => t.app.admin('PATCH', `${ROLES}/${role}`, { is_account_scoped: false })

async function signInByConnection(): Promise<TestAnswer> {
  t.fixture.fakes.company.user = { sub: `ada-${count}`, email: emailOf(), isEmailVerified: true, name: 'Ada' }
  const browser = t.browser()
  const started = await browser.get(`${pathOf(connection)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)
  const step = await t.fixture.fakes.company.authorize(String(started.headers.location))
  return browser.get(redirectUrlOf(step), 'application/json')
}

async function makeRole(isAccountScoped: boolean): Promise<string> {
  const body = { name: `role ${count}`, permissions: ['contract:find-all'], is_account_scoped: isAccountScoped }
  const made = await t.app.admin('POST', ROLES, body)
  expect(made.status).toBe(201)
  return made.body.data.document_id
}

async function give(user: string, role: string): Promise<void> {
  const path = `/api/v3/identity/user/${user}`
  const { roles } = (await t.app.admin('GET', path)).body.data
  expect((await t.app.admin('PATCH', path, { roles: [...roles, role] })).status).toBe(200)
}

const isOpen = async (answer: TestAnswer) => (await t.callOf(answer)('GET', '/api/v3/auth/session')).status === 200

const holdRole = (role: string): Barrier => ({
  text: 'select from role where document_id = $1 for update',
  values: [role],
})
/** Holds what a deletion of the role removes, so that it waits with the role locked. */
const holdGivenRole = (role: string): Barrier => ({
  text: 'select from user_role where role = $1 for update',
  values: [role],
})

describe('a role of a user whom a connection knows', () => {
  test('gets no reach beyond accounts, until the connection knows no such user', async () => {
    const role = await makeRole(true)
    const user = await t.makeMember(emailOf(), [account])
    await give(user, role)
    expect((await signInByConnection()).body.data.user.document_id).toBe(user)
    expect(await globalize(role)).toMatchObject({ status: 409, body: { code: 'conflict' } })
    // Other changes of the role are as ever.
    expect((await t.app.admin('PATCH', `${ROLES}/${role}`, { permissions: [] })).status).toBe(200)
    expect((await t.app.admin('DELETE', `/api/v3/identity/user/${user}`)).status).toBe(200)
    expect((await globalize(role)).body.data).toMatchObject({ is_account_scoped: false })
  })

  test('of another holder, whom no connection knows, gets it', async () => {
    const role = await makeRole(true)
    await give(await t.makeMember(emailOf(), [account]), role)
    expect((await globalize(role)).status).toBe(200)
    expect((await signInByConnection()).status).toBe(401)
  })

  test('gets none beside a first sign-in by the connection, whichever comes first', async () => {
    for (const isFirst of [true, false]) {
      count += 1
      await t.prove(account, connection, domainOf())
      const role = await makeRole(true)
      await give(await t.makeMember(emailOf(), [account]), role)
      const change = () => globalize(role)
      const requests = isFirst ? [change, signInByConnection] : [signInByConnection, change]
      const answers = await race(t.app.database, holdRole(role), requests)
      expect(answers.map(({ status }) => status).toSorted()).toEqual(isFirst ? [200, 401] : [200, 409])
    }
  })
})

describe('a role by which a member keeps the ways in that its account closed', () => {
  /** A session of a password, of a user with such a role. */
  async function open(role: string, isMember = true) {
    const user = await t.makeMember(emailOf(), isMember ? [account] : [])
    await give(user, role)
    const session = await login()
    expect(session.status).toBe(200)
    return { user, session }
  }

  test('ends what it kept open when it is deleted beside an enforcement, whichever comes first', async () => {
    for (const isFirst of [true, false]) {
      count += 1
      const role = await makeRole(false)
      const { session } = await open(role)
      await t.app.admin('PATCH', connectionPath(), { is_enforced: false })
      await t.prove(account, connection, domainOf())
      const requests = isFirst ? [() => deleteRole(role), enforce] : [enforce, () => deleteRole(role)]
      const answers = await race(t.app.database, isFirst ? holdGivenRole(role) : holdRole(role), requests)
      await expectClosed(role, session, answers)
    }
  })

  test('ends what it kept open when it is deleted beside the arrival of its holder', async () => {
    for (const isFirst of [true, false]) {
      count += 1
      await t.prove(account, connection, domainOf())
      await enforce()
      const role = await makeRole(false)
      const { user, session } = await open(role, false)
      const requests = isFirst ? [() => deleteRole(role), () => join(user)] : [() => join(user), () => deleteRole(role)]
      const answers = await race(t.app.database, isFirst ? holdGivenRole(role) : holdRole(role), requests)
      await expectClosed(role, session, answers)
    }
  })

  test('ends what it kept open when it is taken beside an enforcement', async () => {
    const role = await makeRole(false)
    const { user, session } = await open(role)
    const path = `/api/v3/identity/user/${user}`
    const roles = (await t.app.admin('GET', path)).body.data.roles.filter((held: string) => held !== role)
    const take = () => t.app.admin('PATCH', path, { roles })
    // The enforcement has found the members, and waits for another one.
    const other = holdUser((await t.makeMember(`bob@${domainOf()}`, [account])) as UserId)
    for (const { status } of await race(t.app.database, other, [enforce, take])) expect(status).toBe(200)
    expect(await isOpen(session)).toBe(false)
  })

  test('lets nobody in beside its deletion', async () => {
    await enforce()
    const role = await makeRole(false)
    const { user } = await open(role)
    const requests = [login, () => deleteRole(role)]
    const [signedIn, deleted] = (await race(t.app.database, holdUser(user as UserId), requests)) as [
      TestAnswer,
      TestAnswer,
    ]
    expect([signedIn.status, deleted.status]).toEqual([200, 200])
    expect(await isOpen(signedIn)).toBe(false)
    expect((await login()).body.code).toBe('connection_required')
  })

  /** The deletion succeeded, or was refused and succeeds now; then nothing is left open. */
  async function expectClosed(role: string, session: TestAnswer, answers: readonly TestAnswer[]): Promise<void> {
    const conflicts = answers.filter(({ status }) => status === 409)
    for (const { status, body } of answers) expect([200, 201, 409], JSON.stringify(body)).toContain(status)
    if (conflicts.length > 0) {
      expect(conflicts[0]?.body.detail).toContain('holders of the role changed')
      expect((await deleteRole(role)).status).toBe(200)
    }
    expect(await isOpen(session)).toBe(false)
    expect((await login()).body.code).toBe('connection_required')
  }
})
