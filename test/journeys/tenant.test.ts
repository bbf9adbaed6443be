import { expect, test } from 'vitest'
import { type Json, readEnvelope, startContractFixture } from '../contract/contract-fixture.ts'
import type { TestAnswer, TestCall } from '../harness/app/app.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

const HOOKS = '/api/v3/webhook/webhook'
const PASSWORD = 'a phrase that nobody guesses'

const fixture = await openForFile(startContractFixture())

const ok = async (answer: Promise<TestAnswer>): Promise<Json> => {
  const { status, body } = await answer
  expect(status, JSON.stringify(body)).toBeLessThan(300)
  return body.data
}

/** Steps 1 to 4 of docs/guides/tenants.md: an account, an invitation, its acceptance, a key that is bound to the account. */
async function openTenant(name: string): Promise<{ account: string; key: TestCall; user: TestCall }> {
  const { admin, anonymous, callAs } = fixture.app
  const { document_id: account } = await ok(admin('POST', '/api/v3/identity/account', { name }))
  const found = await ok(admin('GET', '/api/v3/identity/role?filters=name|in|account-admin,account-publisher'))
  const email = `dev@${name}.example`
  const roles = found.map((role: Json) => role.document_id)
  await ok(admin('POST', `/api/v3/identity/account/${account}/invitation`, { email, roles }))
  const [mail] = await readMails(fixture.app, email)
  await ok(anonymous('POST', '/api/v3/auth/invitation/accept', { token: mail?.token, password: PASSWORD, name }))
  const { jwt } = await ok(anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD }))
  const user = callAs(jwt)
  const permissions = ['webhook:*', 'webhook-event:*', 'webhook-dispatch:*', 'event:find-all', 'event:publish']
  const made = await ok(user('POST', '/api/v3/identity/api-key', { name: 'integration', account, permissions }))
  return { account, key: callAs(made.key), user }
}

/** Steps 5 and 6: a webhook, subscribed to an event type that the catalogue shows. */
async function register({ account, key }: { account: string; key: TestCall }, path: string): Promise<Json> {
  const hook = await ok(key('POST', HOOKS, { url: `${fixture.receiver.origin}${path}`, account }))
  const types = await ok(key('GET', '/api/v3/webhook/event?filters=internal|eq|shipment.arrive'))
  await ok(key('PUT', `${HOOKS}/${hook.document_id}/events`, { events: [types[0].document_id] }))
  return hook
}

const publish = ({ account, key }: { account: string; key: TestCall }, id: string) =>
  ok(key('POST', '/api/v3/webhook/publish', { event: 'shipment.arrive', account, id }))

test('two customers help themselves from an invitation to a delivery, and neither sees the other', async () => {
  const type = { internal: 'shipment.arrive', is_tenant_visible: true }
  await ok(fixture.app.admin('POST', '/api/v3/webhook/event', type))
  const acme = await openTenant('acme')
  const globex = await openTenant('globex')
  const hooks = { acme: await register(acme, '/acme'), globex: await register(globex, '/globex') }
  await publish(acme, 'S-1')
  await publish(globex, 'S-2')
  await fixture.app.settle()

  const bodiesAt = (path: string) =>
    fixture.receiver.requests.filter((request) => request.path === path).map((request) => readEnvelope(request))
  expect(bodiesAt('/acme')).toMatchObject([{ type: 'shipment.arrive', data: { account: acme.account, id: 'S-1' } }])
  expect(bodiesAt('/globex')).toMatchObject([{ data: { account: globex.account, id: 'S-2' } }])

  for (const [own, tenant, other] of [
    [hooks.acme, acme, hooks.globex],
    [hooks.globex, globex, hooks.acme],
  ] as const)
    for (const call of [tenant.key, tenant.user]) {
      expect((await ok(call('GET', HOOKS))).map((row: Json) => row.document_id)).toEqual([own.document_id])
      const ledger = await ok(call('GET', '/api/v3/webhook/dispatch'))
      expect(ledger).toMatchObject([{ webhook: own.document_id, status: 'success' }])
      expect((await call('GET', `${HOOKS}/${other.document_id}`)).status).toBe(404)
    }
})

test('a customer asks why an event was delivered, replays it, and reads its dashboard and its limits', async () => {
  const initech = await openTenant('initech')
  await register(initech, '/initech')
  await publish(initech, 'S-3')
  await fixture.app.settle()
  const [event] = await ok(initech.user('GET', '/api/v3/webhook/event-occurrence?filters=event|eq|shipment.arrive'))
  const routing = await ok(initech.user('GET', `/api/v3/webhook/event-occurrence/${event.document_id}/routing`))
  expect(routing.summary).toEqual({ delivered: 1 })
  const again = { filters: ['event|eq|shipment.arrive'], confirm_duplicate: true }
  await ok(initech.key('POST', '/api/v3/webhook/dispatch/replay', again))
  await fixture.app.settle()
  expect(fixture.receiver.requests.filter(({ path }) => path === '/initech')).toHaveLength(2)
  const summary = await ok(initech.user('GET', '/api/v3/webhook/dashboard/summary'))
  expect(summary).toMatchObject({ deliveries_24h: { success: 1 }, webhooks: { active: 1, inactive: 0 } })
  const limits = await ok(initech.user('GET', `/api/v3/identity/account/${initech.account}/limit`))
  expect(limits).toMatchObject({ limits: { webhooks: 100 }, used: { webhooks: 1, subscriptions: 1 } })
})
