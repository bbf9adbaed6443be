import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { eventNameOf, isChange, type RouteDeclaration } from '../../src/http/route/route.ts'
import { type ContractFixture, type Json, startContractFixture } from '../contract/contract-fixture.ts'
import type { TestAnswer, TestCall } from '../harness/app/app.ts'
import {
  buildSocialEnvironment,
  buildSocialUsers,
  buildTestBrowser,
  MOBILE_APP,
  redirectUrlOf,
  type SocialUsers,
  type TestBrowser,
  WEB_APP,
} from '../harness/app/social-app.ts'
import { buildFactorRequests } from '../harness/browser/factor-requests.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import type { PersonalityName } from '../harness/fakes/provider/personalities.ts'
import { type ProviderFixture, startProviderFixture } from '../harness/fakes/provider/provider-fixture.ts'
import { openRequestDatabase, type RequestDatabase } from '../harness/plan/request-plans.ts'
import { type SimulatedProvider, startRealtimeProvider } from '../harness/realtime/realtime-provider.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { buildCatalogueRouteRequests } from './catalogue-route-requests.ts'
import { buildConnectionRouteRequests } from './connection-route-requests.ts'
import { buildFactorRouteRequests } from './factor-route-requests.ts'
import { buildHealthRouteRequests } from './health-route-requests.ts'
import { buildOAuthRouteRequests, PROVIDER_KEY } from './oauth-route-requests.ts'
import { DASHBOARD_REQUESTS } from './operations-route-requests.ts'
import { buildPlatformRouteRequests } from './platform-route-requests.ts'
import { buildPortalRouteRequests } from './portal-route-requests.ts'
import { buildProvisioningRouteRequests } from './provisioning-route-requests.ts'
import { buildPublishForms } from './publish-route-requests.ts'
import { buildRealtimeRouteRequests } from './realtime-route-requests.ts'
import { buildSamlRouteRequests } from './saml-route-requests.ts'
import { buildSignUpRouteRequests, SIGN_UP_ENV } from './sign-up-route-requests.ts'
import { buildUsersRouteRequests } from './users-route-requests.ts'
import { buildWebhookRouteRequests } from './webhook-route-requests.ts'

/** Input of one request beyond the route itself. */
export interface Request {
  params?: Record<string, string>
  query?: string
  body?: unknown
  /** Calls as somebody else than the administrator. */
  call?: TestCall
  headers?: Record<string, string>
  /** Sends no idempotency key, which a change takes by default. */
  isKeyless?: boolean
  /** The status of the answer, where it is not that of the route. */
  status?: number
}

/** Makes what a successful request needs. */
export type MakeRequest = () => Promise<Request> | Request

const PASSWORD = 'correct horse battery'
const TARGET = 'https://b.example.test'

let fixture: ContractFixture
let providers: ProviderFixture
let realtime: SimulatedProvider
let social: SocialUsers
let account: string
let names = 0

const name = () => {
  names += 1
  return `n${names}`
}
const email = () => `${name()}@example.com`
const created = async (path: string, body: object): Promise<Json> => {
  const answer = await fixture.app.admin('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body.data
}
const idOf = async (row: Promise<Json>) => ({ id: (await row).document_id as string })

const newAccount = () => created('/api/v3/identity/account', { name: name() })
const newUser = () => created('/api/v3/identity/user', { email: email() })
const newRole = () => created('/api/v3/identity/role', { name: name(), permissions: ['contract:*', 'account:*'] })
const newKey = () => created('/api/v3/identity/api-key', { name: name(), permissions: ['contract:*'] })
const newContract = () => created('/api/v3/contract/contract', { account, name: name() })
const newWebhook = () => created('/api/v3/webhook/webhook', { url: `${fixture.receiver.origin}/${name()}`, account })
const newSignedWebhook = () =>
  created('/api/v3/webhook/webhook', {
    url: `${fixture.receiver.origin}/${name()}`,
    account,
    asymmetric_signature: true,
  })
const newEventType = () => created('/api/v3/webhook/event', { internal: `invoice.${name()}` })
const eventId = async (internal: string) => (await fixture.findEventIds([internal]))[0] as string
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
const newInvitation = async () => {
  const { id } = await idOf(newAccount())
  const { document_id: invitation } = await created(`/api/v3/identity/account/${id}/invitation`, { email: email() })
  return { id, invitation }
}
const newDispatch = async () => {
  const { id } = await idOf(newWebhook())
  const { dispatch_id: dispatch, event_id: event } = await created(`/api/v3/webhook/webhook/${id}/test`, {})
  await fixture.app.settle()
  return { dispatch: dispatch as string, event: event as string }
}
const newJob = async () => {
  const filters = [`document_id|eq|${(await newDispatch()).dispatch}`]
  return created('/api/v3/webhook/dispatch/replay', { filters, confirm_duplicate: true })
}
const newPasswordUser = async () => {
  const user = { email: email(), password: PASSWORD }
  await created('/api/v3/identity/user', user)
  return user
}
const signIn = async (): Promise<Json> =>
  (await fixture.app.anonymous('POST', '/api/v3/auth/login/local', await newPasswordUser())).body.data

const roleId = async (role: string): Promise<string> =>
  (await fixture.app.admin('GET', `/api/v3/identity/role?filters=name|eq|${role}`)).body.data[0].document_id
const sessionOf = (jwt: string): string => JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString()).sid
const tokenOfMail = async (to: string): Promise<string> => (await readMails(fixture.app, to))[0]?.token ?? ''

/** A request of a browser, which shows pages or, for `accept`, asks for JSON. */
const inBrowser = ({ cookies }: TestBrowser, accept = 'text/html') => ({
  call: fixture.app.anonymous,
  headers: { accept, cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join('; ') },
  isKeyless: true,
})
const queryOf = (url: string) => new URL(url, 'https://service.test').search

/** A user at a provider who has signed in there before, and comes back to the callback in this browser. */
const comeBack = async (browser: TestBrowser, query: Record<string, string> = {}) => {
  social.seat('google', { sub: name() })
  await social.signIn(buildTestBrowser(fixture.app), 'google')
  return social.reachCallback(browser, 'google', query)
}

/** Walks through the flow that connects a provider with the caller. Returns its `link_code`. */
const obtainLinkCode = async (call: TestCall, provider: PersonalityName): Promise<string> => {
  social.seat(provider, { sub: `80${names + 1}`, email: email() })
  const path = `/api/v3/identity/identity/link/${provider}`
  const begun = await call('POST', path, { redirect_url: WEB_APP })
  const step = await providers.fakes[provider].authorize(begun.body.data.redirectUrl)
  const answer = await buildTestBrowser(fixture.app).get(redirectUrlOf(step), 'application/json')
  return new URL(String(answer.headers.location)).searchParams.get('link_code') ?? ''
}

/** A user with a connected provider: a call as that user, and the identity. */
const newIdentity = async () => {
  const call = fixture.app.callAs((await signIn()).jwt)
  const linked = await call('POST', '/api/v3/identity/identity', { code: await obtainLinkCode(call, 'github') })
  return { call, params: { id: linked.body.data.document_id as string } }
}

const signUps = buildSignUpRouteRequests({ app: () => fixture.app, email, newUser })
const users = buildUsersRouteRequests({ created, email, newIdentity, newRole, newUser, signIn, app: () => fixture.app })

const of =
  (make: () => Promise<Json>, rest: Omit<Request, 'params'> = {}) =>
  async (): Promise<Request> => ({ params: await idOf(make()), ...rest })

const factors = buildFactorRequests(() => ({ ...fixture.app, newUser: newPasswordUser }), {
  origin: 'https://service.test',
  rpId: 'service.test',
})

const webhooks = buildWebhookRouteRequests({
  ...{ of, created, newWebhook, newSignedWebhook, newDispatch, newJob },
  account: () => account,
  receiver: () => fixture.receiver.origin,
})

const saml = buildSamlRouteRequests({ app: () => fixture.app, account: () => account })

/** Input of a successful request to each route; undefined for none. */
export const REQUESTS: Record<string, MakeRequest | undefined> = {
  'login.local': async () => ({ body: await newPasswordUser(), call: fixture.app.anonymous }),
  ...signUps.byMail,
  ...buildFactorRouteRequests(factors, () => fixture.app.anonymous),
  'login.oauth-start': () => ({
    params: { provider: 'github' },
    query: `?${new URLSearchParams({ redirect_url: WEB_APP, format: 'json' })}`,
    call: fixture.app.anonymous,
  }),
  'login.oauth-callback': async () => {
    const browser = buildTestBrowser(fixture.app)
    const { url } = await comeBack(browser)
    return { params: { provider: 'google' }, query: queryOf(url), ...inBrowser(browser) }
  },
  'login.oauth-form-callback': async () => {
    social.seat('apple', { sub: name() })
    const step = await social.reachCallback(buildTestBrowser(fixture.app), 'apple')
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://appleid.apple.com' }
    const body = new URLSearchParams(step.form ?? {}).toString()
    return { params: { provider: 'apple' }, body, headers, call: fixture.app.anonymous, isKeyless: true, status: 303 }
  },
  'login.oauth': async () => {
    const browser = buildTestBrowser(fixture.app)
    const query = queryOf(redirectUrlOf(await comeBack(browser)))
    return { params: { provider: 'google' }, query, ...inBrowser(browser, 'application/json') }
  },
  'login.code': async () => {
    const verifier = `${name()}-`.padEnd(43, 'v')
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const asked = { redirect_url: MOBILE_APP, code_challenge: challenge, code_challenge_method: 'S256' }
    social.seat('google', { sub: name() })
    const answer = await social.signIn(buildTestBrowser(fixture.app), 'google', asked)
    const code = new URL(String(answer.headers.location)).searchParams.get('code')
    return { body: { code, code_verifier: verifier }, call: fixture.app.anonymous }
  },
  ...saml.signIn,
  'identity.find-all': undefined,
  'identity.link': () => ({ params: { provider: 'github' }, body: { redirect_url: WEB_APP } }),
  'identity.create': async () => {
    const call = fixture.app.callAs((await signIn()).jwt)
    return { body: { code: await obtainLinkCode(call, 'github') }, call }
  },
  'identity.find-one': newIdentity,
  'identity.delete': newIdentity,
  ...users.ofProviders,
  'session.refresh': async () => ({ body: { refresh_token: (await signIn()).refresh_token } }),
  'session.revoke': async () => ({ call: fixture.app.callAs((await signIn()).jwt) }),
  'session.find-one': undefined,
  'session.find-all': undefined,
  'session.delete': async () => ({ params: { id: sessionOf((await signIn()).jwt) } }),
  'sso.handshake': async () => ({ call: fixture.app.callAs((await signIn()).jwt), body: { target_url: TARGET } }),
  'sso.exchange': async () => {
    const call = fixture.app.callAs((await signIn()).jwt)
    const { redirect_url } = (await call('POST', '/api/v3/auth/sso/handshake', { target_url: TARGET })).body.data
    return { body: { token: new URL(redirect_url).searchParams.get('sso_token') }, call: fixture.app.anonymous }
  },
  'handshake-target.find-all': undefined,
  ...buildOAuthRouteRequests(() => fixture, { created, name, newUser }),
  'password.change': async () => ({
    body: { current_password: PASSWORD, new_password: `${PASSWORD} ${name()}` },
    call: fixture.app.callAs((await signIn()).jwt),
  }),
  'password.forgot': async () => ({ body: { email: (await newUser()).email }, call: fixture.app.anonymous }),
  'password.reset': async () => {
    const { user } = await signIn()
    await fixture.app.anonymous('POST', '/api/v3/auth/password/forgot', { email: user.email })
    const body = { token: await tokenOfMail(user.email), password: `${PASSWORD} ${name()}` }
    return { body, call: fixture.app.anonymous }
  },
  'email.request-verification': async () => ({ call: fixture.app.callAs((await signIn()).jwt) }),
  'email.verify': async () => {
    const { jwt, user } = await signIn()
    await fixture.app.callAs(jwt)('POST', '/api/v3/auth/email/verify/request')
    return { body: { token: await tokenOfMail(user.email) }, call: fixture.app.anonymous }
  },
  ...users.ofOneself,
  ...signUps.signUp,
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
  ...users.ofUsers,
  'account.create': () => ({ body: { name: 'Acme' } }),
  'account.find-all': undefined,
  'account.find-one': of(newAccount),
  'account.update': of(newAccount, { body: { name: 'Renamed' } }),
  'account.delete': of(newAccount),
  'account-limit.find-one': of(newAccount),
  'account-limit.update': of(newAccount, { body: { webhooks: 5 } }),
  'account-member.create': async () => ({
    params: await idOf(newAccount()),
    body: { user: (await newUser()).document_id },
  }),
  'account-member.update': async () => {
    const { id, user } = await newMember()
    return { params: { id }, body: { user, roles: [await roleId('account-viewer')] } }
  },
  'account-member.find-all': async () => ({ params: { id: (await newMember()).id } }),
  'account-member.delete': () => newMember().then(({ id, user }) => ({ params: { id }, body: { user } })),
  'account-member.find-roles': async () => ({ params: { id: (await newMember()).id } }),
  'account-invitation.find-all': async () => ({ params: { id: (await newInvitation()).id } }),
  'account-invitation.delete': async () => ({ params: await newInvitation() }),
  'account-invitation.create': of(newAccount, { body: { email: 'guest@example.com' } }),
  'account-invitation.accept': async () => {
    const { id } = await idOf(newAccount())
    const guest = email()
    await created(`/api/v3/identity/account/${id}/invitation`, { email: guest })
    const { token } = (await readMails(fixture.app, guest))[0] as { token: string }
    return { body: { token, password: PASSWORD }, call: fixture.app.anonymous }
  },
  ...buildConnectionRouteRequests({ created, app: () => fixture.app, readMetadata: saml.readMetadata }),
  ...buildPortalRouteRequests({ created, app: () => fixture.app }),
  'role.create': () => ({ body: { name: name(), permissions: ['contract:*'] } }),
  'role.find-all': undefined,
  'role.find-one': of(newRole),
  'role.update': of(newRole, { body: { permissions: ['contract:*', 'user:*'] } }),
  'role.delete': of(newRole),
  'permission.find-all': undefined,
  ...users.ofRoles,
  'api-key.create': () => ({ body: { name: 'key', permissions: ['contract:*'] } }),
  'api-key.find-all': undefined,
  'api-key.find-one': of(newKey),
  'api-key.delete': of(newKey),
  'audit-log.find-all': undefined,
  ...buildPlatformRouteRequests({ created, account: () => account }),
  ...webhooks.ofRegistry,
  'webhook-event.find-set': of(newWebhook),
  'webhook-event.set': async () => ({
    params: await idOf(newWebhook()),
    body: { events: await fixture.findEventIds(['contract.create', 'contract.update']) },
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
  ...buildCatalogueRouteRequests({ name, eventId, newEventType }),
  'webhook.catalogue-status': undefined,
  'event.subscribers': undefined,
  'webhook.catalogue-sync': undefined,
  'event.publish': async () => {
    const event = (await newEventType()).internal
    return { body: { event, account, id: 'inv-1', idempotency_key: name() } }
  },
  'event-occurrence.find-all': undefined,
  'event-occurrence.find-one': async () => ({ params: { id: (await newDispatch()).event } }),
  'event-occurrence.routing': async () => ({ params: { id: (await newDispatch()).event } }),
  'event.routing': async () => ({ params: { id: await eventId('contract.create') }, query: `?account=${account}` }),
  'webhook.test': of(newWebhook),
  ...webhooks.ofLedger,
  ...buildProvisioningRouteRequests(() => fixture, { created, name, newUser }),
  ...DASHBOARD_REQUESTS,
  'webhook.dashboard-accounts': () => ({ query: `?account=${account}` }),
  'webhook.dashboard-breakdown': of(newWebhook),
  'webhook.dashboard-events': undefined,
  'user.dashboard-sign-ins': undefined,
  'realtime.dashboard-messages': undefined,
  'realtime.dashboard-connections': undefined,
  ...buildRealtimeRouteRequests(() => ({ fixture, app: realtime.app }), newContract),
  ...buildHealthRouteRequests(() => fixture.app.clock),
}

/** Further forms of requests to these routes, named by the route and what is in them. */
export const FORMS: Record<string, MakeRequest> = {
  'login.oauth of a new user': async () => {
    const browser = buildTestBrowser(fixture.app)
    social.seat('google', { sub: name() })
    const query = queryOf(redirectUrlOf(await social.reachCallback(browser, 'google')))
    return { params: { provider: 'google' }, query, ...inBrowser(browser, 'application/json') }
  },
  'session.revoke of the family': async () => ({
    body: { family: true },
    call: fixture.app.callAs((await signIn()).jwt),
  }),
  'session.revoke of all': async () => ({ body: { all: true }, call: fixture.app.callAs((await signIn()).jwt) }),
  ...signUps.forms,
  'password.forgot of an unknown address': () => ({ body: { email: email() }, call: fixture.app.anonymous }),
  ...users.ofBothLinks,
  'account-member.create with roles': async () => ({
    params: await idOf(newAccount()),
    body: { user: (await newUser()).document_id, roles: [await roleId('account-viewer')] },
  }),
  'session.revoke of a refresh token': async () => {
    const { jwt, refresh_token } = await signIn()
    return { body: { refresh_token }, call: fixture.app.callAs(jwt) }
  },
  'user.create with roles': async () => ({ body: { email: email(), roles: [(await newRole()).document_id] } }),
  'user.update of everything': async () => ({
    params: await idOf(newUser()),
    body: { name: 'Renamed', email: email(), password: PASSWORD, roles: [(await newRole()).document_id] },
  }),
  'user.disable of an administrator': async () => {
    const { data } = (await fixture.app.admin('GET', '/api/v3/identity/role?filters=name|eq|administrator')).body
    const user = { email: email(), roles: [data[0].document_id] }
    return { params: await idOf(created('/api/v3/identity/user', user)) }
  },
  'account.delete with a member and a webhook': async () => {
    const { id } = await newMember()
    await created('/api/v3/webhook/webhook', { url: `${fixture.receiver.origin}/${name()}`, account: id })
    return { params: { id } }
  },
  'role.update of everything': async () => ({
    params: await idOf(newRole()),
    body: { name: name(), description: 'Changed', permissions: ['webhook:*'], is_account_scoped: true },
  }),
  'webhook.update with a URL': async () => ({
    params: await idOf(newWebhook()),
    body: { url: `${fixture.receiver.origin}/${name()}` },
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
  'webhook-event.set by name': of(newWebhook, { body: { events: ['contract.create', 'contract.update'] } }),
  ...buildPublishForms(() => ({ fixture, account }), { newEventType, roleId }),
  'api-key.create of an account': () => ({ body: { name: 'key', permissions: ['contract:*'], account } }),
  'webhook.active of an inactive one': async () => {
    const params = await idOf(newWebhook())
    const path = `/api/v3/webhook/webhook/${params.id}/active`
    expect((await fixture.app.admin('PATCH', path, { is_actived: false })).status).toBe(200)
    return { params, body: { is_actived: true } }
  },
}

/** The routes of the service. */
export const ROUTES: readonly RouteDeclaration[] = ROUTE_TREE

/** The route that a name of `FORMS` begins with. */
export function findRouteOf(form: string): RouteDeclaration {
  return ROUTES.find((route) => eventNameOf(route) === form.split(' ')[0]) as RouteDeclaration
}

/** Starts the service that the requests are for, without workers, and the providers of sign-ins. */
export async function startRequestFixture(): Promise<{ fixture: ContractFixture; database: RequestDatabase }> {
  const clock = buildManualClock()
  providers = await startProviderFixture(() => clock.now())
  realtime = await startRealtimeProvider(() => clock.now())
  const settings = { SIGNALBOX_ROLES: 'api', RATE_LIMIT_STRICT_PER_MINUTE: '1000', SSO_TARGETS: TARGET, ...SIGN_UP_ENV }
  const database = await openRequestDatabase()
  const started = await startContractFixture({
    clock,
    database,
    workerDatabase: database.workerDatabase,
    fetchProvider: providers.fetch,
    loadProviderKeys: async () => ({ keys: [PROVIDER_KEY.jwk] }),
    env: { ...buildSocialEnvironment(), ...realtime.env, ...settings },
  })
  fixture = {
    ...started,
    [Symbol.asyncDispose]: async () => {
      await started[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
      await providers[Symbol.asyncDispose]()
      await realtime.close()
    },
  }
  social = buildSocialUsers(fixture.app, providers)
  await fixture.app.app.start()
  account = (await newAccount()).document_id
  return { fixture, database }
}

/** A request that is ready to be sent, and who sends it. */
export interface ReadyRequest {
  send(): Promise<TestAnswer>
  /** A caller with a token: of the request, or the administrator. */
  caller: TestCall
}

/** Prepares a request to a route, with an idempotency key where one is taken; it fails unless it succeeds. */
export async function prepareRequest(
  route: RouteDeclaration,
  make: MakeRequest | undefined,
  more = '',
): Promise<ReadyRequest> {
  const admin = fixture.app.callAs(fixture.app.adminToken)
  const request = (await make?.()) ?? {}
  const { params = {}, query = '', body, call = admin, isKeyless = false, status = route.status ?? 200 } = request
  const path = route.path.replace(/\{(\w+)\}/g, (_, param: string) => params[param] as string)
  const isKeyed = isChange(route) && !route.strictRateLimit && !isKeyless
  const headers = isKeyed ? { ...request.headers, 'idempotency-key': name() } : request.headers
  const send = async () => {
    const answer = await call(route.method, `${path}${query}${more}`, body, headers)
    expect(answer.status, JSON.stringify(answer.body)).toBe(status)
    return answer
  }
  return { send, caller: call === fixture.app.anonymous ? admin : call }
}
