import type { AccountId } from '../../../src/base/id.ts'
import { buildPageVisitor, PAGE_ENV, type PageReply, type PageVisitor } from '../browser/page-visitor.ts'
import type { TestAnswer, TestAppOptions } from './app.ts'
import { type ConnectionApp, createConnectionApp, PASSWORD } from './connection-app.ts'
import { localOf } from './social-app.ts'

/** The path at which a session is proven. */
export const ENTER = '/auth/organization/enter'

/** A user of two accounts, of which the first enforces its connection. */
export interface TwoAccounts {
  /** The account with the enforced connection. */
  closed: AccountId
  open: AccountId
  connection: string
  domain: string
  user: string
  email: string
}

/** A browser that is signed in by the password. */
export interface SignedInBrowser {
  visitor: PageVisitor
  /** The JWT of its session. */
  jwt: string
}

/** The service with users of several accounts. */
export interface NarrowedApp extends ConnectionApp {
  /** Makes two accounts with a member of both, an administrator of each, before the connection is enforced. `settings` are those of the connection. */
  prepare(settings?: object): Promise<TwoAccounts>
  /** The same, with the connection enforced. */
  narrow(settings?: object): Promise<TwoAccounts>
  enforce(world: TwoAccounts): Promise<void>
  /** Changes the connection. */
  change(world: TwoAccounts, body: object): Promise<TestAnswer>
  /** Without a password it is the one of the users that `prepare` makes. */
  enterPassword(user: { email: string; password?: string }): Promise<SignedInBrowser>
  /** The JWT of a sign-in by the password without a browser. */
  login(world: Pick<TwoAccounts, 'email'>): Promise<string>
  /** Begins the proof in a browser, and proves a person at the provider: the path of callback-redirect. */
  begin(world: TwoAccounts, browser: SignedInBrowser, person?: object): Promise<string>
  /** A whole proof in a browser: the last answer. */
  proveSession(world: TwoAccounts, browser: SignedInBrowser, person?: object): Promise<PageReply>
  /** The answer to a call that needs a permission in an account. */
  reach(token: string, account: string): Promise<TestAnswer>
  /** The statuses of such a call in the closed account and in the open one. */
  statuses(token: string, world: TwoAccounts): Promise<[number, number]>
}

let worlds = 0

/** Starts the service. */
export async function createNarrowedApp(options: TestAppOptions = {}): Promise<NarrowedApp> {
  const t = await createConnectionApp({ ...options, env: { ...PAGE_ENV, ...options.env } })
  const { app } = t
  // The hours of a proof outlast the session of the administrator.
  const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'tests', permissions: ['*:*'] })
  app.admin = app.callAs(key.body.data.key)
  const pathOf = (account: string) => `/api/v3/identity/account/${account}`
  const succeed = ({ status, body }: TestAnswer) => {
    if (status >= 300) throw new Error(JSON.stringify(body))
    return body.data
  }
  const change: NarrowedApp['change'] = ({ closed, connection }, body) =>
    app.admin('PATCH', `${pathOf(closed)}/connection/${connection}`, body)
  const enforce: NarrowedApp['enforce'] = async (world) => succeed(await change(world, { is_enforced: true }))
  const prepare: NarrowedApp['prepare'] = async (settings) => {
    worlds += 1
    app.clock.advance(60_000)
    const domain = `narrow${worlds}.example`
    const [closed, open] = [await t.makeAccount('Closed'), await t.makeAccount('Open')]
    const connection = await t.connect(closed, settings)
    await t.prove(closed, connection, domain)
    const email = `ada@${domain}`
    const user = await t.makeMember(email, [closed, open], [await t.findRole('account-admin')])
    return { closed, open, connection, domain, user, email }
  }
  const begin: NarrowedApp['begin'] = async ({ connection, user, email }, { visitor }, person = {}) => {
    t.fixture.fakes.company.user = { sub: `sub-${user}`, email, isEmailVerified: true, ...person }
    const begun = await visitor.get(`${ENTER}?connection=${connection}`)
    if (begun.status !== 302) throw new Error(`${begun.status} ${begun.body}`)
    const step = await t.fixture.fakes.company.authorize(String(begun.location))
    return localOf(step.url).replace('/callback', '/callback-redirect')
  }
  const reach: NarrowedApp['reach'] = (token, account) => app.callAs(token)('GET', `${pathOf(account)}/member`)
  return {
    ...t,
    prepare,
    enforce,
    change,
    begin,
    reach,
    narrow: async (settings) => {
      const world = await prepare(settings)
      await enforce(world)
      return world
    },
    enterPassword: async ({ email, password = PASSWORD }) => {
      const visitor = buildPageVisitor(app)
      await visitor.get('/auth/sign-in')
      await visitor.post('/auth/sign-in', { email, password })
      const [, cookie] = [...visitor.cookies].find(([name]) => name.endsWith('signalbox_session')) ?? []
      if (!cookie) throw new Error('not signed in')
      return { visitor, jwt: cookie.value }
    },
    login: async ({ email }) =>
      succeed(await app.anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD })).jwt,
    proveSession: async (world, browser, person) => browser.visitor.get(await begin(world, browser, person)),
    statuses: async (token, { closed, open }) => [
      (await reach(token, closed)).status,
      (await reach(token, open)).status,
    ],
  }
}
