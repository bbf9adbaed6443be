import { describe, expect, test } from 'vitest'
import { buildIdentityApp, NO_ID, type User } from '../../../test/harness/app/identity-app.ts'
import { buildIdentityRows } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, IdMaker, UserId } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { findRoleByName, type RoleId } from '../access/role.store.ts'
import type { ManagedUser } from './managed-user.store.ts'
import { makeResetLink } from './password/password-reset.ts'
import {
  type ChangeUserInput,
  changeUser,
  createUser,
  deleteUser,
  disableUser,
  enableUser,
  endUserTokens,
  loadManagedUser,
  loadUser,
  registerUser,
} from './user.ts'

/** The operations on users by their functions; what the API makes of them is in `user-record/user.test.ts`. */

const CALLER = { patterns: ['*:*'], ceiling: null } as unknown as Caller
const WEAK = { ...CALLER, patterns: [], accountPatterns: [], membershipPatterns: [], accounts: [] } as Caller

const isOwn = (role: RoleId) => role !== member

const app = await openForFile(buildIdentityApp())
const rows = buildIdentityRows(app.db)
const rolesOf = async (name: string) => {
  const { user } = await app.callerWith(name, [])
  return (await loadUser(app.db, user.id)).roles
}
const idOf = async (name: string) => (await findRoleByName(app.db, name))!.id
const [member, administrator, scoped] = [
  await idOf('member'),
  await idOf('administrator'),
  await idOf('account-viewer'),
]
/** Roles: beyond accounts, and of accounts alone. */
const [wide, wider] = [(await rolesOf('wide')).find(isOwn)!, (await rolesOf('wider')).find(isOwn)!]

let count = 0
const newEmail = () => `managed-${count++}@example.test`
const now = () => new Date(app.clock.now())
const createOne = (roles: RoleId[] = []) => app.user(`managed-${count++}`, roles)
const statusOf = async (token: string) => (await app.call('GET', '/api/v3/auth/session', { token })).status

async function createKey({ token }: User): Promise<string> {
  const body = { name: 'a key', permissions: ['realtime:auth'] }
  return (await app.call('POST', '/api/v3/identity/api-key', { token, body })).body.data.key
}

/** Works on a locked user, as the database has it but for `facts`. */
const work = <Result>(
  { user }: User,
  run: (tx: Parameters<typeof changeUser>[0], locked: ManagedUser) => Promise<Result>,
  { roles, facts = {} }: { roles?: readonly string[] | undefined; facts?: Partial<ManagedUser> } = {},
) =>
  inTransaction(app.db, async (tx) =>
    run(tx, { ...(await loadManagedUser(tx, user.id, roles ? { roles } : {})), ...facts }),
  )

type Change = Omit<ChangeUserInput, 'caller' | 'now'>
const change = (user: User, input: Change, facts: Partial<ManagedUser> = {}, caller = CALLER) =>
  work(user, (tx, locked) => changeUser(tx, locked, { ...input, caller, now: now() }), { roles: input.roles, facts })

const conflict = (reason?: string) => ({ code: 'conflict', ...(reason !== undefined && { reason }) })
const denied = { code: 'permission_denied' }

test('a user is loaded by its id, and an unknown one is not found', async () => {
  const { user } = await createOne()
  expect(await loadUser(app.db, user.id)).toMatchObject({ email: user.email })
  await expect(loadUser(app.db, NO_ID)).rejects.toMatchObject({ code: 'not_found' })
  await expect(loadManagedUser(app.db, NO_ID)).rejects.toMatchObject({ code: 'not_found' })
  await expect(endUserTokens(app.db, NO_ID, { caller: CALLER, now: now() })).rejects.toMatchObject({
    code: 'not_found',
  })
})

test('the facts of a change are read where it is one of roles', async () => {
  const root = await app.administrator(`root-${count++}`)
  const load = (roles?: string[]) => loadManagedUser(app.db, root.user.id, roles ? { roles } : {})
  expect(await load()).toMatchObject({ otherHolders: null, asked: [] })
  expect((await load([])).otherHolders).not.toBeNull()
  expect((await load([wide])).asked).toMatchObject([{ id: wide }])
})

describe('a registered user', () => {
  const register = (more: object) => registerUser({ ids: app.ids }, app.db, { email: newEmail(), now: now(), ...more })

  test('has what was given, and else nothing', async () => {
    const given = { emailVerifiedAt: now(), name: 'Ada', avatarUrl: 'https://a.example/a.png' }
    const full = await register({ ...given, passwordHash: 'hash', roles: [wide] })
    expect(full).toMatchObject({ ...given, hasPassword: true })
    expect([...full.roles].sort()).toEqual([member, wide].sort())
    expect(await loadUser(app.db, full.id)).toMatchObject({ ...given, hasPassword: true })
    const bare = await register({})
    const nothing = { emailVerifiedAt: null, name: null, avatarUrl: null, hasPassword: false, roles: [member] }
    expect(await loadUser(app.db, bare.id)).toMatchObject(nothing)
  })

  test('has an address of its own; another fault is no conflict', async () => {
    const { user } = await createOne()
    await expect(register({ email: user.email.toUpperCase() })).rejects.toMatchObject(conflict())
    const ids = { next: () => user.id } as unknown as IdMaker
    const again = registerUser({ ids }, app.db, { email: newEmail(), now: now() })
    await expect(again).rejects.toMatchObject({ constraint: 'user_pkey' })
  })
})

test('a created user has a password where one was given', async () => {
  const create = (more: object) =>
    inTransaction(app.db, (tx) =>
      createUser({ ids: app.ids }, tx, {
        ...{ email: newEmail(), name: null, roles: [], caller: CALLER, now: now(), ...more },
      }),
    )
  expect(await create({})).toMatchObject({ hasPassword: false, roles: [member] })
  const { id } = await create({ passwordHash: 'hash' })
  expect(await loadUser(app.db, id)).toMatchObject({ hasPassword: true })
})

describe('a change', () => {
  test('of what is equal is none', async () => {
    const user = await createOne([wide, scoped])
    const { email, name, roles } = await loadUser(app.db, user.user.id)
    expect(await change(user, { email, name, roles: roles.toReversed() })).toBeUndefined()
    expect(await statusOf(user.token)).toBe(200)
  })

  test('writes what differs, and answers the user with it', async () => {
    const user = await createOne()
    expect(await change(user, { name: 'Grace' })).toMatchObject({
      name: 'Grace',
      email: user.user.email,
      roles: [member],
    })
    expect(await loadUser(app.db, user.user.id)).toMatchObject({ name: 'Grace', email: user.user.email })
    expect(await change(user, { name: null, roles: [wide, member] })).toMatchObject({
      name: null,
      roles: [wide, member],
    })
    expect(await loadUser(app.db, user.user.id)).toMatchObject({ name: null })
    expect([...(await loadUser(app.db, user.user.id)).roles].sort()).toEqual([member, wide].sort())
  })

  test('of the address takes the proof of it, but not of its case, and one that is taken is refused', async () => {
    const [user, other] = [await createOne(), await createOne()]
    await rows.set('user', user.user.id, { email_verified_at: now() })
    const cased = user.user.email.toUpperCase()
    expect(await change(user, { email: cased })).toMatchObject({ email: cased, emailVerifiedAt: now() })
    expect(await statusOf(user.token)).toBe(200)
    await expect(change(user, { email: other.user.email })).rejects.toMatchObject(conflict())
    const email = newEmail()
    expect(await change(user, { email })).toMatchObject({ email, emailVerifiedAt: null })
    expect(await loadUser(app.db, user.user.id)).toMatchObject({ email, emailVerifiedAt: null })
    expect(await statusOf(user.token)).toBe(401)
  })

  test('of the password ends sessions, keys, reset links and the throttle; keys may be kept', async () => {
    const [user, keeping] = [await createOne(), await createOne()]
    const [key, kept] = [await createKey(user), await createKey(keeping)]
    const deps = { random: systemRandom, baseUrl: () => 'https://a.example' }
    await inTransaction(app.db, (tx) => makeResetLink(deps, tx, { userId: user.user.id, now: now() }))
    const login = () =>
      app.call('POST', '/api/v3/auth/login/local', { body: { email: user.user.email, password: 'wrong wrong' } })
    const throttles = async () => (await app.db.selectFrom('login_throttle').selectAll().execute()).length
    const links = async () =>
      (await app.db.selectFrom('proof_token').selectAll().where('user', '=', user.user.id).execute()).length
    const before = await throttles()
    await login()
    // Of the address, of the network, and of both.
    expect([(await throttles()) - before, await links()]).toEqual([3, 1])
    expect(await change(user, { passwordHash: 'hash' })).toMatchObject({ hasPassword: true })
    expect([(await throttles()) - before, await links()]).toEqual([1, 0])
    expect([await statusOf(user.token), await statusOf(key)]).toEqual([401, 401])
    await change(keeping, { passwordHash: 'hash', keepApiKeys: true })
    expect([await statusOf(keeping.token), await statusOf(kept)]).toEqual([401, 200])
    await expect(change(user, { keepApiKeys: true })).rejects.toMatchObject({ code: 'validation_failed' })
    await change(await createOne(), { name: 'x', passwordHash: 'hash', keepApiKeys: false })
  })

  test('keeps sessions, keys, links and the throttle when it is none of password or address', async () => {
    const user = await createOne()
    const key = await createKey(user)
    await change(user, { name: 'Other' })
    await change(user, { roles: [] })
    expect([await statusOf(user.token), await statusOf(key)]).toEqual([200, 200])
  })

  test('is refused to who holds less than the user', async () => {
    const root = await app.administrator(`root-${count++}`)
    await expect(change(root, { name: 'x' }, {}, WEAK)).rejects.toMatchObject(denied)
    await expect(work(root, (tx, user) => disableUser(tx, { user, caller: WEAK, now: now() }))).rejects.toMatchObject(
      denied,
    )
    await expect(work(root, (tx, user) => enableUser(tx, { user, caller: WEAK, now: now() }))).rejects.toMatchObject(
      denied,
    )
    await expect(work(root, (tx, user) => deleteUser(tx, { user, caller: WEAK, now: now() }))).rejects.toMatchObject(
      denied,
    )
    await expect(endUserTokens(app.db, root.user.id, { caller: WEAK, now: now() })).rejects.toMatchObject(denied)
    expect(await statusOf(root.token)).toBe(200)
  })
})

describe('a change of roles', () => {
  test.each<[name: string, held: () => RoleId[], roles: () => RoleId[]]>([
    ['one more', () => [wide], () => [member, wide, wider]],
    ['one less', () => [wide, wider], () => [member, wide]],
    ['another in place of one', () => [wide], () => [member, wider]],
  ])('to %s is one', async (_name, held, roles) => {
    const user = await createOne(held())
    expect(await change(user, { roles: roles() })).toMatchObject({ roles: roles() })
  })

  test.each<[name: string, isExempt: boolean, roles: (() => RoleId[]) | undefined, isEnded: boolean]>([
    ['no other role', true, () => [], true],
    ['a role of accounts', true, () => [scoped], true],
    ['a role beyond them', true, () => [wide], false],
    ['both', true, () => [scoped, wide], false],
    ['no change of roles', true, undefined, false],
    ['no role, where no account closed anything', false, () => [], false],
  ])('ends the access of who was kept in by its roles alone (%s)', async (_name, isExempt, roles, isEnded) => {
    const user = await createOne([wider])
    await change(user, roles ? { roles: roles() } : { name: 'x' }, { isExempt })
    expect(await statusOf(user.token)).toBe(isEnded ? 401 : 200)
  })

  test.each<[name: string, held: () => RoleId[], roles: () => RoleId[], isRefused: boolean]>([
    ['a new one beyond it', () => [], () => [member, wide], true],
    ['such a one beside one of accounts', () => [], () => [scoped, wide], true],
    ['one of accounts', () => [], () => [member, scoped], false],
    ['one beyond it that it has', () => [wide], () => [wide, scoped], false],
  ])('of who signs in by an account gives %s: refused', async (_name, held, roles, isRefused) => {
    const facts = { connectedAccount: NO_ID as string as AccountId }
    const changed = change(await createOne(held()), { roles: roles() }, facts)
    if (isRefused) await expect(changed).rejects.toMatchObject(conflict('connected'))
    else expect(await changed).toMatchObject({ roles: roles() })
  })

  test('of the last administrator keeps that role', async () => {
    const root = await app.administrator(`root-${count++}`)
    const last = { otherHolders: 0 }
    await expect(change(root, { roles: [member] }, last)).rejects.toMatchObject(conflict('last_administrator'))
    expect(await change(root, { roles: [administrator, wide] }, last)).toMatchObject({ roles: [administrator, wide] })
    expect(await change(await createOne(), { roles: [wide] }, last)).toMatchObject({ roles: [wide] })
    expect(await change(root, { roles: [member] }, { otherHolders: 1 })).toMatchObject({ roles: [member] })
  })
})

describe('disabling, enabling and deleting', () => {
  const disable = (user: User, more: { keepApiKeys?: boolean } = {}, facts: Partial<ManagedUser> = {}) =>
    work(user, (tx, locked) => disableUser(tx, { user: locked, caller: CALLER, now: now(), ...more }), { facts })
  const enable = (user: User) =>
    work(user, (tx, locked) => enableUser(tx, { user: locked, caller: CALLER, now: now() }))
  const remove = (user: User, facts: Partial<ManagedUser> = {}) =>
    work(user, (tx, locked) => deleteUser(tx, { user: locked, caller: CALLER, now: now() }), { facts })

  test('disables once, and ends sessions and keys, which may be kept', async () => {
    const [user, keeping] = [await createOne(), await createOne()]
    const [key, kept] = [await createKey(user), await createKey(keeping)]
    expect(await disable(user)).toMatchObject({ isActived: false })
    expect(await disable(user)).toBeUndefined()
    expect(await loadUser(app.db, user.user.id)).toMatchObject({ isActived: false })
    await disable(keeping, { keepApiKeys: true })
    for (const { user: one } of [user, keeping]) await rows.set('user', one.id, { is_actived: true })
    const found = [user.token, key, keeping.token, kept]
    expect(await Promise.all(found.map(statusOf))).toEqual([401, 401, 401, 200])
  })

  test('enables once, and ends what was left open', async () => {
    const user = await createOne()
    expect(await enable(user)).toBeUndefined()
    expect(await statusOf(user.token)).toBe(200)
    await rows.set('user', user.user.id, { is_actived: false })
    expect(await enable(user)).toMatchObject({ isActived: true })
    expect(await loadUser(app.db, user.user.id)).toMatchObject({ isActived: true })
    expect(await statusOf(user.token)).toBe(401)
  })

  test('deletes a user with its sessions and keys', async () => {
    const user = await createOne()
    const key = await createKey(user)
    expect(await remove(user)).toMatchObject({ deletedAt: now() })
    await expect(loadUser(app.db, user.user.id)).rejects.toMatchObject({ code: 'not_found' })
    await rows.set('user', user.user.id, { deleted_at: null })
    expect([await statusOf(user.token), await statusOf(key)]).toEqual([401, 401])
  })

  test('keeps the last administrator', async () => {
    const root = await app.administrator(`root-${count++}`)
    const last = { otherHolders: 0 }
    await expect(disable(root, {}, last)).rejects.toMatchObject(conflict('last_administrator'))
    await expect(remove(root, last)).rejects.toMatchObject(conflict('last_administrator'))
    expect(await disable(root, {}, { otherHolders: 1 })).toMatchObject({ isActived: false })
    expect(await disable(await createOne(), {}, { otherHolders: null })).toMatchObject({ isActived: false })
  })
})

test('the tokens of a user end together, and keys may be kept', async () => {
  const end = ({ user }: User, more: { keepApiKeys?: boolean } = {}) =>
    inTransaction(app.db, (tx) => endUserTokens(tx, user.id, { caller: CALLER, now: now(), ...more }))
  const [user, keeping] = [await createOne(), await createOne()]
  const [key, kept] = [await createKey(user), await createKey(keeping)]
  expect(await end(user)).toEqual({ id: user.user.id satisfies UserId, sessions: 1, apiKeys: 1 })
  expect(await end(keeping, { keepApiKeys: true })).toEqual({ id: keeping.user.id, sessions: 1, apiKeys: 0 })
  const found = [user.token, key, keeping.token, kept]
  expect(await Promise.all(found.map(statusOf))).toEqual([401, 401, 401, 200])
})
