import { parseSetCookie } from 'cookie'
import type { BrowserStep, FakeUser } from '../fakes/provider/fake-provider.ts'
import { APPLE_KEY, PERSONALITIES, type PersonalityName } from '../fakes/provider/personalities.ts'
import { type ProviderFixture, startProviderFixture } from '../fakes/provider/provider-fixture.ts'
import { buildManualClock } from '../run/manual-clock.ts'
import { createTestApp, type TestAnswer, type TestApp, type TestAppOptions } from './app.ts'

/** Where users come from in these tests: a web app and a mobile app. */
export const WEB_APP = 'https://app.example.com/welcome'
export const MOBILE_APP = 'com.example.app:/signed-in'

/** A browser: its cookies, and the requests that it makes. */
export interface TestBrowser {
  cookies: Map<string, string>
  get(url: string, accept?: string, headers?: Record<string, string>): Promise<TestAnswer>
  post(url: string, form: Record<string, string>): Promise<TestAnswer>
}

/** Users at the fake providers, and their browsers. */
export interface SocialUsers {
  /** A browser without cookies. */
  browser(): TestBrowser
  /** Seats a user at a provider. */
  seat(provider: PersonalityName, user: Partial<FakeUser> & { sub: string }): void
  /** Starts in a browser and answers the consent page: what reaches the callback. */
  reachCallback(browser: TestBrowser, provider: PersonalityName, query?: Record<string, string>): Promise<BrowserStep>
  /** A whole sign-in of a browser with scripts; the answer of callback-redirect. */
  signIn(browser: TestBrowser, provider: PersonalityName, query?: Record<string, string>): Promise<TestAnswer>
}

/** The service with every fake provider enabled. */
export interface SocialApp extends SocialUsers, AsyncDisposable {
  app: TestApp
  fixture: ProviderFixture
}

export const pathOf = (provider: string, end = '') => `/api/v3/auth/login/oauth/${provider}${end}`

/** The path and query of a URL. */
export const localOf = (url: string) => new URL(url, 'https://service.test').href.replace(/^https?:\/\/[^/]+/, '')

/** The URL of callback-redirect for what reached the callback. */
export function redirectUrlOf(step: BrowserStep): string {
  const url = new URL(step.url)
  for (const [name, value] of Object.entries(step.form ?? {})) if (name !== 'user') url.searchParams.set(name, value)
  return localOf(url.href).replace('/callback', '/callback-redirect')
}

/** The settings of every fake provider. */
export function buildSocialEnvironment(): Record<string, string> {
  const env: Record<string, string> = {
    BASE_URL: 'https://service.test',
    AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.com,com.example.app:',
    RATE_LIMIT_STRICT_PER_MINUTE: '100000',
  }
  for (const [name, { clientId, clientSecret }] of Object.entries(PERSONALITIES)) {
    const prefix = `SOCIAL_${name.toUpperCase()}`
    env[`${prefix}_CLIENT_ID`] = clientId
    env[`${prefix}_CLIENT_SECRET`] = name === 'apple' ? APPLE_KEY : clientSecret
  }
  env.SOCIAL_APPLE_TEAM_ID = 'TEAM000001'
  env.SOCIAL_APPLE_KEY_ID = 'KEY0000001'
  env.SOCIAL_COMPANY_ISSUER = 'https://login.company.example/realms/staff'
  return env
}

/** A browser without cookies, for an app. */
export function buildTestBrowser(app: TestApp): TestBrowser {
  const cookies = new Map<string, string>()
  const send = async (answer: Promise<TestAnswer>) => {
    const { headers, ...rest } = await answer
    const set = headers['set-cookie']
    for (const line of Array.isArray(set) ? set : set === undefined ? [] : [String(set)]) {
      const { name, value = '', maxAge } = parseSetCookie(line)
      if (maxAge === 0) cookies.delete(name)
      else cookies.set(name, value)
    }
    return { headers, ...rest }
  }
  const cookieHeader = () => ({ cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') })
  return {
    cookies,
    get: (url, accept = 'text/html', headers = {}) =>
      send(app.anonymous('GET', localOf(url), undefined, { accept, ...cookieHeader(), ...headers })),
    // The post comes from the provider's site, so that the browser sends no cookie.
    post: (url, form) =>
      send(
        app.anonymous('POST', localOf(url), new URLSearchParams(form).toString(), {
          'content-type': 'application/x-www-form-urlencoded',
          origin: 'https://appleid.apple.com',
        }),
      ),
  }
}

/** Options of the service with fake providers; `providerTimeoutMs` limits a request to one. */
export type SocialAppOptions = TestAppOptions & { providerTimeoutMs?: number }

/** Starts the service and the fake providers. */
export async function createSocialApp({
  providerTimeoutMs: timeoutMs,
  ...options
}: SocialAppOptions = {}): Promise<SocialApp> {
  const clock = options.clock ?? buildManualClock()
  const fixture = await startProviderFixture(() => clock.now(), timeoutMs === undefined ? {} : { timeoutMs })
  const app = await createTestApp({
    ...options,
    clock,
    fetchProvider: fixture.fetch,
    env: { ...buildSocialEnvironment(), ...options.env },
  })
  return {
    ...buildSocialUsers(app, fixture),
    app,
    fixture,
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]()
      await fixture[Symbol.asyncDispose]()
    },
  }
}

/** The users of an app that has the settings of `buildSocialEnvironment` and the `fetch` of `fixture`. */
export function buildSocialUsers(app: TestApp, fixture: ProviderFixture): SocialUsers {
  const reachCallback: SocialApp['reachCallback'] = async (from, provider, query = {}) => {
    const search = new URLSearchParams({ redirect_url: WEB_APP, ...query })
    const started = await from.get(`${pathOf(provider)}?${search}`)
    if (started.status !== 302) throw new Error(`the start answered ${started.status}: ${JSON.stringify(started.body)}`)
    return fixture.fakes[provider].authorize(String(started.headers.location))
  }

  return {
    browser: () => buildTestBrowser(app),
    seat: (provider, user) => {
      fixture.fakes[provider].user = { email: `${user.sub}@example.com`, isEmailVerified: true, ...user }
    },
    reachCallback,
    signIn: async (from, provider, query) => {
      const step = await reachCallback(from, provider, query)
      if (step.method === 'POST') await from.post(step.url, step.form ?? {})
      return from.get(redirectUrlOf(step), 'application/json')
    },
  }
}
