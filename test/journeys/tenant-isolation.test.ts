import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { eventNameOf, type RouteDeclaration } from '../../src/http/route/route.ts'
import { type ContractFixture, type Json, startContractFixture } from '../contract/contract-fixture.ts'
import type { TestAnswer, TestCall } from '../harness/app/app.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import { type SimulatedProvider, startRealtimeProvider } from '../harness/realtime/realtime-provider.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { CONNECTION_BODY } from './connection-route-requests.ts'
import { buildPlatformRouteRequests } from './platform-route-requests.ts'
import type { Request } from './route-requests.ts'

const ROUTES: readonly RouteDeclaration[] = ROUTE_TREE
const PUBLIC = ROUTES.filter((route) => route.access === 'public' && !route.readsCaller)
const DRIVEN = ROUTES.filter((route) => !PUBLIC.includes(route))

/** Rows of another tenant, by kind. No answer to a stranger may hold one of their ids. */
interface Victim {
  account: string
  user: string
  email: string
  webhook: string
  subscription: string
  dispatch: string
  event: string
  job: string
  key: string
  session: string
  invitation: string
  connection: string
  connectionDomain: string
  portalSession: string
  token: string
  /** Input of a request to each route of a platform's own resources, by the event of the route. */
  platform: Record<string, Request>
}

/** Every word of the victim, with what it is. */
const listWords = ({ platform, ...own }: Victim): [what: string, word: string][] => [
  ...Object.entries(own),
  ...Object.entries(platform).flatMap(([name, { params }]) =>
    params?.id ? [[name, params.id] as [string, string]] : [],
  ),
]

/** Ids that are in none of the accounts: of operators, or of users. They belong to no tenant. */
const NO_ONE = '01990000-0000-7000-8000-000000000000'

/** Values of `{id}` and the other parameters of a path, by the resource of the route. */
const PATHS: Record<string, (victim: Victim) => Record<string, string>> = {
  user: ({ user }) => ({ id: user }),
  account: ({ account }) => ({ id: account }),
  'account-member': ({ account }) => ({ id: account }),
  'account-limit': ({ account }) => ({ id: account }),
  'account-invitation': ({ account, invitation }) => ({ id: account, invitation }),
  connection: ({ account, connection }) => ({ id: account, connection }),
  'connection-domain': ({ account, connection, connectionDomain }) => ({
    id: account,
    connection,
    domain: connectionDomain,
  }),
  'portal-session': ({ account, portalSession }) => ({ id: account, session: portalSession }),
  'api-key': ({ key }) => ({ id: key }),
  session: ({ session }) => ({ id: session }),
  webhook: ({ webhook }) => ({ id: webhook }),
  'webhook-event': ({ subscription }) => ({ id: subscription }),
  'webhook-dispatch': ({ dispatch }) => ({ id: dispatch }),
  'replay-job': ({ job }) => ({ id: job }),
  'event-occurrence': ({ event }) => ({ id: event }),
  // Paths of the operator or of a user: no row of an account is there.
  role: () => ({ id: NO_ONE }),
  event: () => ({ id: NO_ONE }),
  identity: () => ({ id: NO_ONE, provider: 'github' }),
  'user-identity': ({ user }) => ({ id: user, identity: NO_ONE }),
  passkey: () => ({ id: NO_ONE }),
  'totp-factor': () => ({ id: NO_ONE }),
  'oauth-client': () => ({ id: NO_ONE, secret: NO_ONE }),
  'oauth-grant': () => ({ id: NO_ONE }),
  'realtime-channel': ({ account }) => ({ name: `presence-account-${account}` }),
  'provisioning-target': () => ({ id: NO_ONE }),
  'provisioning-delivery': () => ({ id: NO_ONE }),
  'provisioning-job': () => ({ id: NO_ONE }),
}

/** Routes of a resource that are found by the id of another one. */
const PATHS_OF: Record<string, (victim: Victim) => Record<string, string>> = {
  'webhook-event.find-set': ({ webhook }) => ({ id: webhook }),
  'webhook-event.set': ({ webhook }) => ({ id: webhook }),
}

/** The bodies that name what the other tenant has. A route with a body that is not here fails the test. */
const BODIES: Record<string, (victim: Victim) => unknown> = {
  'account.update': () => ({ name: 'Taken' }),
  'account-limit.update': () => ({ webhooks: 0 }),
  'account-member.create': ({ user }) => ({ user }),
  'account-member.update': ({ user }) => ({ user, roles: [] }),
  'account-member.delete': ({ user }) => ({ user }),
  'account-invitation.create': () => ({ email: 'stranger@example.com' }),
  'account-invitation.accept': ({ token }) => ({ token }),
  'connection.create': () => CONNECTION_BODY,
  'connection.update': () => ({ name: 'Taken' }),
  'connection.read-metadata': () => ({ metadata: '<a/>' }),
  'connection-domain.create': () => ({ domain: 'taken.example' }),
  'login.find-connection': () => ({ email: 'stranger@example.com' }),
  'portal-session.create': () => ({ role: 'account-viewer' }),
  'portal-session.open': () => ({ token: 'sbl_forged' }),
  'portal-session.end': () => ({ token: 'sbp_forged' }),
  'api-key.create': ({ account }) => ({ name: 'taken', permissions: ['contract:*'], account }),
  'webhook.create': ({ account }) => ({ url: 'https://hooks.example.com/', account }),
  'webhook.update': () => ({ name: 'Taken' }),
  'webhook.active': () => ({ is_actived: false }),
  'webhook.pull': () => ({ max: 1 }),
  'webhook.ack': ({ dispatch }) => ({ receipts: [`${dispatch}:1`] }),
  'webhook.nack': ({ dispatch }) => ({ receipts: [`${dispatch}:1`] }),
  'webhook.extend': ({ dispatch }) => ({ receipts: [`${dispatch}:1`] }),
  'webhook-event.set': () => ({ events: [visibleType] }),
  'webhook-event.create': ({ webhook }) => ({ webhook, event: visibleType }),
  'webhook-event.update': () => ({ event: visibleType }),
  'event.publish': ({ account }) => ({ event: 'order.paid', account, id: 'forged' }),
  'webhook-dispatch.replay': () => ({ confirm_duplicate: true }),
  'webhook-dispatch.replay-all': ({ dispatch }) => ({
    filters: [`document_id|eq|${dispatch}`],
    confirm_duplicate: true,
    dry_run: true,
  }),
  'session.revoke': () => ({ refresh_token: 'not one of the stranger' }),
  'user.update': () => ({ name: 'Taken' }),
  'user.disable': () => ({}),
  'user.revoke-sessions': () => ({}),
  'realtime.auth': ({ account }) => ({ socket_id: '1.1', channel_name: `private-account-${account}` }),
  'realtime.presence-auth': ({ account }) => ({ socket_id: '1.1', channel_name: `presence-account-${account}` }),
  'realtime.resume': ({ account }) => ({
    channel_name: `private-account-${account}`,
    since: '2026-01-01T00:00:00.000Z',
  }),
}

/** Changes of what the stranger itself has, which name nobody else: their bodies are left out, and refused. */
const OF_ONESELF =
  /^(?:user[.](?:update-own|delete-own|request-email-change|set-picture)$|(?:password|email|identity|passkey|totp-factor|recovery-code|second-factor|sso|oauth-decision|realtime|session|webhook-mail)[.])/

/** Changes of operators: a tenant is refused before the body is read. */
const isOfOperators = (route: RouteDeclaration) => route.access === undefined && route.ownAccounts !== true

const nameOf = (route: RouteDeclaration) => eventNameOf(route)
const titleOf = (route: RouteDeclaration) => `${nameOf(route)} (${route.method} ${route.path})`

let fixture: ContractFixture
let realtime: SimulatedProvider
let visibleType: string
let victim: Victim
/** The tables of a platform's own resources whose rows have an account. */
let platformTables: string[]
let strangers: { name: string; call: TestCall }[]

const sessionOf = (jwt: string): string => JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()).sid

/** An account with a user who may do everything there. */
async function addTenant() {
  const account = (await fixture.createAccount()).document_id as string
  return { account, ...(await fixture.signInWithRoles([account], ['account-admin', 'account-publisher'])) }
}

async function buildVictim(): Promise<Victim> {
  const { account, call, userId, token } = await addTenant()
  const ok = async (answer: Promise<TestAnswer>): Promise<Json> => {
    const { status, body } = await answer
    expect(status, JSON.stringify(body)).toBeLessThan(300)
    return body.data
  }
  const hook = await fixture.createWebhook({ account }, ['contract.create'])
  await ok(call('POST', '/api/v3/contract/contract', { account, name: 'Secret lease' }))
  await fixture.app.settle()
  const [dispatch] = await fixture.readLedger(hook)
  const links = await ok(call('GET', `/api/v3/webhook/webhook-event?filters=webhook|eq|${hook.id}`))
  const all = { filters: [`webhook|eq|${hook.id}`], confirm_duplicate: true }
  const job = await ok(call('POST', '/api/v3/webhook/dispatch/replay', all))
  const key = await ok(
    call('POST', '/api/v3/identity/api-key', { name: 'of the victim', permissions: ['contract:*'], account }),
  )
  const invited = 'invited@example.com'
  const invitation = await ok(call('POST', `/api/v3/identity/account/${account}/invitation`, { email: invited }))
  const connections = `/api/v3/identity/account/${account}/connection`
  const connection = await ok(call('POST', connections, CONNECTION_BODY))
  const claimed = { domain: 'victim.example' }
  const domain = await ok(call('POST', `${connections}/${connection.document_id}/domain`, claimed))
  const user = await ok(fixture.app.admin('GET', `/api/v3/identity/user/${userId}`))
  return {
    account,
    user: userId,
    email: user.email,
    webhook: hook.id,
    subscription: links[0].document_id,
    dispatch: dispatch.document_id,
    event: dispatch.event_id,
    job: job.document_id,
    key: key.document_id,
    session: sessionOf(token),
    invitation: invitation.document_id,
    connection: connection.document_id,
    connectionDomain: domain.document_id,
    portalSession: (await openPortal(account)).id,
    token: (await readMails(fixture.app, invited))[0]?.token as string,
    platform: await buildPlatformRequests(account),
  }
}

/** A portal session of an account, made by a key that reaches every account. */
async function openPortal(account: string): Promise<{ id: string; call: TestCall }> {
  const administrator = fixture.app.callAs(fixture.app.adminToken)
  const made = await administrator('POST', '/api/v3/identity/api-key', { name: 'platform', permissions: ['*:*'] })
  const path = `/api/v3/identity/account/${account}/portal-session`
  const { body } = await fixture.app.callAs(made.body.data.key)('POST', path, { role: 'account-admin' })
  const token = body.data.url.split('#token=')[1]
  const opened = await fixture.app.anonymous('POST', '/api/v3/auth/portal-session/open', { token })
  return { id: opened.body.data.document_id, call: fixture.app.callAs(opened.body.data.token) }
}

/** Of the tables that are named after these resources, those with an owner. */
async function listTables(resources: readonly string[]): Promise<string[]> {
  const { rows } = await fixture.app.database.pool.query(
    `select distinct table_name as name from information_schema.columns
     where table_schema = 'public' and column_name = 'account' and table_name = any($1) order by 1`,
    [resources.map((resource) => resource.replaceAll('-', '_'))],
  )
  return rows.map(({ name }) => name)
}

/** The requests that CONTRIBUTING.md adds for the routes of a resource, with rows of this account. */
async function buildPlatformRequests(account: string): Promise<Record<string, Request>> {
  const created = async (path: string, body: object): Promise<Json> =>
    (await fixture.app.admin('POST', path, body)).body.data
  const makers = buildPlatformRouteRequests({ created, account: () => account })
  const requests: Record<string, Request> = {}
  for (const [name, make] of Object.entries(makers)) requests[name] = (await make?.()) ?? {}
  return requests
}

beforeAll(async () => {
  const clock = buildManualClock()
  realtime = await startRealtimeProvider(() => clock.now())
  fixture = await startContractFixture({ clock, env: realtime.env })
  visibleType = (await fixture.findEventIds(['contract.create']))[0] as string
  await fixture.app.admin('POST', '/api/v3/webhook/event', { internal: 'order.paid', is_tenant_visible: true })
  victim = await buildVictim()
  platformTables = await listTables(Object.keys(victim.platform).map((name) => name.split('.')[0] ?? ''))
  expect(platformTables).toContain('contract')
  const stranger = await addTenant()
  const bind = async (call: TestCall, permissions: string[]) => {
    const made = await call('POST', '/api/v3/identity/api-key', {
      name: 'bound',
      permissions,
      account: stranger.account,
    })
    expect(made.status, JSON.stringify(made.body)).toBe(201)
    return fixture.app.callAs(made.body.data.key)
  }
  strangers = [
    { name: 'a tenant', call: stranger.call },
    {
      name: 'a key of a tenant',
      call: await bind(stranger.call, [
        'account:*',
        'account-member:*',
        'contract:*',
        'webhook:*',
        'event:publish',
        'replay-job:*',
      ]),
    },
    {
      name: "an administrator's key of another account",
      call: await bind(fixture.app.callAs(fixture.app.adminToken), ['*:*']),
    },
    {
      name: "a portal session of another account, under an administrator's key",
      call: (await openPortal(stranger.account)).call,
    },
  ]
})
afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  await realtime.close()
})

const pathOf = (route: RouteDeclaration) => {
  const values =
    victim.platform[nameOf(route)]?.params ?? (PATHS_OF[nameOf(route)] ?? PATHS[route.resource])?.(victim) ?? {}
  return route.path.replace(/\{(\w+)\}/g, (_, place: string) => {
    const value = values[place]
    if (value === undefined) throw new Error(`${titleOf(route)} has no id for {${place}}: add it to PATHS`)
    return value
  })
}

const bodyOf = (route: RouteDeclaration) => {
  const body = BODIES[nameOf(route)]
  if (body) return body(victim)
  const ofPlatform = victim.platform[nameOf(route)]
  if (ofPlatform) return ofPlatform.body
  if (route.body === undefined || isOfOperators(route) || OF_ONESELF.test(nameOf(route))) return undefined
  throw new Error(`${titleOf(route)} takes a body: add one that names what another tenant has to BODIES`)
}

/** Everything that the victim has, as text. */
async function readVictim(): Promise<string> {
  const hooks = 'webhook in (select document_id from webhook where account = $1)'
  const conditions: [table: string, condition: string][] = [
    ...platformTables.map((table): [string, string] => [table, 'account = $1']),
    ['account', 'document_id = $1'],
    ['account_limit', 'account = $1'],
    ['account_member', 'account = $1'],
    ['account_invitation', 'account = $1'],
    ['api_key', 'account = $1'],
    ['webhook', 'account = $1'],
    ['webhook_event', hooks],
    ['webhook_dispatch', hooks],
    ['event_occurrence', 'account = $1'],
    ['replay_job', '$1 = any(x.accounts)'],
  ]
  const parts = conditions.map(
    ([table, condition]) => `(select jsonb_agg(to_jsonb(x) order by x) from ${table} x where ${condition})`,
  )
  const text = `select jsonb_build_array(${parts.join(', ')})::text as all`
  const { rows } = await fixture.app.database.pool.query({ name: 'victim', text, values: [victim.account] })
  return rows[0].all
}

test('every route of the tree is driven, or takes no token at all', () => {
  expect(DRIVEN.length + PUBLIC.length).toBe(ROUTES.length)
  for (const route of PUBLIC)
    expect(route.path).toMatch(/^\/api\/v3\/(?:(?:auth|oauth|health|realtime)(?:\/|$)|webhook\/webhook\/\{id\}\/jwks$)/)
})

test('no case is left of a route that is gone', () => {
  const names = ROUTES.map(nameOf)
  expect([...Object.keys(BODIES), ...Object.keys(PATHS_OF)].filter((name) => !names.includes(name))).toEqual([])
  const resources = ROUTES.map((route) => route.resource)
  expect(Object.keys(PATHS).filter((resource) => !resources.includes(resource))).toEqual([])
})

describe('with the ids of another tenant', () => {
  /** What the victim had after the test before. */
  let lastRead: string | undefined

  test.each(DRIVEN.map((route) => [titleOf(route), route] as const))(
    '%s tells a stranger nothing and changes nothing',
    async (_title, route) => {
      const before = lastRead ?? (await readVictim())
      for (const { name, call } of strangers) {
        const answer = await call(route.method, pathOf(route), bodyOf(route))
        const text = JSON.stringify(answer.body)
        expect(answer.status, `${name}: ${text}`).toBeLessThan(500)
        // A refusal repeats the account that the stranger itself has sent, and tells no more of it.
        const told = listWords(victim).filter(([what]) => answer.status < 400 || what !== 'account')
        for (const [what, word] of told) expect(text, `${name}: ${what}`).not.toContain(word)
        const isNamed = route.path.includes('{') && route.ownAccounts
        if (isNamed) expect([403, 404], `${name}: ${text}`).toContain(answer.status)
      }
      lastRead = await readVictim()
      expect(lastRead).toBe(before)
    },
  )

  test.each(DRIVEN.filter((route) => route.list).map((route) => [titleOf(route), route] as const))(
    '%s is filtered, sorted and counted without them',
    async (_title, route) => {
      for (const { name, call } of strangers) {
        const total = await call('GET', `${pathOf(route)}?count=true&page_size=200`)
        if (total.status !== 200) {
          expect([403, 404], name).toContain(total.status)
          continue
        }
        for (const [field, { type }] of Object.entries(route.list ?? {})) {
          if (type !== 'uuid') continue
          const ids = listWords(victim).flatMap(([, word]) => (/^[0-9a-f]{8}-/.test(word) ? [word] : []))
          const found = await call('GET', `${pathOf(route)}?count=true&filters=${field}|in|${ids.join(',')}`)
          expect([found.body.data, found.body.pagination?.total], `${name}: ${field}`).toEqual([[], 0])
        }
        expect(total.body.pagination.total, name).toBe(total.body.data.length)
      }
    },
  )
})
