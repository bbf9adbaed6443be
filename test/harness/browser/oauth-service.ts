import { createTestApp, type TestApp, type TestAppOptions } from '../app/app.ts'
import { createUserWithPassword } from '../app/known-password.ts'
import { buildManualClock } from '../run/manual-clock.ts'
import { buildVisitor, type Visited, type Visitor } from './visitor.ts'

/** A user with a password. */
export interface OauthUser {
  userId: string
  email: string
  password: string
}

/** A client as the API answered it. */
export interface OauthClient {
  id: string
  secret: string | null
  redirectUri: string
}

/** Answers of a user during an authorization. */
export interface Answers {
  user?: Pick<OauthUser, 'email' | 'password'>
  decision?: 'approve' | 'deny' | 'stop'
  /** The optional scopes to leave out. */
  without?: readonly string[]
}

/** The service on a port of its own, with the OAuth provider. */
export interface OauthFixture extends AsyncDisposable {
  app: TestApp
  baseUrl: string
  /** The port that it listens on. */
  port: number
  issuer: string
  user(): Promise<OauthUser>
  client(body?: Record<string, unknown>): Promise<OauthClient>
  /** Walks through an authorization in a browser until it leaves the service, or stands on a page. */
  walk(browser: Visitor, url: string, answers?: Answers): Promise<Visited & { location: string | undefined }>
}

export const REDIRECT_URI = 'http://127.0.0.1:4711/callback'
const PASSWORD = 'correct horse battery'

const decodeEntities = (text: string) =>
  text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<')

/** The hidden and the checked fields of the form that posts to `action`. */
export function readForm(body: string, action: string): Record<string, string> {
  const forms = body.split('<form ').slice(1)
  const form = forms.find((form) => form.includes(`action="${action}"`))?.split('</form>')[0] ?? ''
  const inputs = [...form.matchAll(/<input ([^>]*)>/g)].map(([, text = '']) => text)
  const read = (text: string, name: string) => decodeEntities(new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1] ?? '')
  const kept = inputs.filter((text) => /type="hidden"/.test(text) || /\bchecked\b/.test(text))
  return Object.fromEntries(kept.map((text) => [read(text, 'name'), read(text, 'value')]))
}

/** Starts the service. The clock of the app begins at the machine's time, which the provider reads. */
export async function startOauthFixture(options: TestAppOptions = {}): Promise<OauthFixture> {
  const app = await createTestApp({
    clock: buildManualClock(Date.now()),
    ...options,
    env: { APP_ENV: 'development', RATE_LIMIT_STRICT_PER_MINUTE: '100000', ...options.env },
  })
  const port = Number(new URL(await app.app.server.listen({ host: '127.0.0.1', port: 0 })).port)
  const baseUrl = app.app.baseUrl()
  let count = 0
  return {
    app,
    baseUrl,
    port,
    issuer: `${baseUrl}/api/v3/oauth`,
    user: async () => {
      count += 1
      const email = `person-${count}-${app.clock.now()}@example.com`
      const userId = await createUserWithPassword(app, { email, name: `User ${count}` }, PASSWORD)
      return { userId, email, password: PASSWORD }
    },
    client: async (body = {}) => {
      const made = await app.admin('POST', '/api/v3/oauth/client', {
        name: 'Example app',
        type: 'confidential',
        redirect_uris: [REDIRECT_URI],
        scopes: ['openid', 'profile', 'email', 'offline_access', 'contract:read'],
        ...body,
      })
      if (made.status !== 201) throw new Error(`no client: ${JSON.stringify(made.body)}`)
      const { client_id: id, client_secret: secret, redirect_uris: uris } = made.body.data
      return { id, secret, redirectUri: uris[0] }
    },
    walk: (browser, url, answers = {}) => walk(baseUrl, browser, { url, answers }),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  }
}

/** The same, at a running service at `baseUrl`. */
export async function walk(
  baseUrl: string,
  browser: Visitor,
  { url, answers }: { url: string; answers: Answers },
): ReturnType<OauthFixture['walk']> {
  let answer = await browser.visit(url)
  for (let step = 0; step < 25; step += 1) {
    const next = readNext(answer)
    if (next !== undefined) {
      const target = new URL(next, answer.url)
      if (target.origin !== baseUrl) return { ...answer, location: target.href }
      answer = await browser.visit(target.href)
      continue
    }
    const submitted = await submit(baseUrl, browser, { answer, answers })
    if (!submitted) return { ...answer, location: undefined }
    answer = submitted
  }
  throw new Error(`the walk does not end: ${answer.url}`)
}

function readNext({ headers }: Visited): string | undefined {
  const refresh = headers.refresh as string | undefined
  return headers.location ?? refresh?.split('url=')[1]
}

async function submit(
  baseUrl: string,
  browser: Visitor,
  { answer, answers }: { answer: Visited; answers: Answers },
): Promise<Visited | undefined> {
  const { user, decision = 'approve', without = [] } = answers
  const post = (path: string, fields: Record<string, string>) => {
    const form = { ...readForm(answer.body, path), ...fields }
    for (const name of without) delete form[`allow:${name}`]
    return browser.visit(`${baseUrl}${path}`, { method: 'POST', form })
  }
  if (answer.body.includes('action="/auth/sign-in"') && user)
    return post('/auth/sign-in', { email: user.email, password: user.password })
  if (answer.body.includes('action="/auth/oauth/consent"') && decision !== 'stop')
    return post('/auth/oauth/consent', { decision })
  return undefined
}

/** A browser without cookies. */
export const openBrowser = (): Visitor => buildVisitor()
