import { systemRandom } from '../../../src/base/random.ts'
import { createLoginCode } from '../../../src/identity/social-login/flow/login-code.ts'
import type { TestApp, TestCall } from '../app/app.ts'
import { readMails } from './mailbox.ts'
import { type Flow, openFlow } from './oauth-flow.ts'
import { type OauthFixture, type OauthUser, openBrowser } from './oauth-service.ts'
import type { Visitor } from './visitor.ts'

/** Kinds of access of a user, as the table of docs/contract/sessions.md names them. */
export const COLUMNS = [
  'session',
  'browser',
  'handshake',
  'app',
  'app of the browser',
  'refresh',
  'refresh of the browser',
  'access token',
  'API key',
  'reset link',
  'one-time code',
  'authorization code',
] as const
export type Column = (typeof COLUMNS)[number]

/** A user with everything open, and what still works of it. */
export interface OpenedAccess {
  user: OauthUser
  /** The calls of the session that acts. */
  call: TestCall
  token: string
  /** The browser in which the user signed in to the apps, and its session JWT. */
  browser: Visitor
  browserToken: string
  /** Tries everything, once, in each process that may be asked. */
  listLiving(): Promise<Column[]>
}

const OFFLINE = { prompt: 'consent' }
const ONLINE = 'openid email contract:read'

/** Opens everything for a new user: in one process, and used in `other`. */
export async function openEverything(
  fixture: OauthFixture,
  other: TestApp,
  flows: { offline: Flow; online: Flow },
): Promise<OpenedAccess> {
  const { app, baseUrl } = fixture
  app.clock.set(Date.now())
  const user = await fixture.user()
  const { email, password, userId } = user
  const signIn = async () => (await app.anonymous('POST', '/api/v3/auth/login/local', { email, password })).body.data
  const [acting, session] = [await signIn(), await signIn()]
  const browser = openBrowser()
  const offline = (await flows.offline.signIn(browser, { user, parameters: OFFLINE })).tokens
  const online = (await flows.online.signIn(browser, { user, scope: ONLINE })).tokens
  const browserToken = [...browser.cookiesOf(baseUrl)].find(([name]) => name.endsWith('signalbox_session'))?.[1] ?? ''
  // The provider stamps its tokens by the clock of the machine; one that is ahead of the service is refused.
  app.clock.set(Math.max(app.clock.now(), Date.now()))
  const exchange = async (token: string): Promise<string> =>
    (await app.anonymous('POST', '/api/v3/oauth/exchange', { token })).body.jwt
  const [offlineApp, onlineApp] = [await exchange(offline.access_token), await exchange(online.access_token)]
  const host = new URL(baseUrl).hostname === 'localhost' ? '127.0.0.1' : 'localhost'
  const target = { target_url: `http://${host}:4799/` }
  const shaken = await app.callAs(browserToken)('POST', '/api/v3/auth/sso/handshake', target)
  const handshake = new URL(shaken.body.data.redirect_url).searchParams.get('sso_token')
  const { jwt } = (await app.anonymous('POST', '/api/v3/auth/sso/exchange', { token: handshake })).body
  const made = await app.callAs(acting.jwt)('POST', '/api/v3/identity/api-key', {
    name: 'program',
    permissions: ['contract:find-all'],
  })
  await app.anonymous('POST', '/api/v3/auth/password/forgot', { email })
  const [mail] = await readMails(app, email)
  const oneTime = await openLoginCode(fixture, userId)
  const begun = await flows.offline.begin(browser, {})

  const answers =
    (token: string, path = '/api/v3/auth/session') =>
    async () => {
      const statuses = []
      for (const process of [app, other]) statuses.push((await process.callAs(token)('GET', path)).status)
      if (statuses[0] !== statuses[1]) throw new Error(`the processes differ: ${statuses}`)
      return statuses[0] === 200
    }
  const succeeds = (request: () => Promise<unknown>) => () =>
    request().then(
      () => true,
      () => false,
    )
  const checks: Record<Column, () => Promise<boolean>> = {
    session: async () => {
      const isAnswered = await answers(session.jwt)()
      const body = { refresh_token: session.refresh_token }
      const isRefreshed = (await other.anonymous('POST', '/api/v3/auth/session/refresh', body)).status === 200
      if (isAnswered !== isRefreshed) throw new Error('a session lives in part')
      return isAnswered
    },
    browser: answers(browserToken),
    handshake: answers(jwt),
    app: answers(offlineApp, '/api/v3/contract/contract'),
    'app of the browser': answers(onlineApp, '/api/v3/contract/contract'),
    // Introspection says what the use of a token would: the tokens are still there for it.
    'access token': async () => {
      const isActive = (await flows.offline.introspect(offline.access_token)).active === true
      const statuses = [
        (await flows.offline.userinfo(offline.access_token)).status,
        (await other.anonymous('POST', '/api/v3/oauth/exchange', { token: offline.access_token })).status,
      ]
      if (statuses.some((status) => (status === 200) !== isActive)) throw new Error(`${isActive}, but ${statuses}`)
      return isActive
    },
    'refresh of the browser': succeeds(() => flows.online.refresh(online.refresh_token)),
    refresh: succeeds(() => flows.offline.refresh(offline.refresh_token)),
    'API key': answers(made.body.data.key, '/api/v3/contract/contract'),
    'one-time code': async () => {
      const body = { code: oneTime.code, code_verifier: oneTime.verifier }
      return (await other.anonymous('POST', '/api/v3/auth/login/code', body)).status === 200
    },
    'authorization code': succeeds(() => flows.offline.redeem(begun)),
    'reset link': async () => (await browser.visit(`${baseUrl}/auth/reset?token=${mail?.token}`)).status === 200,
  }
  return {
    user,
    call: app.callAs(acting.jwt),
    token: acting.jwt,
    browser,
    browserToken,
    listLiving: async () => {
      const living: Column[] = []
      for (const column of COLUMNS) if (await checks[column]()) living.push(column)
      return living
    },
  }
}

async function openLoginCode({ app }: OauthFixture, userId: string): Promise<{ code: string; verifier: string }> {
  const verifier = systemRandom.bytes(32).toString('base64url')
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const codeChallenge = Buffer.from(hash).toString('base64url')
  const row = {
    purpose: 'sign-in',
    userId: userId as never,
    codeChallenge,
    isNewUser: false,
    connection: null,
  } as const
  return { code: await createLoginCode(systemRandom, app.database.db, row, new Date(app.clock.now())), verifier }
}

/** The flows of two clients: what one opens outlives the browser, what the other opens ends with it. */
export async function openFlows(fixture: OauthFixture): Promise<{ offline: Flow; online: Flow }> {
  const [first, second] = [await fixture.client(), await fixture.client()]
  return { offline: await openFlow(fixture, first), online: await openFlow(fixture, second) }
}
