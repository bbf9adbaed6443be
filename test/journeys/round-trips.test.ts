import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROUTE_TREE } from '../../src/app/route-tree.ts'
import { FACTS_LIFETIME_MS } from '../../src/health/webhook-out.ts'
import { eventNameOf, isChange, type RouteDeclaration } from '../../src/http/route.ts'
import { type ContractWorld, type Json, startContractWorld } from '../contract/contract-world.ts'
import type { TestCall } from '../harness/app.ts'
import { measureHeld } from '../harness/held-caller.ts'
import { readMails } from '../harness/mailbox.ts'

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

/** A route's price: statements and round trips of one successful request, `begin` and `commit` included. */
interface Price {
  cost: readonly [statements: number, roundTrips: number]
  request?: () => Promise<Request> | Request
  /** Why a change needs more than four statements, or more than three round trips. */
  why?: string
}

const LOCKS_FIRST = 'locks, then reads what decides: a snapshot from before the lock may be old'
const ENDS_TOKENS = `${LOCKS_FIRST}; sessions and API keys end with statements of their own`

const PASSWORD = 'correct horse battery'
const TARGET = 'https://b.example.test'

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

const roleId = async (role: string): Promise<string> =>
  (await world.app.admin('GET', `/api/v3/identity/role?filters=name|eq|${role}`)).body.data[0].document_id
const sessionOf = (jwt: string): string => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString()).sid

const of =
  (make: () => Promise<Json>, rest: Omit<Request, 'params'> = {}) =>
  async (): Promise<Request> => ({ params: await idOf(make()), ...rest })

/** The health routes answer from memory for a while. */
const whenCheckIsOld = (): Request => {
  world.app.clock.advance(FACTS_LIFETIME_MS)
  return {}
}

const read = (request?: Price['request']): Price => ({ cost: [1, 1], ...(request && { request }) })

const PRICES: Record<string, Price> = {
  'login.local': {
    cost: [14, 7],
    why: 'counts the attempt as failed before the password is looked at, in a transaction of its own, and takes that back',
    request: async () => {
      const body = { email: email(), password: PASSWORD }
      await created('/api/v3/identity/user', body)
      return { body, call: world.app.anonymous }
    },
  },
  'session.refresh': {
    cost: [6, 3],
    why: 'counts against the strict limit first, which no transaction may undo; decides on the locked token, then spends it',
    request: async () => ({ body: { refresh_token: (await signIn()).refresh_token } }),
  },
  'session.revoke': {
    cost: [5, 2],
    why: LOCKS_FIRST,
    request: async () => ({ call: world.app.callAs((await signIn()).jwt) }),
  },
  'session.find-one': read(),
  'sso.handshake': {
    cost: [5, 3],
    why: 'counts against the strict limit first, which no transaction may undo',
    request: async () => ({ call: world.app.callAs((await signIn()).jwt), body: { target_url: TARGET } }),
  },
  'sso.exchange': {
    cost: [7, 3],
    why: `counts against the strict limit first; ${LOCKS_FIRST}`,
    request: async () => {
      const call = world.app.callAs((await signIn()).jwt)
      const { redirect_url } = (await call('POST', '/api/v3/auth/sso/handshake', { target_url: TARGET })).body.data
      return { body: { token: new URL(redirect_url).searchParams.get('sso_token') }, call: world.app.anonymous }
    },
  },
  'session.find-all': read(),
  'session.delete': {
    cost: [6, 3],
    why: 'reads what the user of the session holds, then ends the session',
    request: async () => ({ params: { id: sessionOf((await signIn()).jwt) } }),
  },
  'password.change': {
    cost: [18, 10],
    why: 'a wrong present password counts as a failed sign-in, as at `login.local`; ends other sessions and API keys',
    request: async () => ({
      body: { current_password: PASSWORD, new_password: `${PASSWORD} ${name()}` },
      call: world.app.callAs((await signIn()).jwt),
    }),
  },
  'password.forgot': {
    cost: [7, 3],
    why: 'counts against the strict limit; an unknown address costs the same statements',
    request: () => ({ body: { email: email() }, call: world.app.anonymous }),
  },
  'password.reset': {
    cost: [12, 6],
    why: `reads the link before the hash is computed, and uses it up under a lock; ${ENDS_TOKENS}`,
    request: async () => {
      const person = await signIn()
      await world.app.anonymous('POST', '/api/v3/auth/password/forgot', { email: person.user.email })
      const { token } = (await readMails(world.app, person.user.email))[0] as { token: string }
      return { body: { token, password: `${PASSWORD} ${name()}` }, call: world.app.anonymous }
    },
  },
  'email.request-verification': {
    cost: [7, 3],
    why: 'counts against the strict limit; reads whether a mail is due, then writes link and mail',
    request: async () => ({ call: world.app.callAs((await signIn()).jwt) }),
  },
  'email.verify': {
    cost: [8, 4],
    why: 'counts against the strict limit; uses the link up under a lock',
    request: async () => {
      const person = await signIn()
      await world.app.callAs(person.jwt)('POST', '/api/v3/auth/email/verify/request')
      const { token } = (await readMails(world.app, person.user.email))[0] as { token: string }
      return { body: { token }, call: world.app.anonymous }
    },
  },
  'user.create': { cost: [4, 2], request: () => ({ body: { email: email() } }) },
  'user.find-all': read(),
  'user.find-one': read(of(newUser)),
  'user.update': { cost: [6, 3], why: LOCKS_FIRST, request: of(newUser, { body: { name: 'Renamed' } }) },
  'user.delete': { cost: [8, 3], why: ENDS_TOKENS, request: of(newUser) },
  'user.disable': { cost: [8, 3], why: ENDS_TOKENS, request: of(newUser) },
  'user.enable': {
    cost: [6, 3],
    why: LOCKS_FIRST,
    request: async () => {
      const params = await idOf(newUser())
      await created(`/api/v3/identity/user/${params.id}/disable`, {})
      return { params }
    },
  },
  'user.revoke-sessions': {
    cost: [7, 4],
    why: ENDS_TOKENS,
    request: async () => ({ params: { id: (await signIn()).user.document_id } }),
  },
  'account.create': { cost: [4, 2], request: () => ({ body: { name: 'Acme' } }) },
  'account.find-all': read(),
  'account.find-one': read(of(newAccount)),
  'account.update': { cost: [4, 2], request: of(newAccount, { body: { name: 'Renamed' } }) },
  'account.delete': {
    cost: [6, 2],
    why: 'looks for the sessions and the webhooks of the account when it is locked',
    request: of(newAccount),
  },
  'account-member.create': {
    cost: [6, 3],
    why: LOCKS_FIRST,
    request: async () => ({ params: await idOf(newAccount()), body: { user: (await newUser()).document_id } }),
  },
  'account-member.update': {
    cost: [9, 4],
    why: `${LOCKS_FIRST}; the membership and its roles are read under the lock of the user`,
    request: async () => {
      const { id, user } = await newMember()
      return { params: { id }, body: { user, roles: [await roleId('account-viewer')] } }
    },
  },
  'account-member.find-all': read(async () => ({ params: { id: (await newMember()).id } })),
  'account-member.delete': {
    cost: [7, 3],
    why: `${LOCKS_FIRST}; the sessions of the member leave the account`,
    request: async () => {
      const { id, user } = await newMember()
      return { params: { id }, body: { user } }
    },
  },
  'role.create': { cost: [4, 2], request: () => ({ body: { name: name(), permissions: ['contract:*'] } }) },
  'role.find-all': read(),
  'role.find-one': read(of(newRole)),
  'role.update': {
    cost: [6, 3],
    why: LOCKS_FIRST,
    request: of(newRole, { body: { permissions: ['contract:*', 'user:*'] } }),
  },
  'role.delete': { cost: [6, 2], why: LOCKS_FIRST, request: of(newRole) },
  'permission.find-all': read(),
  'api-key.create': {
    cost: [6, 2],
    why: LOCKS_FIRST,
    request: () => ({ body: { name: 'key', permissions: ['contract:*'] } }),
  },
  'api-key.find-all': read(),
  'api-key.find-one': read(of(newKey)),
  'api-key.delete': { cost: [4, 2], request: of(newKey) },
  'audit-log.find-all': read(),
  'contract.create': { cost: [4, 2], request: () => ({ body: { account, name: 'Lease' } }) },
  'contract.find-all': read(),
  'contract.find-one': read(of(newContract)),
  'contract.update': { cost: [4, 2], request: of(newContract, { body: { status: 'active' } }) },
  'contract.delete': { cost: [4, 2], request: of(newContract) },
  'webhook.export': read(() => ({ query: '?format=json' })),
  'webhook.create': {
    cost: [6, 4],
    why: 'keeps the account, then inserts the webhook and its first subscription',
    request: () => ({ body: { url: `${world.receiver.origin}/new`, account } }),
  },
  'webhook.find-all': read(),
  'webhook.find-one': read(of(newWebhook)),
  'webhook.update': {
    cost: [7, 5],
    why: 'reads the webhook before the name service is asked; then locks the account before the webhook',
    request: of(newWebhook, { body: { name: 'Renamed' } }),
  },
  'webhook.delete': {
    cost: [5, 3],
    why: 'cancels what waits for the webhook when it is locked',
    request: of(newWebhook),
  },
  'webhook.purge': {
    cost: [7, 4],
    why: 'deletes the ledger in portions, open rows first: one may end meanwhile',
    request: of(newWebhook),
  },
  'webhook.active': { cost: [4, 2], request: of(newWebhook, { body: { is_actived: false } }) },
  'webhook.rotate-secret': { cost: [4, 2], request: of(newWebhook) },
  'webhook-event.find-set': read(of(newWebhook)),
  'webhook-event.set': {
    cost: [6, 2],
    why: LOCKS_FIRST,
    request: async () => ({
      params: await idOf(newWebhook()),
      body: { events: await world.findEventIds(['contract.create', 'contract.update']) },
    }),
  },
  'webhook-event.create': {
    cost: [4, 2],
    request: async () => ({
      body: { webhook: (await newWebhook()).document_id, event: await eventId('contract.create') },
    }),
  },
  'webhook-event.find-all': read(),
  'webhook-event.find-one': read(of(newSubscription)),
  'webhook-event.update': {
    cost: [6, 2],
    why: LOCKS_FIRST,
    request: async () => ({
      params: await idOf(newSubscription()),
      body: { event: await eventId('contract.update') },
    }),
  },
  'webhook-event.delete': { cost: [4, 2], request: of(newSubscription) },
  'event.find-all': read(),
  'event.create': { cost: [4, 2], request: () => ({ body: { internal: `invoice.${name()}` } }) },
  'event.find-one': read(async () => ({ params: { id: await eventId('contract.create') } })),
  'event.active': { cost: [4, 2], request: of(newEventType, { body: { is_actived: false } }) },
  'webhook.catalogue-status': read(),
  'webhook.catalogue-sync': { cost: [5, 3], why: 'reads how the table stands when it is written' },
  'event.publish': {
    cost: [4, 2],
    request: async () => {
      const event = (await newEventType()).internal
      return { body: { event, account, id: 'inv-1', idempotency_key: name() } }
    },
  },
  'event-occurrence.find-all': read(),
  'event-occurrence.find-one': read(async () => ({ params: { id: (await newDispatch()).event } })),
  'event-occurrence.routing': read(async () => ({ params: { id: (await newDispatch()).event } })),
  'webhook.test': {
    cost: [6, 2],
    why: 'locks the webhook, then writes the event and its ledger row',
    request: of(newWebhook),
  },
  'webhook-dispatch.find-all': read(),
  'webhook-dispatch.find-one': read(async () => ({ params: { id: (await newDispatch()).dispatch } })),
  'webhook-dispatch.replay': {
    cost: [5, 2],
    why: 'decides on the locked ledger row, then makes it due',
    request: async () => ({ params: { id: (await newDispatch()).dispatch }, body: { confirm_duplicate: true } }),
  },
  'webhook-dispatch.replay-all': {
    cost: [5, 3],
    why: 'reads which rows the filters name, then makes a job of them',
    request: async () => ({
      body: { filters: [`document_id|eq|${(await newDispatch()).dispatch}`], confirm_duplicate: true },
    }),
  },
  'replay-job.find-all': read(),
  'replay-job.find-one': read(of(newJob)),
  'replay-job.pause': { cost: [4, 2], request: of(newJob) },
  'replay-job.resume': {
    cost: [4, 2],
    request: async () => {
      const params = await idOf(newJob())
      await created(`/api/v3/webhook/replay-job/${params.id}/pause`, {})
      return { params }
    },
  },
  'replay-job.cancel': { cost: [4, 2], request: of(newJob) },
  'webhook.dashboard': read(),
  'health.webhook-out': read(whenCheckIsOld),
  'health.find-all': read(whenCheckIsOld),
}

const ROUTES: readonly RouteDeclaration[] = ROUTE_TREE

beforeAll(async () => {
  world = await startContractWorld({
    env: { SIGNALBOX_ROLES: 'api', RATE_LIMIT_STRICT_PER_MINUTE: '1000', SSO_TARGETS: TARGET },
  })
  await world.app.app.start()
  account = (await newAccount()).document_id
})
afterAll(() => world[Symbol.asyncDispose]())

/** Sends one request to a route as its price says, with an idempotency key where one is taken, and measures it. */
async function measure(route: RouteDeclaration, { request }: Price, more = '') {
  const asked = (await request?.()) ?? {}
  const { params = {}, query = '', body, call = world.app.callAs(world.app.adminToken), isKeyless = false } = asked
  const path = route.path.replace(/\{(\w+)\}/g, (_, param: string) => params[param] as string)
  const headers = isChange(route) && !route.strictRateLimit && !isKeyless ? { 'idempotency-key': name() } : undefined
  const send = () => call(route.method, `${path}${query}${more}`, body, headers)
  const warm = call === world.app.anonymous ? world.app.callAs(world.app.adminToken) : call
  const measured = await measureHeld(world.app, warm, send)
  expect(measured.answer.status, JSON.stringify(measured.answer.body)).toBe(route.status ?? 200)
  return measured
}

it('every route of the tree has its price here, and nothing else has', () => {
  expect(Object.keys(PRICES)).toEqual(ROUTES.map(eventNameOf))
})

it.each(ROUTES.map((route) => [eventNameOf(route), route] as const))(
  '%s costs what the table says',
  async (event, route) => {
    const price = PRICES[event] as Price
    const { traffic, texts } = await measure(route, price)
    expect([traffic.statements, traffic.roundTrips], texts.join('\n')).toEqual(price.cost)
  },
)

const LISTS = ROUTES.filter(({ list }) => list)

it.each(LISTS.map((route) => [eventNameOf(route), route] as const))(
  '%s counts its rows with one statement more',
  async (event, route) => {
    const { traffic, texts } = await measure(route, PRICES[event] as Price, '?count=true')
    expect(traffic, texts.join('\n')).toEqual({ statements: 2, roundTrips: 2 })
  },
)

it('a publication is one statement and no transaction; a key of the request or of an event makes it four', async () => {
  const route = ROUTES.find((one) => eventNameOf(one) === 'event.publish') as RouteDeclaration
  const event = (await newEventType()).internal
  const priceOf = async (more: object, isKeyless: boolean) => {
    const request = () => ({ body: { event, id: 'inv-1', ...more }, isKeyless })
    const { traffic } = await measure(route, { cost: [1, 1], request })
    return [traffic.statements, traffic.roundTrips]
  }
  expect(await priceOf({}, true)).toEqual([1, 1])
  expect(await priceOf({ account }, true)).toEqual([1, 1])
  expect(await priceOf({ account }, false)).toEqual([4, 2])
  expect(await priceOf({ account, idempotency_key: name() }, true)).toEqual([4, 2])
})

it('every read is one statement', () => {
  const reads = ROUTES.filter((route) => !isChange(route))
  expect(reads.filter((route) => PRICES[eventNameOf(route)]?.cost.join() !== '1,1').map(eventNameOf)).toEqual([])
})

it('a change has at most four statements in three round trips, or says why not', () => {
  const explained = ROUTES.filter((route) => PRICES[eventNameOf(route)]?.why !== undefined).map(eventNameOf)
  const dear = ROUTES.filter((route) => {
    const [statements, roundTrips] = PRICES[eventNameOf(route)]?.cost ?? []
    return (statements ?? 0) > 4 || (roundTrips ?? 0) > 3
  })
  expect(explained).toEqual(dear.map(eventNameOf))
})
