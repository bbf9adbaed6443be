import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import type { TestAnswer } from '../harness/app/app.ts'
import { testPasswords } from '../harness/app/small-hash.ts'
import { codeOf, decodeBase32 } from '../harness/browser/factor-user.ts'
import { openFlow } from '../harness/browser/oauth-flow.ts'
import { openBrowser, REDIRECT_URI, walk } from '../harness/browser/oauth-service.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { callService, type ServiceProcess } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

/**
 * What one process issues and another judges, on machines ten minutes ahead of the database and behind it: every expiry is judged
 * by the clock of the database, which `Date.now` follows in each process. Most of what is issued lives for less than the skew.
 */

const SHIFTED = ['--import', join(PROJECT_ROOT, 'test', 'harness', 'process', 'shifted-clock.ts')]
const SKEW_MS = 600_000
const PASSWORD = 'correct horse battery'
const TARGET = 'https://b.example.test'

let fixture: DeliveryFixture
let right: ServiceProcess
let ahead: ServiceProcess
let behind: ServiceProcess
let baseUrl: string
let administrator: string

beforeAll(async () => {
  fixture = await openDeliveryFixture()
  const port = await findFreePort()
  baseUrl = `http://127.0.0.1:${port}`
  const env = {
    ...{ APP_ENV: 'development', BASE_URL: baseUrl, SSO_TARGETS: TARGET },
    RATE_LIMIT_STRICT_PER_MINUTE: '100000',
  }
  const start = async (aheadMs: number, more: Record<string, string> = {}) => {
    const shifts = { TEST_CLOCK_SHIFTS_MS: `0,${aheadMs}` }
    const service = await fixture.start({
      roles: 'api',
      nodeArguments: SHIFTED,
      env: { ...env, ...shifts, ...more },
    })
    // One that is wrong from its start is never ready.
    service.signal('SIGUSR2')
    await service.waitForOutput(/"clock not trusted/)
    return service
  }
  right = await fixture.start({ env })
  ahead = await start(SKEW_MS, { PORT: String(port) })
  behind = await start(-SKEW_MS)
  const text = 'select email from "user" where document_id = $1'
  const { rows } = await fixture.database.pool.query(text, [fixture.database.administrator])
  const credentials = { email: rows[0].email, password: PASSWORD }
  administrator = (await issue(right, '/api/v3/auth/login/local', credentials, '')).jwt
})
afterAll(() => fixture[Symbol.asyncDispose]())

type Call = (path: string, body?: unknown, token?: string) => Promise<TestAnswer>

/** Posts as `token`, as nobody where it is empty, else as the administrator. */
const post =
  (service: ServiceProcess): Call =>
  (path, body, token = administrator) =>
    callService({ url: service.url, ...(token !== '' && { token }) }, { method: 'POST', path, body })

/** Issues through one process, as the administrator or as `token`. */
async function issue(service: ServiceProcess, ...call: Parameters<Call>) {
  const answer = await post(service)(...call)
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body.data
}

let users = 0
async function makeUser(service: ServiceProcess) {
  users += 1
  const email = `user-${users}@example.test`
  const { document_id: id } = await issue(service, '/api/v3/identity/user', { email })
  const text = 'update "user" set password_hash = $2 where document_id = $1'
  await fixture.database.pool.query(text, [id, await testPasswords.hash(PASSWORD)])
  return { email, password: PASSWORD }
}

/** The token of a mail, which the process of the right clock keeps. */
const readToken = (to: string) =>
  waitFor('the mail', async () => {
    const { body } = await right.call('GET', '/auth/mail', undefined, { accept: 'application/json' })
    const mail = body.data.find((mail: { to: string }) => mail.to === to)
    return /[?&]token=([\w-]+)/.exec(mail?.text ?? '')?.[1]
  })

const ACCOUNT = () => `/api/v3/identity/account/${fixture.account}`
const signIn = async (issuer: ServiceProcess) => issue(issuer, '/api/v3/auth/login/local', await makeUser(issuer), '')

/** What `judge` answers to what a process has issued. */
type Use = (judge: ServiceProcess) => Promise<TestAnswer>
const send =
  (path: string, body: unknown, token = ''): Use =>
  (judge) =>
    post(judge)(path, body, token)
const readSession =
  (token: string): Use =>
  (judge) =>
    judge.call('GET', '/api/v3/auth/session', undefined, { authorization: `Bearer ${token}` })

/** Something that ends: how it is issued, the table of its end, and the answer after it. */
const SHARED: readonly (readonly [string, string, number, (issuer: ServiceProcess) => Promise<Use>])[] = [
  ['a session', 'session', 401, async (issuer) => readSession((await signIn(issuer)).jwt)],
  [
    'a refresh token',
    'session_refresh',
    401,
    async (issuer) => {
      const { refresh_token } = await signIn(issuer)
      return send('/api/v3/auth/session/refresh', { refresh_token })
    },
  ],
  [
    'an API key',
    'api_key',
    401,
    async (issuer) => {
      const expires_at = new Date(Date.now() + SKEW_MS / 2).toISOString()
      return readSession(
        (await issue(issuer, '/api/v3/identity/api-key', { name: 'k', permissions: ['*:*'], expires_at })).key,
      )
    },
  ],
  [
    'a link to the portal',
    'portal_session',
    410,
    async (issuer) => {
      const { key } = await issue(issuer, '/api/v3/identity/api-key', { name: 'platform', permissions: ['*:*'] })
      const { url } = await issue(issuer, `${ACCOUNT()}/portal-session`, { role: 'account-developer' }, key)
      return send('/api/v3/auth/portal-session/open', { token: url.split('#token=')[1] })
    },
  ],
  [
    'an invitation',
    'account_invitation',
    410,
    async (issuer) => {
      users += 1
      const email = `guest-${users}@example.test`
      await issue(issuer, `${ACCOUNT()}/invitation`, { email })
      const token = await readToken(email)
      return send('/api/v3/auth/invitation/accept', { token, password: PASSWORD })
    },
  ],
  [
    'a link to reset the password',
    'proof_token',
    410,
    async (issuer) => {
      const { email } = await makeUser(issuer)
      await issue(issuer, '/api/v3/auth/password/forgot', { email }, '')
      return send('/api/v3/auth/password/reset', { token: await readToken(email), password: `${PASSWORD} two` })
    },
  ],
]

const DIRECTIONS = [
  ['ahead', 'behind'],
  ['behind', 'ahead'],
] as const
const pick = (from: 'ahead' | 'behind') =>
  (from === 'ahead' ? [ahead, behind] : [behind, ahead]) as [typeof ahead, typeof ahead]

describe.each(DIRECTIONS)('issued by a process %s, judged by one %s:', (from) => {
  test.each(SHARED)('%s lives, and ends with its row', async (_what, table, refusal, prepare) => {
    const [issuer, judge] = pick(from)
    const [living, ended] = [await prepare(issuer), await prepare(issuer)]
    // The rows of a second use: no other one is as young.
    await fixture.database.pool.query(
      `update ${table} set expires_at = clock_timestamp() - interval '1 ms'
       where created_at = (select max(created_at) from ${table})`,
    )
    expect([(await living(judge)).status, (await ended(judge)).status]).toEqual([200, refusal])
  })

  test('a ticket of the handshake is taken', async () => {
    const [issuer, judge] = pick(from)
    const { jwt } = await signIn(issuer)
    const { redirect_url: url } = await issue(issuer, '/api/v3/auth/sso/handshake', { target_url: TARGET }, jwt)
    const token = new URL(url).searchParams.get('sso_token')
    expect((await post(judge)('/api/v3/auth/sso/exchange', { token }, '')).status).toBe(200)
  })

  test('a code of an authenticator app is that of now', async () => {
    const [issuer, judge] = pick(from)
    const { jwt } = await signIn(issuer)
    const { secret } = await issue(issuer, '/api/v3/auth/factor/totp', undefined, jwt)
    const code = codeOf({ clock: systemClock } as never, decodeBase32(secret))
    expect((await post(judge)('/api/v3/auth/factor/totp/confirm', { code }, jwt)).status).toBe(200)
  })

  test('an answer is kept for its Idempotency-Key', async () => {
    const headers = { authorization: `Bearer ${administrator}`, 'idempotency-key': `of-${from}` }
    const answers = []
    for (const service of pick(from))
      answers.push(
        await service.call('POST', '/api/v3/contract/contract', { name: 'A', account: fixture.account }, headers),
      )
    expect(answers.map(({ status }) => status)).toEqual([201, 201])
    expect(answers[1]?.body).toEqual(answers[0]?.body)
  })
})

test('a code and the tokens of an app are taken by each process', async () => {
  const redirect_uris = [REDIRECT_URI]
  const made = await issue(right, '/api/v3/oauth/client', {
    ...{ name: 'App', type: 'confidential', redirect_uris, scopes: ['openid', 'offline_access', 'contract:read'] },
  })
  const client = { id: made.client_id, secret: made.client_secret, redirectUri: REDIRECT_URI }
  const flow = await openFlow(
    {
      issuer: `${baseUrl}/api/v3/oauth`,
      walk: (browser, url, answers = {}) => walk(baseUrl, browser, { url, answers }),
    },
    client,
  )
  const user = await makeUser(ahead)
  const options = { user, scope: 'openid offline_access contract:read', parameters: { prompt: 'consent' } }
  const begun = await flow.begin(openBrowser(), { ...options, isPushed: true })
  const basic = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`
  const ask = async (service: ServiceProcess, form: Record<string, string>) => {
    const sent = { method: 'POST', headers: { authorization: basic }, body: new URLSearchParams(form) }
    const answer = await fetch(`${service.url}/api/v3/oauth/token`, sent)
    expect(answer.status).toBe(200)
    return (await answer.json()) as { refresh_token: string; access_token: string; expires_in: number }
  }
  const { callback, verifier, redirectUri } = begun
  const code = new URL(callback).searchParams.get('code') ?? ''
  const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier }
  let tokens = await ask(behind, form)
  for (const [issuer, judge] of [
    [ahead, behind],
    [behind, ahead],
  ] as const) {
    tokens = await ask(issuer, { grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
    expect(tokens.expires_in).toBe(900)
    const exchanged = await post(judge)('/api/v3/oauth/exchange', { token: tokens.access_token }, '')
    expect(exchanged.status, JSON.stringify(exchanged.body)).toBe(200)
  }
})
