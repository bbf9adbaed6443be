import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import type { UserId } from '../../src/base/id.ts'
import { eventNameOf, type RouteDeclaration } from '../../src/http/route/route.ts'
import { inTransaction } from '../../src/postgres/statement/database.ts'
import { createTestApp, type TestAnswer, type TestCall } from '../harness/app/app.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { accessClaims, headOf, makeKey, signParts } from '../harness/app/token-issuer.ts'
import { buildFactorRequests } from '../harness/browser/factor-requests.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import { addGrant, addInteraction } from '../harness/browser/oauth-rows.ts'
import { endRows } from '../harness/delivery/ledger-rows.ts'
import { untilWaiting } from '../harness/plan/lock-waits.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { buildCatalogueCases } from './catalogue-cases.ts'
import { buildConnectionCases } from './connection-cases.ts'
import { buildFactorCases } from './factor-cases.ts'
import { buildOwnUserCases } from './own-user-cases.ts'
import { type Calls, EACH, onceElse, type Rule, SAME } from './parallel-case.ts'
import { buildPlatformCases } from './platform-cases.ts'
import { buildPortalCases } from './portal-cases.ts'
import { buildProvisioningCases } from './provisioning-cases.ts'
import { buildSignUpCases } from './sign-up-cases.ts'

const PROVIDER_KEY = makeKey('key-1')
const IDENTITY = '/api/v3/identity'
const WEBHOOKS = '/api/v3/webhook/webhook'
const AT_ONCE = 3
/** Statements that publications of concurrent requests share, while one of them waits. */
const PUBLICATIONS_AT_ONCE = 2

let count = 0
const unique = (word: string) => `${word}-${count++}`

// biome-ignore lint/suspicious/noExplicitAny: rows of every shape
async function make(path: string, body: unknown = undefined, call: TestCall = app.admin): Promise<any> {
  const answer = await call('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body.data
}
const makeUser = async ({ password }: { password?: string } = {}) => {
  const email = `${unique('user')}@example.test`
  if (password !== undefined) return { id: await createUserWithPassword(app, { email }, password), email }
  return { id: (await make(`${IDENTITY}/user`, { email })).document_id as string, email }
}
const idOf = async (path: string, body: unknown) => ({ id: (await make(path, body)).document_id as string })
const CLIENTS = '/api/v3/oauth/client'
const CLIENT = { name: 'App', type: 'confidential', redirect_uris: ['https://app.example.com/callback'] }
const makeClient = () => idOf(CLIENTS, CLIENT)
const makeAccount = () => idOf(`${IDENTITY}/account`, { name: 'Acme' })
const makeRole = () => idOf(`${IDENTITY}/role`, { name: unique('role'), permissions: ['user:find-all'] })
const makeContract = () => idOf('/api/v3/contract/contract', { account, name: 'Lease' })
const makeWebhook = () => idOf(WEBHOOKS, { url: 'https://hooks.example.com/', account })
const makeSignedWebhook = () =>
  idOf(WEBHOOKS, { url: 'https://hooks.example.com/', account, asymmetric_signature: true })
const findEventType = async (name: string): Promise<string> =>
  (await app.admin('GET', `/api/v3/webhook/event?filters=internal|eq|${name}`)).body.data[0].document_id
const makeSubscription = async () => {
  const { id: webhook } = await makeWebhook()
  return idOf('/api/v3/webhook/webhook-event', { webhook, event: await findEventType('contract.create') })
}
const makeDispatch = async () => {
  const { id } = await makeWebhook()
  const { dispatch_id } = await make(`${WEBHOOKS}/${id}/test`)
  await endRows(app, 'exhausted', dispatch_id)
  return { id: dispatch_id as string }
}
const makeJob = async () => {
  const { id } = await makeDispatch()
  return idOf('/api/v3/webhook/dispatch/replay', { filters: [`document_id|eq|${id}`] })
}

const PASSWORD = 'correct horse battery'
const TARGET = 'https://b.example.test'

const app = await openForFile(
  createTestApp({
    env: { SSO_TARGETS: TARGET, RATE_LIMIT_STRICT_PER_MINUTE: '1000', SIGN_UP: 'open', SIGN_IN_BY_MAIL: 'true' },
    loadProviderKeys: async () => ({ keys: [PROVIDER_KEY.jwk] }),
  }),
)
const account: string = (await make(`${IDENTITY}/account`, { name: 'Acme' })).document_id

const logIn = ({ email }: { email: string }) =>
  make('/api/v3/auth/login/local', { email, password: PASSWORD }, app.anonymous)

const sessionOf = (jwt: string): string => JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString()).sid
const readToken = async (email: string): Promise<string> => (await readMails(app, email))[0]!.token as string
const findRole = async (name: string): Promise<string> =>
  (await app.admin('GET', `${IDENTITY}/role?filters=name|eq|${name}`)).body.data[0].document_id

/** Routes that need a provider: tests of their own send their requests at the same time. */
/**
 * Routes that change no resource; src/oauth/hook/token-hook.test.ts, src/realtime/inspector.test.ts,
 * src/realtime/replay/replay.test.ts and src/webhook/pull/pull.test.ts call theirs many times at once.
 */
const WRITES_NOTHING = [
  'login.find-connection',
  'connection.read-metadata',
  'oauth-hook.access-token',
  ...['auth', 'presence-auth', 'resume', 'user-auth', 'webhook'].map((action) => `realtime.${action}`),
  ...['webhook.ack', 'webhook.extend', 'webhook.nack', 'webhook.pull'],
]

/** Routes that ask another service; their own tests call them at once. */
const WITH_PROVIDER = [
  'connection-domain.verify',
  'identity.create',
  'identity.delete',
  'identity.link',
  'login.code',
  'login.oauth-form-callback',
  'login.saml-response',
  'realtime.publish-test',
  'user-identity.delete',
]

const factors = buildFactorRequests(
  () => ({
    ...app,
    newUser: async () => ({ email: (await makeUser({ password: PASSWORD })).email, password: PASSWORD }),
  }),
  { origin: 'http://localhost:0', rpId: 'localhost' },
)

/** One case for each route that changes something, by the route's event. */
const CASES: Record<string, [Rule, () => Promise<Calls>]> = {
  ...buildFactorCases(factors, () => app.anonymous),
  'login.local': [
    EACH,
    async () => {
      const { email } = await makeUser({ password: PASSWORD })
      return { body: { email, password: PASSWORD }, call: app.anonymous }
    },
  ],
  // The client that spent the token gets the same next one again: two tabs must not sign a user out.
  'session.refresh': [
    SAME,
    async () => {
      const { refresh_token } = await logIn(await makeUser({ password: PASSWORD }))
      return { body: { refresh_token }, call: app.anonymous }
    },
  ],
  'session.delete': [
    onceElse(404),
    async () => ({ id: sessionOf((await logIn(await makeUser({ password: PASSWORD }))).jwt) }),
  ],
  'oauth-client.create': [EACH, async () => ({ body: CLIENT })],
  'oauth-client.update': [SAME, async () => ({ id: (await makeClient()).id, body: { name: 'Renamed' } })],
  'oauth-client.rotate-secret': [EACH, async () => ({ id: (await makeClient()).id, body: { overlap_seconds: 0 } })],
  'oauth-client.delete': [onceElse(404), makeClient],
  'oauth-client.revoke-secret': [
    onceElse(404),
    async () => {
      const { id } = await makeClient()
      const { body } = await app.admin('GET', `/api/v3/oauth/client/${id}/secret`)
      return { id, params: { secret: body.data[0].document_id } }
    },
  ],
  'oauth-decision.create': [
    onceElse(404),
    async () => {
      const asked = { userId: app.adminId, clientId: (await makeClient()).id }
      return { body: { authorization_id: await addInteraction(app, asked), decision: 'approve' } }
    },
  ],
  'oauth-grant.delete': [
    onceElse(404),
    async () => ({ id: await addGrant(app, { userId: app.adminId, clientId: (await makeClient()).id }) }),
  ],
  'password.change': [
    onceElse(422),
    async () => ({
      body: { current_password: PASSWORD, new_password: `${PASSWORD} two` },
      call: app.callAs((await logIn(await makeUser({ password: PASSWORD }))).jwt),
    }),
  ],
  'password.forgot': [EACH, async () => ({ body: { email: (await makeUser()).email }, call: app.anonymous })],
  'password.reset': [
    onceElse(410),
    async () => {
      const { email } = await makeUser({ password: PASSWORD })
      await make('/api/v3/auth/password/forgot', { email }, app.anonymous)
      return { body: { token: await readToken(email), password: `${PASSWORD} two` }, call: app.anonymous }
    },
  ],
  'email.request-verification': [
    EACH,
    async () => ({ call: app.callAs((await logIn(await makeUser({ password: PASSWORD }))).jwt) }),
  ],
  'email.verify': [
    onceElse(410),
    async () => {
      const user = await makeUser({ password: PASSWORD })
      await make('/api/v3/auth/email/verify/request', undefined, app.callAs((await logIn(user)).jwt))
      return { body: { token: await readToken(user.email) }, call: app.anonymous }
    },
  ],
  ...buildOwnUserCases({ makeUser: () => makeUser({ password: PASSWORD }), logIn, readToken, app: () => app }),
  'account-member.update': [
    SAME,
    async () => {
      const [{ id }, { id: user }, roles] = [await makeAccount(), await makeUser(), [await findRole('account-viewer')]]
      await make(`${IDENTITY}/account/${id}/member`, { user })
      return { id, body: { user, roles } }
    },
  ],
  'account-invitation.create': [
    EACH,
    async () => ({ id: (await makeAccount()).id, body: { email: `${unique('guest')}@example.test` } }),
  ],
  'account-invitation.delete': [
    onceElse(404),
    async () => {
      const { id } = await makeAccount()
      const path = `${IDENTITY}/account/${id}/invitation`
      const invitation = (await idOf(path, { email: `${unique('guest')}@example.test` })).id
      return { id, params: { invitation } }
    },
  ],
  'account-invitation.accept': [
    onceElse(410),
    async () => {
      const { id } = await makeAccount()
      const email = `${unique('guest')}@example.test`
      await make(`${IDENTITY}/account/${id}/invitation`, { email })
      return { body: { token: await readToken(email), password: PASSWORD }, call: app.anonymous }
    },
  ],
  ...buildSignUpCases({ app: () => app, unique, makeUser }),
  ...buildConnectionCases({ make }),
  ...buildPortalCases({ make, app: () => app }),
  'sso.handshake': [
    EACH,
    async () => ({
      body: { target_url: TARGET },
      call: app.callAs((await logIn(await makeUser({ password: PASSWORD }))).jwt),
    }),
  ],
  'sso.exchange': [
    onceElse(401),
    async () => {
      const call = app.callAs((await logIn(await makeUser({ password: PASSWORD }))).jwt)
      const { redirect_url } = await make('/api/v3/auth/sso/handshake', { target_url: TARGET }, call)
      return { body: { token: new URL(redirect_url).searchParams.get('sso_token') }, call: app.anonymous }
    },
  ],
  'oauth.exchange': [
    EACH,
    async () => {
      const userId = (await makeUser()).id as UserId
      const seconds = Math.floor(app.clock.now() / 1000)
      const claims = accessClaims({ baseUrl: app.app.baseUrl(), userId, seconds })
      return { body: { token: signParts(headOf(PROVIDER_KEY), claims, PROVIDER_KEY) }, call: app.anonymous }
    },
  ],
  'session.revoke': [
    SAME,
    async () => ({ call: app.callAs((await logIn(await makeUser({ password: PASSWORD }))).jwt) }),
  ],
  'user.create': [onceElse(409), async () => ({ body: { email: `${unique('once')}@example.test` } })],
  'user.update': [SAME, async () => ({ id: (await makeUser()).id, body: { name: 'Renamed', roles: [] } })],
  'user.delete': [onceElse(404), async () => ({ id: (await makeUser()).id })],
  'user.disable': [SAME, async () => ({ id: (await makeUser()).id })],
  'user.enable': [
    SAME,
    async () => {
      const { id } = await makeUser()
      await make(`${IDENTITY}/user/${id}/disable`)
      return { id }
    },
  ],
  'user.revoke-sessions': [
    SAME,
    async () => {
      const user = await makeUser({ password: PASSWORD })
      await logIn(user)
      return { id: user.id }
    },
  ],
  'account.create': [EACH, async () => ({ body: { name: 'Acme' } })],
  'account.update': [SAME, async () => ({ ...(await makeAccount()), body: { name: 'Renamed' } })],
  'account.delete': [onceElse(404), makeAccount],
  'account-limit.update': [SAME, async () => ({ ...(await makeAccount()), body: { webhooks: 5 } })],
  'account-member.create': [
    onceElse(409),
    async () => ({ ...(await makeAccount()), body: { user: (await makeUser()).id } }),
  ],
  'account-member.delete': [
    onceElse(404),
    async () => {
      const [{ id }, user] = [await makeAccount(), await makeUser()]
      await make(`${IDENTITY}/account/${id}/member`, { user: user.id })
      return { id, body: { user: user.id } }
    },
  ],
  'role.create': [onceElse(409), async () => ({ body: { name: unique('once'), permissions: [] } })],
  'role.update': [SAME, async () => ({ ...(await makeRole()), body: { permissions: ['user:create'] } })],
  'role.delete': [onceElse(404), makeRole],
  'api-key.create': [EACH, async () => ({ body: { name: 'key', permissions: ['user:find-all'] } })],
  'api-key.delete': [onceElse(404), () => idOf(`${IDENTITY}/api-key`, { name: 'key', permissions: ['user:find-all'] })],
  ...buildPlatformCases({ make: idOf, account: () => account }),
  'webhook.create': [EACH, async () => ({ body: { url: 'https://hooks.example.com/', account } })],
  'webhook.update': [SAME, async () => ({ ...(await makeWebhook()), body: { name: 'Renamed' } })],
  'webhook.delete': [onceElse(404), makeWebhook],
  'webhook.purge': [onceElse(404), makeWebhook],
  'webhook.active': [SAME, async () => ({ ...(await makeWebhook()), body: { is_actived: false } })],
  'webhook.rotate-secret': [EACH, makeWebhook],
  // A second rotation would end the listing of the first key.
  'webhook.rotate-key': [onceElse(409), makeSignedWebhook],
  'webhook.test': [EACH, makeWebhook],
  'webhook.catalogue-sync': [EACH, async () => ({})],
  'webhook-event.set': [
    SAME,
    async () => ({ ...(await makeWebhook()), body: { events: [await findEventType('contract.create')] } }),
  ],
  'webhook-event.create': [
    onceElse(409),
    async () => ({ body: { webhook: (await makeWebhook()).id, event: await findEventType('contract.create') } }),
  ],
  'webhook-event.update': [
    onceElse(404),
    async () => ({ ...(await makeSubscription()), body: { event: await findEventType('contract.update') } }),
  ],
  'webhook-event.delete': [onceElse(404), makeSubscription],
  ...buildCatalogueCases({ make: idOf, unique }),
  'webhook-dispatch.replay': [
    onceElse(409),
    async () => ({ ...(await makeDispatch()), body: { confirm_duplicate: true } }),
  ],
  'webhook-dispatch.replay-all': [
    EACH,
    async () => ({ body: { filters: [`document_id|eq|${(await makeDispatch()).id}`], confirm_duplicate: true } }),
  ],
  'replay-job.pause': [onceElse(409), makeJob],
  'replay-job.resume': [
    onceElse(409),
    async () => {
      const { id } = await makeJob()
      await make(`/api/v3/webhook/replay-job/${id}/pause`)
      return { id }
    },
  ],
  'replay-job.cancel': [onceElse(409), makeJob],
  ...buildProvisioningCases({ make, makeUser, app: () => app }),
}

const CHANGES = (ROUTE_TREE as readonly RouteDeclaration[]).filter(({ method }) => method !== 'GET')
const routeOf = new Map(CHANGES.map((route) => [eventNameOf(route), route]))

const countEvents = async (event: string) =>
  (await app.database.pool.query('select from event_occurrence where event = $1', [event])).rowCount ?? 0

/**
 * Makes calls that really overlap: none can commit before all have gone as far as they can. Each waits either for a row that
 * another one holds or, with its change made, for the audit log. `statements` is how many wait for that.
 */
async function overlap(calls: (() => Promise<TestAnswer>)[], statements = calls.length): Promise<TestAnswer[]> {
  const held = Promise.withResolvers<void>()
  const mayGoOn = Promise.withResolvers<void>()
  const holding = inTransaction(app.database.db, async (tx) => {
    await sql`lock table audit_log in share mode`.execute(tx)
    held.resolve()
    await mayGoOn.promise
  })
  await held.promise
  const answers = Promise.all(calls.map((call) => call()))
  await untilWaiting(app.database.db, statements).finally(() => mayGoOn.resolve())
  await holding
  return answers
}

/** How many of the calls come to the lock: publications share a statement, and a user's long reads take turns. */
const HELD_AT_ONCE: Readonly<Record<string, number>> = {
  'event.publish': PUBLICATIONS_AT_ONCE,
  'webhook-dispatch.replay-all': 2,
}

describe('three calls at once', () => {
  test('every route that changes something has a case', () => {
    expect([...Object.keys(CASES), ...WITH_PROVIDER, ...WRITES_NOTHING].sort()).toEqual([...routeOf.keys()].sort())
  })

  test.each(Object.entries(CASES))('of %s follow each other', async (name, [rule, prepare]) => {
    const route = routeOf.get(name)!
    const { id = '', params = {}, body, call = app.admin, event = name, events } = await prepare()
    const path = route.path.replace(/\{(\w+)\}/g, (_, place: string) => params[place] ?? id)
    const before = await countEvents(event)
    const calls = Array.from({ length: AT_ONCE }, () => () => call(route.method, path, body))
    const answers = await overlap(calls, HELD_AT_ONCE[name] ?? AT_ONCE)
    const statuses = answers.map(({ status }) => status).sort()
    const success = route.status ?? 200
    const expected = Array.from({ length: AT_ONCE }, (_, index) =>
      rule.of === 'once' && index > 0 ? rule.refusal : success,
    )
    expect(statuses, JSON.stringify(answers.map((answer) => answer.body))).toEqual(expected)
    expect((await countEvents(event)) - before).toBe(events ?? (rule.of === 'each' ? AT_ONCE : 1))
  })
})

describe('two different changes at once', () => {
  test('of the roles of a user end as one of the two, not as both', async () => {
    const user = await makeUser()
    const wanted = [[(await makeRole()).id], [(await makeRole()).id]]
    const path = `${IDENTITY}/user/${user.id}`
    await overlap(wanted.map((roles) => () => app.admin('PATCH', path, { roles })))
    expect(wanted).toContainEqual((await app.admin('GET', path)).body.data.roles)
  })

  test('of the permissions of a role end as one of the two, not as both', async () => {
    const wanted = [['user:create'], ['user:update']]
    const path = `${IDENTITY}/role/${(await makeRole()).id}`
    await overlap(wanted.map((permissions) => () => app.admin('PATCH', path, { permissions })))
    expect(wanted).toContainEqual((await app.admin('GET', path)).body.data.permissions)
  })

  test('of different members of a contract both hold', async () => {
    const path = `/api/v3/contract/contract/${(await makeContract()).id}`
    await overlap([{ name: 'Other' }, { status: 'active' }].map((body) => () => app.admin('PATCH', path, body)))
    expect((await app.admin('GET', path)).body.data).toMatchObject({ name: 'Other', status: 'active' })
  })

  test('giving a role and deleting it: the role is given first and then gone, or the request is refused', async () => {
    const [user, role] = [await makeUser(), await makeRole()]
    const path = `${IDENTITY}/user/${user.id}`
    const [given, deleted] = await overlap([
      () => app.admin('PATCH', path, { roles: [role.id] }),
      () => app.admin('DELETE', `${IDENTITY}/role/${role.id}`),
    ])
    expect(deleted?.status).toBe(200)
    expect([200, 422]).toContain(given?.status)
    expect((await app.admin('GET', path)).body.data.roles).not.toContain(role.id)
  })

  test.each([
    ['a contract', '/api/v3/contract/contract', (id: string) => ({ account: id, name: 'Lease' })],
    ['a webhook', WEBHOOKS, (id: string) => ({ account: id, url: 'https://hooks.example.com/' })],
  ])(
    'deleting an account and creating %s in it: nothing is created in a deleted account',
    async (_what, path, bodyOf) => {
      const { id } = await makeAccount()
      const [deleted, created] = await overlap([
        () => app.admin('DELETE', `${IDENTITY}/account/${id}`),
        () => app.admin('POST', path, bodyOf(id)),
      ])
      expect(deleted?.status).toBe(200)
      expect([201, 422]).toContain(created?.status)
      const { rows } = await app.database.pool.query('select is_actived from webhook where account = $1', [id])
      for (const row of rows) expect(row.is_actived).toBe(false)
    },
  )

  test('deleting an account and activating a webhook of it leave the webhook inactive', async () => {
    const { id } = await makeAccount()
    const webhook = await make(WEBHOOKS, { account: id, url: 'https://hooks.example.com/' })
    const path = `${WEBHOOKS}/${webhook.document_id}`
    await app.admin('PATCH', `${path}/active`, { is_actived: false })
    const [deleted, activated] = await overlap([
      () => app.admin('DELETE', `${IDENTITY}/account/${id}`),
      () => app.admin('PATCH', `${path}/active`, { is_actived: true }),
    ])
    expect(deleted?.status).toBe(200)
    expect([200, 409]).toContain(activated?.status)
    expect((await app.admin('GET', path)).body.data).toMatchObject({
      is_actived: false,
      disabled_reason: 'account-deleted',
    })
  })
})
