import { createHash, randomBytes } from 'node:crypto'
import { hookSecrets } from '../../../../src/app/config/config-parsers.ts'
import { createTestApp, type TestApp } from '../../app/app.ts'
import { buildTestBrowser, localOf, pathOf, type TestBrowser, WEB_APP } from '../../app/social-app.ts'
import { buildManualClock } from '../../run/manual-clock.ts'
import type { SimulatedClient } from './oauth-server.ts'
import { signInOfficially } from './official-client.ts'
import { type SupabaseSimulator, startSupabaseSimulator } from './simulator.ts'

/** The redirect URI of the apps that are registered at the simulated engine. */
export const ENGINE_REDIRECT = 'https://app.example.com/back'

const HOOK_SECRET = `v1,whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** State of a user who signed in through the engine: the browser, and the official client of the engine. */
export interface EngineSignUp extends Awaited<ReturnType<typeof signInOfficially>> {
  browser: TestBrowser
  userId: string
  /** The id that the engine has for the user. */
  subject: string
}

/** The service beside a simulated Supabase Auth, whose access-token hook and consent page it is. */
export interface SupabaseApp extends AsyncDisposable {
  app: TestApp
  simulator: SupabaseSimulator
  /** Makes the next one the user at the engine, without a fault of the engine. */
  nextUser(): void
  /** Registers an app at the engine. */
  register(name: string): SimulatedClient
  /** Signs the user in here through the engine, and at the engine with its official client. */
  signUp(): Promise<EngineSignUp>
  /** An app begins: the browser is sent to the consent page with this authorization. */
  beginAuthorization(client: SimulatedClient, scope?: string): Promise<{ id: string; verifier: string }>
  /** The app asks the engine for tokens. */
  askToken(
    client: SimulatedClient,
    fields: Record<string, string>,
  ): Promise<{ status: number; body: Record<string, string> }>
}

/** Starts both. */
export async function startSupabaseApp(): Promise<SupabaseApp> {
  // The official client compares the expiry of tokens with the clock of the machine.
  const clock = buildManualClock(Date.now())
  const simulator = await startSupabaseSimulator(() => clock.now())
  const app = await createTestApp({
    clock,
    oauthHook: hookSecrets(HOOK_SECRET),
    env: {
      AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.com',
      RATE_LIMIT_STRICT_PER_MINUTE: '100000',
      IDENTITY_ENGINE: 'supabase',
      SUPABASE_URL: simulator.url,
      SOCIAL_GOOGLE_CLIENT_ID: 'on',
    },
  })
  await app.app.start()
  simulator.oauth.consentUrl = `${app.app.baseUrl()}/auth/oauth/engine`
  simulator.oauth.hook = { url: `${app.app.baseUrl()}/api/v3/oauth/hook/access-token`, secret: HOOK_SECRET }
  let users = 0
  return {
    app,
    simulator,
    nextUser: () => {
      users += 1
      simulator.fault = undefined
      simulator.user = { sub: `p-${users}`, email: `p-${users}@example.com`, isEmailVerified: true, name: 'Ada' }
    },
    register: (name) => simulator.oauth.register(ENGINE_REDIRECT, name),
    signUp: () => signUp(app, simulator),
    beginAuthorization: async (client, scope = 'openid email') => {
      const verifier = randomBytes(32).toString('base64url')
      const query = new URLSearchParams({
        client_id: client.client_id,
        redirect_uri: ENGINE_REDIRECT,
        response_type: 'code',
        scope,
        state: 'kept',
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
      })
      const answer = await fetch(`${simulator.url}/oauth/authorize?${query}`, { redirect: 'manual' })
      const id = new URL(answer.headers.get('location') ?? '').searchParams.get('authorization_id') ?? ''
      return { id, verifier }
    },
    askToken: async ({ client_id, client_secret }, fields) => {
      const body = new URLSearchParams({ client_id, client_secret, ...fields })
      const answer = await fetch(`${simulator.url}/oauth/token`, { method: 'POST', body })
      return { status: answer.status, body: (await answer.json()) as Record<string, string> }
    },
    [Symbol.asyncDispose]: async () => {
      await app.app.stop()
      await app[Symbol.asyncDispose]()
      await simulator[Symbol.asyncDispose]()
    },
  }
}

async function signUp(app: TestApp, simulator: SupabaseSimulator): Promise<EngineSignUp> {
  const browser = buildTestBrowser(app)
  const started = await browser.get(`${pathOf('google')}?redirect_url=${encodeURIComponent(WEB_APP)}`)
  const callback = await simulator.browse(String(started.headers.location))
  const done = await browser.get(localOf(callback).replace('/callback', '/callback-redirect'), 'application/json')
  if (done.status !== 200) throw new Error(`nobody signed in: ${JSON.stringify(done.body)}`)
  const { rows } = await app.database.pool.query<{ user: string; engine_subject: string }>(
    'select "user", engine_subject from identity where subject = $1',
    [simulator.user.sub],
  )
  const [row] = rows
  if (!row) throw new Error('nobody signed in')
  const official = await signInOfficially(simulator, ENGINE_REDIRECT)
  return { browser, userId: row.user, subject: row.engine_subject, ...official }
}
