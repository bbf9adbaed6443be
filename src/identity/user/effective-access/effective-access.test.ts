import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../../base/id.ts'
import type { RoleId } from '../../access/role.store.ts'
import type { HeldRole } from './effective-access.store.ts'
import { listEffectivePermissions } from './effective-access.ts'

const NO_ONE = '01990000-0000-7000-8000-000000000000'

describe('effective permissions', () => {
  const role = (name: string, patterns: string[], isAccountScoped = false): HeldRole => ({
    id: name as RoleId,
    name,
    patterns,
    isAccountScoped,
    requiresSecondFactor: false,
  })
  const account = (name: string, roles: HeldRole[] = []) => ({
    account: name as AccountId,
    name,
    roles,
    connection: null,
  })
  const known = { all: ['contract:create', 'user:create'], ofAccounts: ['contract:create'] }
  const list = (roles: HeldRole[], memberships: ReturnType<typeof account>[]) =>
    listEffectivePermissions({ roles, memberships }, known).map(({ permission, reasons }) => [
      permission,
      ...reasons.map(({ roleName, pattern, place, accounts }) => `${roleName} ${pattern} ${place} ${accounts}`.trim()),
    ])

  test('name every role that holds the permission, and the place', () => {
    const viewer = role('viewer', ['contract:create'], true)
    expect(
      list(
        [role('admin', ['*:*']), role('member', ['contract:*'], true)],
        [account('a', [viewer]), account('b', [viewer])],
      ),
    ).toEqual([
      [
        'contract:create',
        'admin *:* everywhere',
        'member contract:* accounts a,b',
        'viewer contract:create memberships a,b',
      ],
      ['user:create', 'admin *:* everywhere'],
    ])
  })

  test('leave out a role without an effect: of an account without one, and a permission that no account takes', () => {
    expect(list([role('member', ['contract:*'], true)], [])).toEqual([])
    expect(list([role('wide', ['*:*'], true)], [account('a')])).toEqual([['contract:create', 'wide *:* accounts a']])
    expect(list([], [account('a', [role('global', ['*:*'])])])).toEqual([])
  })
})

const app = await openForFile(createTestApp())

const read = (id: string) => app.admin('GET', `/api/v3/identity/user/${id}/access`)

describe('the permissions of a user', () => {
  test('are those of its roles and memberships, with the reason', async () => {
    const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
    const { userId } = await app.signInMember([account])
    const { body, status } = await read(userId)
    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      roles: [{ name: 'member', is_account_scoped: true }],
      memberships: [{ account, name: 'Acme', roles: [] }],
      is_complete: true,
    })
    const create = body.data.permissions.find((item: { permission: string }) => item.permission === 'contract:create')
    expect(create.reasons).toMatchObject([
      { role_name: 'member', pattern: 'contract:*', place: 'accounts', accounts: [account] },
    ])
    await app.admin('DELETE', `/api/v3/identity/account/${account}`)
    expect((await read(userId)).body.data).toMatchObject({ memberships: [], permissions: [] })
  })

  test('end at 100 memberships, and say so', async () => {
    const { userId } = await app.signInMember()
    const join = (count: number) =>
      app.database.pool.query(
        `with made as (
           insert into account (document_id, name, created_at, updated_at)
           select gen_random_uuid(), 'many', now(), now() from generate_series(1, $2::int) returning document_id)
         insert into account_member (document_id, account, "user", created_at, updated_at)
         select gen_random_uuid(), document_id, $1, now(), now() from made`,
        [userId, count],
      )
    await join(100)
    expect((await read(userId)).body.data).toMatchObject({ is_complete: true, memberships: { length: 100 } })
    await join(1)
    expect((await read(userId)).body.data).toMatchObject({ is_complete: false, memberships: { length: 100 } })
  })

  test('are a 404 for nobody, and need user:find-access', async () => {
    expect((await read(NO_ONE)).status).toBe(404)
    expect((await read('nobody')).status).toBe(404)
    expect((await app.anonymous('GET', `/api/v3/identity/user/${NO_ONE}/access`)).status).toBe(401)
    const { call, userId } = await app.signInMember()
    expect((await call('GET', `/api/v3/identity/user/${userId}/access`)).body.missing).toMatchObject({
      permission: 'user:find-access',
    })
  })
})
