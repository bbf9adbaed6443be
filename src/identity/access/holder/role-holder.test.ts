import { expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const NO_ONE = '01990000-0000-7000-8000-000000000000'

const app = await openForFile(createTestApp())

const created = async (path: string, body: object) =>
  (await app.admin('POST', `/api/v3/identity/${path}`, body)).body.data.document_id as string
const holdersOf = (role: string, query = '') => app.admin('GET', `/api/v3/identity/role/${role}/holder${query}`)

test('the holders of a role are users and memberships, page by page, without who is deleted', async () => {
  const role = await created('role', { name: 'clerk', is_account_scoped: true, permissions: ['contract:*'] })
  const account = await created('account', { name: 'Acme' })
  const global = await created('user', { email: 'global@example.test', roles: [role] })
  app.clock.advance(1)
  const member = await created('user', { email: 'member@example.test' })
  await app.admin('POST', `/api/v3/identity/account/${account}/member`, { user: member, roles: [role] })
  const { body } = await holdersOf(role)
  expect(body.data).toMatchObject([
    { user: member, email: 'member@example.test', account, account_name: 'Acme' },
    { user: global, document_id: global, account: null, account_name: null, is_actived: true },
  ])
  const first = await holdersOf(role, '?page_size=1&count=true')
  expect(first.body.pagination.total).toBe(2)
  const second = await holdersOf(role, `?page_size=1&cursor=${first.body.pagination.next_cursor}`)
  expect([...first.body.data, ...second.body.data]).toEqual(body.data)
  expect((await holdersOf(role, '?sort=email')).status).toBe(422)

  await app.admin('DELETE', `/api/v3/identity/user/${global}`)
  await app.admin('DELETE', `/api/v3/identity/account/${account}`)
  expect((await holdersOf(role)).body.data).toEqual([])
})

test('the holders of no role are a 404, and need role:find-holders', async () => {
  expect((await holdersOf(NO_ONE)).status).toBe(404)
  expect((await holdersOf('clerk')).status).toBe(404)
  expect((await app.anonymous('GET', `/api/v3/identity/role/${NO_ONE}/holder`)).status).toBe(401)
  const { call } = await app.signInMember()
  const { body } = await call('GET', `/api/v3/identity/role/${NO_ONE}/holder`)
  expect(body.missing).toMatchObject({ permission: 'role:find-holders' })
})
