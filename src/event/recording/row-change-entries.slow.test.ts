import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const IDENTITY = '/api/v3/identity'

const app = await openForFile(createTestApp())

async function created(path: string, body: object): Promise<string> {
  const answer = await app.admin('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data.document_id
}

/** Makes a change, and returns the details of its audit entry. */
async function detailOf(method: 'PATCH' | 'PUT' | 'POST', path: string, body: object, action: string) {
  app.clock.advance(1)
  const answer = await app.admin(method, path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  const { body: log } = await app.admin('GET', `/api/v3/audit/log?filters=action|eq|${action}&page_size=1`)
  return log.data[0].detail
}

test('the entry of a change has what differs: of a user, its name, its roles and its state', async () => {
  const role = await created(`${IDENTITY}/role`, { name: 'clerk', permissions: ['contract:*'] })
  const user = await created(`${IDENTITY}/user`, { email: 'a@example.test', name: 'Ada' })
  const path = `${IDENTITY}/user/${user}`
  const change = { name: 'Ada L.', roles: [role], password: 'correct horse battery' }
  const detail = await detailOf('PATCH', path, change, 'user.update')
  expect(detail.changes.name).toEqual({ from: 'Ada', to: 'Ada L.' })
  expect(detail.changes.roles).toMatchObject({ added: [role] })
  expect(detail.members).toEqual(['name', 'roles', 'password'])
  expect(JSON.stringify(detail)).not.toMatch(/battery|argon2/)
  const ended = await detailOf('POST', `${path}/disable`, {}, 'user.disable')
  expect(ended).toEqual({ changes: { is_actived: { from: true, to: false } } })
  const again = await detailOf('POST', `${path}/enable`, {}, 'user.enable')
  expect(again).toEqual({ changes: { is_actived: { from: false, to: true } } })
})

test('of a role, the patterns that came and went', async () => {
  const role = await created(`${IDENTITY}/role`, { name: 'keeper', permissions: ['user:find-one', 'user:find-all'] })
  const change = { permissions: ['user:find-one', 'role:find-all'] }
  expect(await detailOf('PATCH', `${IDENTITY}/role/${role}`, change, 'role.update')).toEqual({
    changes: { permissions: { added: ['role:find-all'], removed: ['user:find-all'] } },
  })
})

test('of an account, its limits, and the roles of a member', async () => {
  const account = await created(`${IDENTITY}/account`, { name: 'Acme' })
  const path = `${IDENTITY}/account/${account}`
  const limits = await detailOf('PATCH', `${path}/limit`, { webhooks: 3 }, 'account-limit.update')
  expect(limits.changes.own).toMatchObject({ from: { webhooks: null }, to: { webhooks: 3 } })
  const role = await created(`${IDENTITY}/role`, {
    name: 'clerks',
    is_account_scoped: true,
    permissions: ['webhook:*'],
  })
  const user = await created(`${IDENTITY}/user`, { email: 'm@example.test' })
  await created(`${path}/member`, { user })
  const member = await detailOf('PATCH', `${path}/member`, { user, roles: [role] }, 'account-member.update')
  expect(member.changes).toEqual({ roles: { added: [role], removed: [] } })
})

test('of a webhook, its URL without the query, and the names of its events', async () => {
  const webhook = await created('/api/v3/webhook/webhook', { url: 'https://example.com/a?key=1', is_global: true })
  const path = `/api/v3/webhook/webhook/${webhook}`
  expect(await detailOf('PATCH', path, { url: 'https://example.com/b?key=2' }, 'webhook.update')).toEqual({
    changes: { url: { from: 'https://example.com/a?…', to: 'https://example.com/b?…' } },
  })
  expect(await detailOf('PUT', `${path}/events`, { events: ['user.update'] }, 'webhook-event.set')).toEqual({
    changes: { events: { added: ['user.update'], removed: [] } },
  })
})

test('of an app, its redirect URIs; of a target, its URL and never its token', async () => {
  const client = await created('/api/v3/oauth/client', {
    ...{ name: 'Ledger', type: 'public', scopes: ['openid'] },
    redirect_uris: ['https://a.example/back', 'https://b.example/back'],
  })
  const redirects = { redirect_uris: ['https://a.example/back', 'https://c.example/back'] }
  expect(await detailOf('PATCH', `/api/v3/oauth/client/${client}`, redirects, 'oauth-client.update')).toEqual({
    changes: { redirect_uris: { added: ['https://c.example/back'], removed: ['https://b.example/back'] } },
  })
  const [from, to] = ['https://example.com/scim/v2', 'https://example.com/scim/v3']
  const target = await created('/api/v3/provisioning/target', { url: from, protocol: 'scim', token: 'token-1' })
  const path = `/api/v3/provisioning/target/${target}`
  expect(await detailOf('PATCH', path, { url: to, token: 'token-2' }, 'provisioning-target.update')).toEqual({
    changes: { url: { from, to } },
  })
  expect(await detailOf('PATCH', `${path}/active`, { is_actived: false }, 'provisioning-target.active')).toEqual({
    changes: { is_actived: { from: true, to: false } },
  })
})
