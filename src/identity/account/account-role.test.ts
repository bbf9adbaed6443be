import { beforeEach, describe, expect, test } from 'vitest'
import { createTestApp, type TestCall } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import { holdsGrant, listHoldingsAt } from '../access/delegation.ts'
import { coversPattern } from '../access/pattern.ts'

let account: AccountId
let admin: { call: TestCall; userId: UserId }
let count = 0
const app = await openForFile(createTestApp())

beforeEach(async () => {
  count += 1
  account = await makeAccount()
  admin = await addMember(['account-admin'])
})

const makeAccount = async (): Promise<AccountId> =>
  (await app.admin('POST', '/api/v3/identity/account', { name: 'Corp' })).body.data.document_id
const findRole = async (name: string): Promise<string> =>
  (await app.admin('GET', `/api/v3/identity/role?filters=name|eq|${name}`)).body.data[0].document_id
const rolesPath = (of: string = account) => `/api/v3/identity/account/${of}/role`
const memberPath = (of: string = account) => `/api/v3/identity/account/${of}/member`

async function addMember(names: readonly string[], of = account) {
  const member = await app.signInMember([of])
  const roles = await Promise.all(names.map(findRole))
  expect((await app.admin('PATCH', memberPath(of), { user: member.userId, roles })).status).toBe(200)
  return member
}

async function makeRole(permissions: string[], more: object = {}): Promise<string> {
  count += 1
  const name = `role ${count}`
  const made = await app.admin('POST', '/api/v3/identity/role', {
    ...{ name, permissions, is_account_scoped: true, ...more },
  })
  expect(made.status).toBe(201)
  return name
}

interface Row {
  document_id: string
  name: string
  is_givable: boolean
}
async function list(call: TestCall, of: string = account): Promise<Row[]> {
  const answer = await call('GET', `${rolesPath(of)}?sort=name&page_size=200`)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body.data
}
const names = (rows: readonly Row[]) => rows.map(({ name }) => name)

describe('the roles for members of an account', () => {
  test('are those that its administrator may give, each of which it then gives, and no other', async () => {
    const own = await makeRole(['webhook:find-all', 'contract:*'])
    const beyond = await makeRole(['portal-session:create'])
    const global = await makeRole(['contract:find-all'], { is_account_scoped: false })
    const rows = await list(admin.call)
    expect(rows.every(({ is_givable }) => is_givable)).toBe(true)
    expect(names(rows)).toEqual(expect.arrayContaining(['account-admin', 'account-developer', 'account-viewer', own]))
    for (const hidden of [beyond, global, 'account-publisher', 'administrator', 'member'])
      expect(names(rows)).not.toContain(hidden)
    const { userId: user } = await addMember([])
    const give = (role: string) => admin.call('PATCH', memberPath(), { user, roles: [role] })
    for (const { document_id } of rows) expect((await give(document_id)).status).toBe(200)
    expect((await give(await findRole(beyond))).status).toBe(403)
    expect((await give(await findRole(global))).status).toBe(422)
  })

  test('have also those that a member of this account has, marked as beyond the caller', async () => {
    const beyond = await makeRole(['portal-session:create'])
    const elsewhere = await makeRole(['portal-session:create'])
    await addMember([beyond])
    await addMember([elsewhere], await makeAccount())
    const rows = await list(admin.call)
    expect(rows.filter(({ is_givable }) => !is_givable).map(({ name }) => name)).toEqual([beyond])
    expect(names(rows)).not.toContain(elsewhere)
  })

  test('are all account-scoped ones for an administrator of the platform', async () => {
    const beyond = await makeRole(['portal-session:create'])
    const rows = await list(app.admin)
    expect(names(rows)).toContain(beyond)
    expect(rows.every(({ is_givable }) => is_givable)).toBe(true)
  })

  test('are narrowed with the key of their reader', async () => {
    const permissions = ['account-member:find-roles', 'contract:*']
    const body = { name: 'narrow', permissions, account }
    const made = await app.admin('POST', '/api/v3/identity/api-key', body)
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    const contracts = await makeRole(['contract:find-all'])
    const rows = await list(app.callAs(made.body.data.key))
    const givable = rows.filter(({ is_givable }) => is_givable).map(({ name }) => name)
    expect(givable).toContain(contracts)
    expect(givable).not.toContain('account-viewer')
  })

  test('are no answer for members without the permission, nor for another account', async () => {
    expect((await (await addMember(['account-developer'])).call('GET', rolesPath())).status).toBe(403)
    const viewer = await addMember(['account-viewer'])
    const givable = names((await list(viewer.call)).filter(({ is_givable }) => is_givable))
    expect(givable).toContain('account-viewer')
    for (const beyond of ['account-admin', 'account-developer']) expect(givable).not.toContain(beyond)
    const other = await makeAccount()
    expect((await admin.call('GET', rolesPath(other))).status).toBe(404)
    expect((await (await addMember(['account-admin'], other)).call('GET', rolesPath())).status).toBe(404)
    expect((await app.admin('DELETE', `/api/v3/identity/account/${other}`)).status).toBe(200)
    expect((await app.admin('GET', rolesPath(other))).status).toBe(404)
  })

  test('are found by their name, in pages', async () => {
    const first = await admin.call('GET', `${rolesPath()}?sort=name&page_size=2&count=true`)
    expect(first.body.data).toHaveLength(2)
    expect(first.body.pagination.total).toBe((await list(admin.call)).length)
    const found = await admin.call('GET', `${rolesPath()}?filters=name|eq|account-viewer`)
    expect(names(found.body.data)).toEqual(['account-viewer'])
  })
})

test('what a caller holds in an account covers exactly what the rule of delegation lets it give there', () => {
  const here = 'a' as AccountId
  const there = 'b' as AccountId
  const caller = {
    patterns: ['user:*'],
    accountPatterns: ['contract:*'],
    membershipPatterns: [
      { account: here, patterns: ['webhook:find-all'] },
      { account: there, patterns: ['event:publish'] },
    ],
    accounts: [here, there],
    ceiling: null,
  }
  const asked = ['user:create', 'user:*', 'contract:update', 'webhook:find-all', 'webhook:*', 'event:publish', '*:*']
  for (const ceiling of [null, ['contract:*', 'event:publish'], ['*:*'], []])
    for (const place of [here, there, 'c' as AccountId])
      for (const pattern of asked) {
        const lists = listHoldingsAt({ ...caller, ceiling }, place)
        const covers = lists.every((held) => held.some((item) => coversPattern(item, pattern)))
        expect(covers, `${pattern} ${place}`).toBe(holdsGrant({ ...caller, ceiling }, { pattern, place }))
      }
})
