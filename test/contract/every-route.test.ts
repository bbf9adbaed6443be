import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { eventNameOf, type RouteDeclaration } from '../../src/http/route/route.ts'
import type { TestCall } from '../harness/app/app.ts'
import { CONNECTION_BODY } from '../journeys/connection-route-requests.ts'
import { buildSamlRouteRequests } from '../journeys/saml-route-requests.ts'
import { type ContractFixture, type Json, readEnvelope, startContractFixture } from './contract-fixture.ts'

/** The modules of which every route is called here; a new route of one of them needs a step below. */
const MODULES = ['webhook', 'identity', 'contract', 'audit', 'health', 'provisioning']

/** Routes without an event of their own: a publication records the published event, and a dry run none. */
const SILENT = ['event.publish']

const routes = (ROUTE_TREE as readonly RouteDeclaration[]).filter(
  (route) => MODULES.includes(route.path.split('/')[3] ?? '') && route.event !== 'none',
)

let fixture: ContractFixture
/** One successful answer of every route, by event name. */
const answers = new Map<string, { status: number; body: Json }>()
const delivered: Json[] = []

let call: TestCall

async function step(name: string, body?: unknown, params: Record<string, string> = {}, query = ''): Promise<Json> {
  const route = routes.find((route) => eventNameOf(route) === name)
  if (!route) throw new Error(`no route produces ${name}`)
  const path = route.path.replace(/\{(\w+)\}/g, (_, param: string) => params[param] ?? '')
  const answer = await call(route.method, `${path}${query}`, body)
  answers.set(name, answer)
  expect(answer.status, `${name}: ${JSON.stringify(answer.body)}`).toBe(route.status ?? 200)
  return answer.body.data
}

/** A key of the administrator. */
const ALL = { name: 'all', permissions: ['*:*'] }

async function walkIdentity() {
  const account = await step('account.create', { name: 'Walk' })
  const user = await step('user.create', { email: 'walk@example.com', password: 'correct horse battery' })
  const role = await step('role.create', { name: 'walker', permissions: ['contract:*'] })
  const key = await step('api-key.create', { name: 'walk', permissions: ['contract:*'] })
  const [byAccount, byUser, byRole, byKey] = [account, user, role, key].map((row) => ({
    id: row.document_id as string,
  }))
  for (const name of ['account', 'user', 'role', 'api-key', 'permission']) await step(`${name}.find-all`)
  await step('account.find-one', undefined, byAccount)
  await step('user.find-one', undefined, byUser)
  await step('role.find-one', undefined, byRole)
  await step('api-key.find-one', undefined, byKey)
  await step('user.find-access', undefined, byUser)
  await step('role.find-holders', undefined, byRole)
  await step('sign-in-provider.find-all')
  await step('handshake-target.find-all')
  await step('account.update', { name: 'Walked' }, byAccount)
  await step('account-limit.update', { webhooks: 9 }, byAccount)
  await step('account-limit.find-one', undefined, byAccount)
  await step('account-member.create', { user: user.document_id }, byAccount)
  await step('account-member.find-all', undefined, byAccount)
  await step('account-member.find-roles', undefined, byAccount)
  const roles = await fixture.app.admin('GET', '/api/v3/identity/role?filters=name|eq|account-viewer')
  const membership = { user: user.document_id, roles: [roles.body.data[0].document_id] }
  await step('account-member.update', membership, byAccount)
  const [reader] = await step('account-invitation.find-all', undefined, byAccount)
  expect(reader).toBeUndefined()
  const invited = await step('account-invitation.create', { email: 'guest@example.com' }, byAccount)
  await step('account-invitation.delete', undefined, { ...byAccount, invitation: invited.document_id })
  const made = await fixture.app.admin('POST', '/api/v3/identity/api-key', ALL)
  const before = call
  call = fixture.app.callAs(made.body.data.key)
  const portal = await step('portal-session.create', { role: 'account-viewer' }, byAccount)
  call = before
  expect(await step('portal-session.find-all', undefined, byAccount)).toHaveLength(1)
  await step('portal-session.delete', undefined, { ...byAccount, session: portal.document_id })
  await walkConnections(byAccount)
  await step('account-member.delete', { user: user.document_id }, byAccount)
  await step('user.update', { name: 'Walker' }, byUser)
  await step('role.update', { description: 'walks' }, byRole)
  const signIn = () =>
    fixture.app.app.server.inject({
      method: 'POST',
      url: '/api/v3/auth/login/local',
      payload: { email: 'walk@example.com', password: 'correct horse battery' },
    })
  await signIn()
  const [session] = await step('session.find-all', undefined, {}, `?filters=user|eq|${user.document_id}`)
  await step('session.delete', undefined, { id: session.document_id })
  const [tried] = await step('user.find-sign-ins', undefined, byUser)
  expect(tried).toMatchObject({ method: 'local', outcome: 'success' })
  await signIn()
  await step('user.revoke-sessions', undefined, byUser)
  await step('user.remove-factors', undefined, byUser)
  await step('user.disable', undefined, byUser)
  await step('user.enable', undefined, byUser)
  await step('user.delete', undefined, byUser)
  await step('role.delete', undefined, byRole)
  await step('api-key.delete', undefined, byKey)
  await step('account.delete', undefined, byAccount)
}

/** The TXT records of this walk, by name. */
const walkRecords = new Map<string, string[]>()

async function walkConnections(byAccount: { id: string } = { id: '' }) {
  const made = await step('connection.create', CONNECTION_BODY, byAccount)
  const byConnection = { ...byAccount, connection: made.document_id as string }
  await step('connection.find-all', undefined, byAccount)
  await step('connection.find-one', undefined, byConnection)
  await step('connection.find-activity', undefined, byConnection)
  await step('connection.update', { name: 'Walked' }, byConnection)
  const claimed = await step('connection-domain.create', { domain: 'walk.example' }, byConnection)
  const byDomain = { ...byConnection, domain: claimed.document_id as string }
  await step('connection-domain.find-all', undefined, byConnection)
  await step('connection-domain.approve', undefined, byDomain)
  const other = await step('connection-domain.create', { domain: 'other.walk.example' }, byConnection)
  const verify = { ...byConnection, domain: other.document_id as string }
  walkRecords.set(other.record_name, [other.record_value])
  await step('connection-domain.verify', undefined, verify)
  await step('connection-domain.delete', undefined, byDomain)
  await step('connection.delete', undefined, byConnection)
}

/** The code of a connected provider, as the callback of a provider leaves it. */
async function leaveLinkCode(code: string) {
  const now = fixture.app.clock.now()
  const identity = { provider: 'walk', subject: '1', email: null, isEmailVerified: false, name: null, avatarUrl: null }
  await fixture.app.database.db
    .insertInto('login_code')
    .values({
      code_hash: createHash('sha256').update(code).digest(),
      purpose: 'link',
      user: fixture.app.adminId,
      identity: JSON.stringify(identity),
      expires_at: new Date(now + 60_000),
      created_at: new Date(now),
    })
    .execute()
}

async function walkProviders() {
  // An API key changes no way to sign in.
  call = fixture.app.callAs(fixture.app.adminToken)
  await leaveLinkCode('walk')
  const { document_id: id } = await step('identity.create', { code: 'walk' })
  await step('identity.find-all')
  await step('identity.find-one', undefined, { id })
  await step('identity.delete', undefined, { id })
  await leaveLinkCode('walk again')
  const byUser = { id: fixture.app.adminId }
  const again = await step('identity.create', { code: 'walk again' })
  await step('user-identity.find-all', undefined, byUser)
  await step('user-identity.delete', undefined, { ...byUser, identity: again.document_id })
  call = fixture.app.admin
}

async function walkContract(account: string) {
  const { document_id: id } = await step('contract.create', { account, name: 'Lease' })
  await step('contract.find-all')
  await step('contract.find-one', undefined, { id })
  await step('contract.update', { status: 'active' }, { id })
  await step('contract.delete', undefined, { id })
}

async function walkWebhook(account: string) {
  const { document_id: id } = await step('webhook.create', { url: `${fixture.receiver.origin}/walk`, account })
  await step('webhook.find-all')
  await step('webhook.find-one', undefined, { id })
  await step('webhook.dashboard-breakdown', undefined, { id })
  await step('webhook.export', undefined, {}, '?format=json')
  await step('webhook.update', { name: 'walked', asymmetric_signature: true }, { id })
  const [created, updated] = await fixture.findEventIds(['contract.create', 'contract.update'])
  await step('webhook-event.set', { events: [created] }, { id })
  await step('webhook-event.find-set', undefined, { id })
  const link = { id: (await step('webhook-event.create', { webhook: id, event: updated })).document_id }
  await step('webhook-event.find-all')
  await step('webhook-event.find-one', undefined, link)
  const [other] = await fixture.findEventIds(['contract.delete'])
  await step('webhook-event.update', { event: other }, link)
  const [moved] = (await fixture.app.admin('GET', `/api/v3/webhook/webhook-event?filters=event|eq|${other}`)).body.data
  await step('webhook-event.delete', undefined, { id: moved.document_id })
  await step('webhook.rotate-secret', undefined, { id })
  await step('webhook.rotate-key', undefined, { id })
  const { dispatch_id: dispatch } = await step('webhook.test', undefined, { id })
  await fixture.app.settle()
  await walkLedger(dispatch)
  await step('webhook.active', { is_actived: false }, { id })
  await step('webhook.delete', undefined, { id })
  await step('webhook.purge', undefined, { id })
}

async function walkLedger(dispatch: string) {
  await step('webhook-dispatch.find-all')
  await step('webhook-dispatch.export', undefined, {}, '?format=json')
  await step('webhook-dispatch.find-one', undefined, { id: dispatch })
  await step('webhook-dispatch.replay', { confirm_duplicate: true }, { id: dispatch })
  await fixture.app.settle()
  const { event_id: event } = await fixture.readDispatch(dispatch)
  await step('event-occurrence.find-all')
  await step('event-occurrence.find-one', undefined, { id: event })
  const { webhook } = await fixture.readDispatch(dispatch)
  await step('event-occurrence.routing', undefined, { id: event }, `?webhook=${webhook}`)
  const filters = [`document_id|eq|${dispatch}`]
  const { document_id: job } = await step('webhook-dispatch.replay-all', { filters, confirm_duplicate: true })
  await step('replay-job.find-all')
  for (const action of ['find-one', 'pause', 'resume', 'cancel'])
    await step(`replay-job.${action}`, undefined, { id: job })
}

async function walkProvisioning() {
  const { document_id: id } = await step('provisioning-target.create', { url: `${fixture.receiver.origin}/target` })
  await step('provisioning-target.find-all')
  await step('provisioning-target.find-one', undefined, { id })
  await step('provisioning-target.update', { name: 'walked' }, { id })
  await step('provisioning-target.rotate-secret', undefined, { id })
  await step('provisioning-target.find-streams', undefined, { id })
  const { document_id: job } = await step('provisioning-target.sync', undefined, { id })
  await step('provisioning-job.find-all')
  for (const action of ['find-one', 'pause', 'resume', 'cancel'])
    await step(`provisioning-job.${action}`, undefined, { id: job })
  await step('provisioning-target.reconcile', undefined, { id })
  await fixture.app.settle()
  await step('provisioning-target.redrive', undefined, { id })
  await fixture.app.settle()
  const [{ document_id: delivery }] = await step('provisioning-delivery.find-all')
  await step('provisioning-delivery.find-one', undefined, { id: delivery })
  await step('provisioning-delivery.replay', { confirm_duplicate: true }, { id: delivery })
  await step('provisioning-target.active', { is_actived: false }, { id })
  await step('provisioning-target.delete', undefined, { id })
}

/** What belongs to a user, and so not to the key of these tests. */
async function walkOwnSettings() {
  const key = call
  call = (await fixture.app.signInMember()).call
  await step('webhook-mail.update', { is_stopped: true })
  await step('webhook-mail.find-one')
  call = key
}

async function walkCatalogue() {
  const { document_id: id } = await step('event.create', { internal: 'invoice.paid' })
  await step('event.find-all')
  await step('event.find-one', undefined, { id })
  await step('event.publish', { event: 'invoice.paid', id: 'inv-1' })
  await step('event.update', { group: 'billing' }, { id })
  await step('event.active', { is_actived: false }, { id })
  await step('event.tenant-visible', { is_tenant_visible: true }, { id })
  await step('event.subscribers')
  await step('event.routing', undefined, { id }, '?account=01997e2a-6c00-7000-8000-0000000000a1')
  await step('webhook.catalogue-status')
  await step('webhook.catalogue-sync')
  await step('webhook.dashboard')
  await step('webhook.dashboard-series')
  await step('webhook.dashboard-queue')
  await step('webhook.dashboard-webhooks', undefined, {}, '?webhook=00000000-0000-7000-8000-000000000000')
  await step('webhook.dashboard-accounts', undefined, {}, '?account=00000000-0000-7000-8000-000000000000')
  await step('webhook.dashboard-events')
  await step('user.dashboard-sign-ins')
  await step('audit-log.find-all')
  await step('health.webhook-out')
  await step('health.realtime')
  await step('health.provisioning')
  await step('health.stored-secrets')
  await step('health.clock')
  await step('health.connections')
  await step('health.service')
  await step('health.find-all')
}

beforeAll(async () => {
  fixture = await startContractFixture({
    resolveTxt: async (name) => walkRecords.get(name) ?? [],
    env: { AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.com' },
  })
  call = fixture.app.admin
  const account = (await fixture.createAccount()).document_id
  const all = routes.map(eventNameOf)
  const watcher = await fixture.createWebhook({ is_global: true }, all)
  await walkIdentity()
  await walkProviders()
  await walkContract(account)
  await walkWebhook(account)
  await walkProvisioning()
  await walkCatalogue()
  await walkOwnSettings()
  await fixture.app.settle()
  delivered.push(...fixture.received(watcher).map((request) => readEnvelope(request)))
})
afterAll(() => fixture[Symbol.asyncDispose]())

test('api#route-declaration: every declared route of the webhook, identity, contract, audit, health and provisioning modules answers', () => {
  expect([...answers.keys()].sort()).toEqual(routes.map(eventNameOf).sort())
})

test('api#route-declaration: the routes of SAML answer too', async () => {
  const account = (await fixture.createAccount()).document_id
  const { readMetadata, signIn } = buildSamlRouteRequests({ app: () => fixture.app, account: () => account })
  const requests = Object.entries({ 'connection.read-metadata': readMetadata, ...signIn })
  expect(requests).toHaveLength(3)
  for (const [name, make] of requests) {
    const route = (ROUTE_TREE as readonly RouteDeclaration[]).find((declared) => eventNameOf(declared) === name)
    if (!route) throw new Error(`no route is ${name}`)
    const { params = {}, call = fixture.app.admin, body, headers, status = route.status ?? 200 } = await make()
    const path = route.path.replace(/\{(\w+)\}/g, (_, param: string) => params[param] ?? '')
    const answer = await call(route.method, path, body, headers)
    expect(answer.status, `${name}: ${JSON.stringify(answer.body)}`).toBe(status)
  }
})

test('events#emission, events#event-types: every route records the event named after its resource and action, also subscribed reads', () => {
  const types = new Set(delivered.map((envelope) => envelope.type))
  const expected = routes.map(eventNameOf).filter((name) => !SILENT.includes(name) && name !== 'webhook.test')
  expect(expected.filter((name) => !types.has(name))).toEqual([])
  expect(SILENT.filter((name) => types.has(name))).toEqual([])
})

test('events#emission, webhooks#envelope, events#purge-events: only account events have an account, except purges', () => {
  const scopes = new Map(routes.map((route) => [eventNameOf(route), route.accountScope]))
  for (const { type, data } of delivered) {
    if (scopes.get(type) === 'none' || data.action === 'purge') expect(data.account, type).toBeNull()
    expect(type).toBe(`${data.resource}.${data.action}`)
  }
  expect(delivered.filter(({ data }) => data.action === 'purge').length).toBeGreaterThan(0)
})

test('webhooks#envelope: an envelope contains only ids of the resource', () => {
  for (const envelope of delivered) {
    expect(Object.keys(envelope.data).sort(), envelope.type).toEqual(['account', 'action', 'id', 'resource', 'url'])
    expect(JSON.stringify(envelope)).not.toMatch(/Lease|walk@example\.com|whsec_|sbx_/)
  }
})

test('api#success: a success is { data, message }, a list also has pagination, and the status is the declared one', () => {
  for (const route of routes) {
    const name = eventNameOf(route)
    const { body } = answers.get(name) ?? { body: undefined }
    if (name === 'webhook.export' || name === 'webhook-dispatch.export') continue
    const members = route.list ? ['data', 'message', 'pagination'] : ['data', 'message']
    expect(Object.keys(body).sort(), name).toEqual(members)
    expect(body.message, name).toEqual(expect.stringMatching(/\S/))
    if (route.list) {
      expect(Array.isArray(body.data), name).toBe(true)
      expect(body.pagination, name).toMatchObject({ page_size: 50 })
      expect(body.pagination, name).toHaveProperty('next_cursor')
    }
    if (route.action === 'create') expect(route.status, name).toBe(201)
  }
})

test('api#identifiers: every row has created_at and updated_at', () => {
  for (const [name, { body }] of answers) {
    if (!/\.(create|find-one|update)$/.test(name)) continue
    expect(body.data, name).toMatchObject({ created_at: expect.any(String), updated_at: expect.any(String) })
  }
})

test('api#route-declaration: each operation has an audit entry with the name of its event and its actor', async () => {
  const changes = routes.filter((route) => route.method !== 'GET').map(eventNameOf)
  const { rows } = await fixture.app.database.pool.query('select distinct action from audit_entry where outcome = $1', [
    'success',
  ])
  const actions = rows.map((row) => row.action)
  expect(changes.filter((name) => !actions.includes(name))).toEqual([])
  const own = await fixture.app.admin('GET', '/api/v3/audit/log?filters=action|eq|contract.create')
  expect(own.body.data[0]).toMatchObject({ action: 'contract.create', user: fixture.app.adminId, outcome: 'success' })
})
