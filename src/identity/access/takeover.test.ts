import { describe, expect, test } from 'vitest'
import { buildIdentityApp, type IdentityApp, type User } from '../../../test/harness/app/identity-app.ts'
import { untilWaiting } from '../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { loadManagedUser } from '../user/user.ts'
import { lockRole } from './role.store.ts'

const USERS = '/api/v3/identity/user'
const ACCOUNTS = '/api/v3/identity/account'
const ROLES = '/api/v3/identity/role'

/** Patterns of an owner in its accounts, besides those of `member`. */
const OWNER_PATTERNS = ['account:*', 'account-member:*', 'webhook:create']

const as =
  (token: string) =>
  (method: string, path: string, body?: unknown): ReturnType<IdentityApp['call']> =>
    app.call(method, path, { token, body })
const asRoot = (method: string, path: string, body?: unknown) => as(root.token)(method, path, body)

const app = await openForFile(buildIdentityApp())
const root = await app.administrator()
/** Holds everything about users, members and roles, and nothing about rows of accounts. */
const clerk = await app.callerWith('clerk', ['user:*', 'role:*', 'account-member:*'])
const ownerRole = await createRole('owner', OWNER_PATTERNS)

const denied = (...words: string[]) => ({
  status: 403,
  body: { code: 'permission_denied', detail: expect.stringMatching(words.join('.*')) },
})

async function createRole(name: string, permissions: string[]): Promise<string> {
  const reply = await asRoot('POST', ROLES, { name, permissions, is_account_scoped: true })
  return reply.body.data.document_id
}

async function createAccount(...members: User[]): Promise<string> {
  const { document_id: id } = (await asRoot('POST', ACCOUNTS, { name: 'An account' })).body.data
  for (const { user } of members)
    expect((await asRoot('POST', `${ACCOUNTS}/${id}/member`, { user: user.id })).status).toBe(201)
  return id
}

let count = 0
const owner = () => app.user(`owner-${count++}`, [ownerRole])

/** Every request that takes over, locks out or changes a user. */
const TAKEOVERS: [string, string, object | undefined][] = [
  ['PATCH', '', { password: 'now it is mine' }],
  ['PATCH', '', { email: 'mine@example.test' }],
  ['PATCH', '', { roles: [] }],
  ['PATCH', '', { name: 'Somebody Else' }],
  ['DELETE', '', undefined],
  ['POST', '/disable', undefined],
  ['POST', '/enable', undefined],
  ['POST', '/revoke-sessions', undefined],
]

describe('user:*', () => {
  test.each(TAKEOVERS)(
    'does not allow to take over the owner of an account: %s %s %j',
    async (method, suffix, body) => {
      const victim = await owner()
      const account = await createAccount(victim)
      const path = `${USERS}/${victim.user.id}`
      const refused = await as(clerk.token)(method, `${path}${suffix}`, body)
      expect(refused).toMatchObject(denied('account:\\*|contract:\\*', account))
      expect((await asRoot('GET', path)).body.data).toMatchObject({ email: victim.user.email, is_actived: true })
      expect((await app.call('GET', '/api/v3/auth/session', { token: victim.token })).status).toBe(200)
    },
  )

  test('allows changes of users without permissions', async () => {
    const nobody = await app.user('in no account')
    for (const [method, suffix, body] of TAKEOVERS.filter(([method]) => method !== 'DELETE'))
      expect((await as(clerk.token)(method, `${USERS}/${nobody.user.id}${suffix}`, body)).status).toBe(200)
    expect((await as(clerk.token)('DELETE', `${USERS}/${nobody.user.id}`)).status).toBe(200)
  })

  test('allows changes of users of an account where the caller holds the same, and not of another account', async () => {
    const editor = await app.callerWith('editor', ['user:*'])
    await asRoot('PATCH', `${USERS}/${editor.user.id}`, { roles: [...editor.user.roles, ownerRole] })
    const [colleague, traveller] = [await owner(), await owner()]
    await createAccount(editor, colleague, traveller)
    const elsewhere = await createAccount(traveller)
    const rename = (target: User) => as(editor.token)('PATCH', `${USERS}/${target.user.id}`, { name: 'Renamed' })
    expect((await rename(colleague)).status).toBe(200)
    expect(await rename(traveller)).toMatchObject(denied(elsewhere))
    await asRoot('DELETE', `${ACCOUNTS}/${elsewhere}`)
    expect((await rename(traveller)).status).toBe(200)
  })

  test('does not allow to assign an account role that gives more than the caller holds there', async () => {
    const editor = await app.callerWith('giver', ['user:*'])
    await asRoot('PATCH', `${USERS}/${editor.user.id}`, { roles: [...editor.user.roles, ownerRole] })
    const [inside, outside] = [await app.user('inside'), await app.user('outside')]
    await createAccount(editor, inside)
    const give = ({ user }: User) =>
      as(editor.token)('PATCH', `${USERS}/${user.id}`, { roles: [...user.roles, ownerRole] })
    expect((await give(inside)).status).toBe(200)
    expect(await give(outside)).toMatchObject(denied('account-member:\\*', 'everywhere'))
    const elsewhere = await createAccount(outside)
    expect(await give(outside)).toMatchObject(denied(elsewhere))
  })

  test('does not allow to assign a removed role again that gives more than the caller holds, also member', async () => {
    const stripped = await app.user('stripped')
    const account = await createAccount(stripped)
    const path = `${USERS}/${stripped.user.id}`
    expect((await asRoot('PATCH', path, { roles: [] })).status).toBe(200)
    expect(await as(clerk.token)('PATCH', path, { roles: stripped.user.roles })).toMatchObject(denied(account))
  })
})

describe('account-member:*', () => {
  test('does not allow to join an account, or to add another user', async () => {
    const account = await createAccount(await owner())
    const friend = await app.user('friend of the clerk')
    const path = `${ACCOUNTS}/${account}/member`
    for (const { user } of [clerk, friend])
      expect(await as(clerk.token)('POST', path, { user: user.id })).toMatchObject(denied('account:find-one', account))
    expect((await app.call('GET', `${ACCOUNTS}/${account}`, { token: clerk.token })).status).toBe(404)
  })

  test('allows to add and remove users without account permissions', async () => {
    const account = await createAccount()
    const powerless = await app.user('powerless')
    await asRoot('PATCH', `${USERS}/${powerless.user.id}`, { roles: [] })
    const path = `${ACCOUNTS}/${account}/member`
    expect((await as(clerk.token)('POST', path, { user: powerless.user.id })).status).toBe(201)
    expect((await as(clerk.token)('DELETE', path, { user: powerless.user.id })).status).toBe(200)
  })

  test('does not allow to remove an owner', async () => {
    const victim = await owner()
    const account = await createAccount(victim)
    const path = `${ACCOUNTS}/${account}/member`
    expect(await as(clerk.token)('DELETE', path, { user: victim.user.id })).toMatchObject(denied(account))
    expect((await asRoot('GET', path)).body.data).toMatchObject([{ user: victim.user.id }])
  })

  test('allows an owner to remove users who hold no more there than the owner, and to add nobody by id', async () => {
    const boss = await owner()
    const plain = await app.user('plain newcomer')
    const strong = await app.user('strong newcomer', [await createRole('strong', ['webhook:*'])])
    const account = await createAccount(boss, plain, strong)
    const path = `${ACCOUNTS}/${account}/member`
    expect((await as(boss.token)('DELETE', path, { user: plain.user.id })).status).toBe(200)
    expect(await as(boss.token)('POST', path, { user: plain.user.id })).toMatchObject(denied('account-member:create'))
    expect(await as(boss.token)('DELETE', path, { user: strong.user.id })).toMatchObject(denied('webhook:\\*', account))
  })

  test('of a narrowed key gives no more than the key holds', async () => {
    const boss = await owner()
    const account = await createAccount(boss)
    const newcomer = await app.user('by key')
    const path = `${ACCOUNTS}/${account}/member`
    const makeKey = async (permissions: string[]) => {
      const reply = await as(boss.token)('POST', '/api/v3/identity/api-key', { name: 'narrow', permissions })
      return reply.body.data.key as string
    }
    const narrow = await makeKey(['account-member:*'])
    await asRoot('POST', path, { user: newcomer.user.id })
    const wide = await makeKey(['account-member:*', 'account:find-one', 'contract:*', 'realtime:auth'])
    expect(await as(narrow)('DELETE', path, { user: newcomer.user.id })).toMatchObject(denied(account))
    expect((await as(wide)('DELETE', path, { user: newcomer.user.id })).status).toBe(200)
  })

  test('is checked against the roles of the user at the time of the write', async () => {
    const adder = await app.callerWith('adder by id', [
      'account-member:*',
      'account:find-one',
      'contract:*',
      'realtime:auth',
    ])
    const account = await createAccount()
    const rising = await app.user('rising')
    const strongRole = await createRole('given meanwhile', ['webhook:*'])
    const given = Promise.withResolvers<void>()
    const mayCommit = Promise.withResolvers<void>()
    const giving = inTransaction(app.db, async (tx) => {
      const user = await loadManagedUser(tx, rising.user.id)
      const row = { user: user.id, role: strongRole, created_at: new Date(app.clock.now()) }
      await tx.insertInto('user_role').values(row).execute()
      given.resolve()
      await mayCommit.promise
    })
    await given.promise
    const adding = as(adder.token)('POST', `${ACCOUNTS}/${account}/member`, { user: rising.user.id })
    await untilWaiting(app.db, 1)
    mayCommit.resolve()
    await giving
    expect(await adding).toMatchObject(denied('webhook:\\*', account))
  })
})

describe('a change that waits for the lock', () => {
  /** Sends `call` while a transaction with `work` is uncommitted, and commits when the call waits for its lock. */
  async function callDuring<Answer>(
    work: (tx: Database) => Promise<unknown>,
    call: () => Promise<Answer>,
  ): Promise<Answer> {
    const done = Promise.withResolvers<void>()
    const mayCommit = Promise.withResolvers<void>()
    const working = inTransaction(app.db, async (tx) => {
      await work(tx)
      done.resolve()
      await mayCommit.promise
    })
    await done.promise
    const calling = call()
    await untilWaiting(app.db, 1)
    mayCommit.resolve()
    await working
    return calling
  }

  test('of a user is checked against the roles after the wait', async () => {
    const rising = await app.user('rising meanwhile')
    const body = { name: 'rises', permissions: ['webhook:*'] }
    const { document_id: role } = (await asRoot('POST', ROLES, body)).body.data
    const answer = await callDuring(
      async (tx) => {
        const user = await loadManagedUser(tx, rising.user.id)
        const row = { user: user.id, role, created_at: new Date(app.clock.now()) }
        await tx.insertInto('user_role').values(row).execute()
      },
      () => as(clerk.token)('POST', `${USERS}/${rising.user.id}/disable`),
    )
    expect(answer).toMatchObject(denied('webhook:\\*'))
  })

  test('of a role is checked against its patterns after the wait', async () => {
    const body = { name: 'grows', permissions: ['user:find-all'] }
    const { document_id: role } = (await asRoot('POST', ROLES, body)).body.data
    const answer = await callDuring(
      async (tx) => {
        await lockRole(tx, { id: role })
        await tx.insertInto('role_permission').values({ role, pattern: 'webhook:*' }).execute()
      },
      () => as(clerk.token)('PATCH', `${ROLES}/${role}`, { name: 'renamed' }),
    )
    expect(answer).toMatchObject(denied('webhook:\\*'))
  })
})
