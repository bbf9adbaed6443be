import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROUTE_TREE } from '../../src/app/route-tree.ts'
import { FACTS_LIFETIME_MS } from '../../src/health/webhook-out.ts'
import { eventNameOf, isChange, type RouteDeclaration } from '../../src/http/route.ts'
import { type ContractWorld, type Json, startContractWorld } from '../contract/contract-world.ts'
import type { TestCall } from '../harness/app.ts'
import { measureHeld } from '../harness/held-caller.ts'

/** What one request needs that the route itself does not say. */
interface Request {
  params?: Record<string, string>
  query?: string
  body?: unknown
  /** Calls as somebody else than the administrator. */
  call?: TestCall
  /** Sends no idempotency key, which a change takes by default. */
  isKeyless?: boolean
}

/** Makes what a successful request needs. */
type MakeRequest = () => Promise<Request> | Request

/** Statements and round trips of one successful request, `begin` and `commit` included. */
type Cost = readonly [statements: number, roundTrips: number]

/** A step of a request, and what it costs. */
type Step = readonly [what: string, ...Cost]

const READ: Step = ['reads', 1, 1]

/** Every change: the first round trip locks and reads what decides, the second one writes and records. */
const CHANGE: Step = ['begin and one statement; one that writes, records and answers, and commit', 4, 2]

/** The limit of sign-in and refresh: what it counts must outlive the request, whatever comes of that. */
const STRICT_LIMIT: Step = ['counts against the strict limit, which no rollback may undo', 1, 1]

/** Requests that do more than one change: each with all its steps. */
const DEARER: Record<string, readonly Step[]> = {
  'login.local': [
    STRICT_LIMIT,
    ['counts the attempt as failed, before its password is looked at: begin, lock, count, commit', 4, 2],
    CHANGE,
  ],
  'session.refresh': [STRICT_LIMIT, CHANGE],
  'session.revoke of a refresh token': [['finds the session of the token', 1, 1], CHANGE],
  'webhook.update with a URL': [['reads the URL: the name service is asked about another one only', 1, 1], CHANGE],
}

const PASSWORD = 'correct horse battery'

let world: ContractWorld
let account: string
let names = 0

const name = () => {
  names += 1
  return `n${names}`
}
const email = () => `${name()}@example.com`
const created = async (path: string, body: object): Promise<Json> => {
  const answer = await world.app.admin('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body.data
}
const idOf = async (row: Promise<Json>) => ({ id: (await row).document_id as string })

const newAccount = () => created('/api/v3/identity/account', { name: name() })
const newUser = () => created('/api/v3/identity/user', { email: email() })
const newRole = () => created('/api/v3/identity/role', { name: name(), permissions: ['contract:*', 'account:*'] })
const newKey = () => created('/api/v3/identity/api-key', { name: name(), permissions: ['contract:*'] })
const newContract = () => created('/api/v3/contract/contract', { account, name: name() })
const newWebhook = () => created('/api/v3/webhook/webhook', { url: `${world.receiver.origin}/${name()}`, account })
const newEventType = () => created('/api/v3/webhook/event', { internal: `invoice.${name()}` })
const eventId = async (internal: string) => (await world.findEventIds([internal]))[0] as string
const newSubscription = async () => {
  const webhook = (await newWebhook()).document_id
  return created('/api/v3/webhook/webhook-event', { webhook, event: await eventId('contract.create') })
}
const newMember = async () => {
  const user = (await newUser()).document_id as string
  const { id } = await idOf(newAccount())
  await created(`/api/v3/identity/account/${id}/member`, { user })
  return { id, user }
}
const newDispatch = async () => {
  const { id } = await idOf(newWebhook())
  const { dispatch_id: dispatch, event_id: event } = await created(`/api/v3/webhook/webhook/${id}/test`, {})
  await world.app.settle()
  return { dispatch: dispatch as string, event: event as string }
}
const newJob = async () => {
  const filters = [`document_id|eq|${(await newDispatch()).dispatch}`]
  return created('/api/v3/webhook/dispatch/replay', { filters, confirm_duplicate: true })
}
const signIn = async (): Promise<Json> => {
  const user = { email: email(), password: PASSWORD }
  await created('/api/v3/identity/user', user)
  return (await world.app.anonymous('POST', '/api/v3/auth/login/local', user)).body.data
}

const of =
  (make: () => Promise<Json>, rest: Omit<Request, 'params'> = {}) =>
  async (): Promise<Request> => ({ params: await idOf(make()), ...rest })

/** The health routes answer from memory for a while. */
const whenCheckIsOld = (): Request => {
  world.app.clock.advance(FACTS_LIFETIME_MS)
  return {}
}

/** What a successful request to each route needs; undefined for nothing. */
const REQUESTS: Record<string, MakeRequest | undefined> = {
  'login.local': async () => {
    const body = { email: email(), password: PASSWORD }
    await created('/api/v3/identity/user', body)
    return { body, call: world.app.anonymous }
  },
  'session.refresh': async () => ({ body: { refresh_token: (await signIn()).refresh_token } }),
  'session.revoke': async () => ({ call: world.app.callAs((await signIn()).jwt) }),
  'session.find-one': undefined,
  'user.create': () => ({ body: { email: email() } }),
  'user.find-all': undefined,
  'user.find-one': of(newUser),
  'user.update': of(newUser, { body: { name: 'Renamed' } }),
  'user.delete': of(newUser),
  'user.disable': of(newUser),
  'user.enable': async () => {
    const params = await idOf(newUser())
    await created(`/api/v3/identity/user/${params.id}/disable`, {})
    return { params }
  },
  'user.revoke-sessions': async () => ({ params: { id: (await signIn()).user.document_id } }),
  'account.create': () => ({ body: { name: 'Acme' } }),
  'account.find-all': undefined,
  'account.find-one': of(newAccount),
  'account.update': of(newAccount, { body: { name: 'Renamed' } }),
  'account.delete': of(newAccount),
  'account-member.create': async () => ({
    params: await idOf(newAccount()),
    body: { user: (await newUser()).document_id },
  }),
  'account-member.find-all': async () => ({ params: { id: (await newMember()).id } }),
  'account-member.delete': async () => {
    const { id, user } = await newMember()
    return { params: { id }, body: { user } }
  },
  'role.create': () => ({ body: { name: name(), permissions: ['contract:*'] } }),
  'role.find-all': undefined,
  'role.find-one': of(newRole),
  'role.update': of(newRole, { body: { permissions: ['contract:*', 'user:*'] } }),
  'role.delete': of(newRole),
  'permission.find-all': undefined,
  'api-key.create': () => ({ body: { name: 'key', permissions: ['contract:*'] } }),
  'api-key.find-all': undefined,
  'api-key.find-one': of(newKey),
  'api-key.delete': of(newKey),
  'audit-log.find-all': undefined,
  'contract.create': () => ({ body: { account, name: 'Lease' } }),
  'contract.find-all': undefined,
  'contract.find-one': of(newContract),
  'contract.update': of(newContract, { body: { status: 'active' } }),
  'contract.delete': of(newContract),
  'webhook.export': () => ({ query: '?format=json' }),
  'webhook.create': () => ({ body: { url: `${world.receiver.origin}/new`, account } }),
  'webhook.find-all': undefined,
  'webhook.find-one': of(newWebhook),
  'webhook.update': of(newWebhook, { body: { name: 'Renamed' } }),
  'webhook.delete': of(newWebhook),
  'webhook.purge': of(newWebhook),
  'webhook.active': of(newWebhook, { body: { is_actived: false } }),
  'webhook.rotate-secret': of(newWebhook),
  'webhook-event.find-set': of(newWebhook),
  'webhook-event.set': async () => ({
    params: await idOf(newWebhook()),
    body: { events: await world.findEventIds(['contract.create', 'contract.update']) },
  }),
  'webhook-event.create': async () => ({
    body: { webhook: (await newWebhook()).document_id, event: await eventId('contract.create') },
  }),
  'webhook-event.find-all': undefined,
  'webhook-event.find-one': of(newSubscription),
  'webhook-event.update': async () => ({
    params: await idOf(newSubscription()),
    body: { event: await eventId('contract.update') },
  }),
  'webhook-event.delete': of(newSubscription),
  'event.find-all': undefined,
  'event.create': () => ({ body: { internal: `invoice.${name()}` } }),
  'event.find-one': async () => ({ params: { id: await eventId('contract.create') } }),
  'event.active': of(newEventType, { body: { is_actived: false } }),
  'webhook.catalogue-status': undefined,
  'webhook.catalogue-sync': undefined,
  'event.publish': async () => {
    const event = (await newEventType()).internal
    return { body: { event, account, id: 'inv-1', idempotency_key: name() } }
  },
  'event-occurrence.find-all': undefined,
  'event-occurrence.find-one': async () => ({ params: { id: (await newDispatch()).event } }),
  'event-occurrence.routing': async () => ({ params: { id: (await newDispatch()).event } }),
  'webhook.test': of(newWebhook),
  'webhook-dispatch.find-all': undefined,
  'webhook-dispatch.find-one': async () => ({ params: { id: (await newDispatch()).dispatch } }),
  'webhook-dispatch.replay': async () => ({
    params: { id: (await newDispatch()).dispatch },
    body: { confirm_duplicate: true },
  }),
  'webhook-dispatch.replay-all': async () => ({
    body: { filters: [`document_id|eq|${(await newDispatch()).dispatch}`], confirm_duplicate: true },
  }),
  'replay-job.find-all': undefined,
  'replay-job.find-one': of(newJob),
  'replay-job.pause': of(newJob),
  'replay-job.resume': async () => {
    const params = await idOf(newJob())
    await created(`/api/v3/webhook/replay-job/${params.id}/pause`, {})
    return { params }
  },
  'replay-job.cancel': of(newJob),
  'webhook.dashboard': undefined,
  'health.webhook-out': whenCheckIsOld,
  'health.find-all': whenCheckIsOld,
}

/** Further forms of requests to these routes, named by the route and what is in them. */
const MORE: Record<string, MakeRequest> = {
  'session.revoke of a refresh token': async () => {
    const { jwt, refresh_token } = await signIn()
    return { body: { refresh_token }, call: world.app.callAs(jwt) }
  },
  'user.create with roles': async () => ({ body: { email: email(), roles: [(await newRole()).document_id] } }),
  'user.update of everything': async () => ({
    params: await idOf(newUser()),
    body: { name: 'Renamed', email: email(), password: PASSWORD, roles: [(await newRole()).document_id] },
  }),
  'user.disable of an administrator': async () => {
    const { data } = (await world.app.admin('GET', '/api/v3/identity/role?filters=name|eq|administrator')).body
    const user = { email: email(), roles: [data[0].document_id] }
    return { params: await idOf(created('/api/v3/identity/user', user)) }
  },
  'account.delete with a member and a webhook': async () => {
    const { id } = await newMember()
    await created('/api/v3/webhook/webhook', { url: `${world.receiver.origin}/${name()}`, account: id })
    return { params: { id } }
  },
  'role.update of everything': async () => ({
    params: await idOf(newRole()),
    body: { name: name(), description: 'Changed', permissions: ['user:*'], is_account_scoped: true },
  }),
  'webhook.update with a URL': async () => ({
    params: await idOf(newWebhook()),
    body: { url: `${world.receiver.origin}/${name()}` },
  }),
  'webhook.update with another account': async () => ({
    params: await idOf(newWebhook()),
    body: { account: (await newAccount()).document_id },
  }),
  'webhook.delete with what waits for it': async () => {
    const { id } = await idOf(newWebhook())
    await created(`/api/v3/webhook/webhook/${id}/test`, {})
    return { params: { id } }
  },
  'webhook.purge with a ledger': async () => {
    const { id } = await idOf(newWebhook())
    await created(`/api/v3/webhook/webhook/${id}/test`, {})
    return { params: { id } }
  },
  'webhook.active of an inactive one': async () => {
    const params = await idOf(newWebhook())
    const path = `/api/v3/webhook/webhook/${params.id}/active`
    expect((await world.app.admin('PATCH', path, { is_actived: false })).status).toBe(200)
    return { params, body: { is_actived: true } }
  },
}

const ROUTES: readonly RouteDeclaration[] = ROUTE_TREE

beforeAll(async () => {
  world = await startContractWorld({ env: { SIGNALBOX_ROLES: 'api', RATE_LIMIT_STRICT_PER_MINUTE: '1000' } })
  await world.app.app.start()
  account = (await newAccount()).document_id
})
afterAll(() => world[Symbol.asyncDispose]())

/** Sends one request to a route, with an idempotency key where one is taken, and measures it. */
async function measure(route: RouteDeclaration, make: MakeRequest | undefined, more = '') {
  const asked = (await make?.()) ?? {}
  const { params = {}, query = '', body, call = world.app.callAs(world.app.adminToken), isKeyless = false } = asked
  const path = route.path.replace(/\{(\w+)\}/g, (_, param: string) => params[param] as string)
  const headers = isChange(route) && !route.strictRateLimit && !isKeyless ? { 'idempotency-key': name() } : undefined
  const send = () => call(route.method, `${path}${query}${more}`, body, headers)
  const warm = call === world.app.anonymous ? world.app.callAs(world.app.adminToken) : call
  const measured = await measureHeld(world.app, warm, send)
  expect(measured.answer.status, JSON.stringify(measured.answer.body)).toBe(route.status ?? 200)
  return measured
}

/** Checks the cost of one request: a read, a change, or all the steps of a request that does more. */
async function checkCost(name: string, route: RouteDeclaration, make: MakeRequest | undefined): Promise<void> {
  const steps = DEARER[name] ?? [isChange(route) ? CHANGE : READ]
  const { traffic, texts } = await measure(route, make)
  const sum = (pick: (step: Step) => number) => steps.reduce((total, step) => total + pick(step), 0)
  const expected = { statements: sum((step) => step[1]), roundTrips: sum((step) => step[2]) }
  expect(traffic, [...steps.map(([what]) => what), ...texts].join('\n')).toEqual(expected)
}

it('every route of the tree has its request here, and nothing else has', () => {
  expect(Object.keys(REQUESTS)).toEqual(ROUTES.map(eventNameOf))
})

it.each(ROUTES.map((route) => [eventNameOf(route), route] as const))('%s costs what its steps cost', (event, route) =>
  checkCost(event, route, REQUESTS[event]),
)

it.each(Object.entries(MORE))('the form %s costs no more than its steps', async (form, make) => {
  const route = ROUTES.find((one) => eventNameOf(one) === form.split(' ')[0]) as RouteDeclaration
  await checkCost(form, route, make)
})

const LISTS = ROUTES.filter(({ list }) => list)

it.each(LISTS.map((route) => [eventNameOf(route), route] as const))(
  '%s counts its rows with one statement more',
  async (event, route) => {
    const { traffic, texts } = await measure(route, REQUESTS[event], '?count=true')
    expect(traffic, texts.join('\n')).toEqual({ statements: 2, roundTrips: 2 })
  },
)

it('a publication is one statement and no transaction; a key of the request or of an event makes it four', async () => {
  const route = ROUTES.find((one) => eventNameOf(one) === 'event.publish') as RouteDeclaration
  const event = (await newEventType()).internal
  const costOf = async (more: object, isKeyless: boolean) => {
    const { traffic } = await measure(route, () => ({ body: { event, id: 'inv-1', ...more }, isKeyless }))
    return [traffic.statements, traffic.roundTrips]
  }
  expect(await costOf({}, true)).toEqual([1, 1])
  expect(await costOf({ account }, true)).toEqual([1, 1])
  expect(await costOf({ account }, false)).toEqual([4, 2])
  expect(await costOf({ account, idempotency_key: name() }, true)).toEqual([4, 2])
})

it('no transaction has more than four statements in two round trips', () => {
  const steps = [READ, CHANGE, ...Object.values(DEARER).flat()]
  expect(steps.filter(([, statements, roundTrips]) => statements > 4 || roundTrips > 2)).toEqual([])
})

it('each request that does more than one change is measured', () => {
  const measured = [...Object.keys(REQUESTS), ...Object.keys(MORE)]
  expect(Object.keys(DEARER).filter((form) => !measured.includes(form))).toEqual([])
})
