import type { UserId } from '../../../src/base/id.ts'
import { createTestApp, type TestAnswer, type TestApp, type TestAppOptions } from './app.ts'
import { accessClaims, headOf, type IssuerKey, signParts, startTestIssuer, type TestIssuer } from './token-issuer.ts'

export const BASE_URL = 'https://id.example.test'
export const EXCHANGE = '/api/v3/oauth/exchange'
export const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token'

/** The service with an issuer of access tokens, and what the tests of the exchange do with it. */
export interface ExchangeApp extends AsyncDisposable {
  app: TestApp
  issuer: TestIssuer
  /** A user in a new account. */
  signUp(): Promise<{ userId: UserId; account: string }>
  /** The claims of a genuine token of a user. A member that is undefined is left out. */
  claims(userId: UserId, change?: object): Record<string, unknown>
  /** A genuine token, or one with changed claims or header, or under another key. */
  mint(userId: UserId, change?: object, signing?: { header?: object; key?: IssuerKey }): string
  exchange(token: unknown): Promise<TestAnswer>
  exchangeForm(fields: Record<string, string> | string): Promise<TestAnswer>
  /** The audit entries of a request. */
  entriesOf(answer: TestAnswer): Promise<Record<string, unknown>[]>
  seconds(): number
}

/** Builds the service, without a limit that a suite of attacks would spend. */
export async function createExchangeApp(options: TestAppOptions & { issuer?: TestIssuer } = {}): Promise<ExchangeApp> {
  const issuer = options.issuer ?? (await startTestIssuer())
  const app = await createTestApp({
    loadProviderKeys: issuer.load,
    ...options,
    env: { BASE_URL, RATE_LIMIT_STRICT_PER_MINUTE: '1000000', ...options.env },
  })
  const seconds = () => Math.floor(app.clock.now() / 1000)
  const claims: ExchangeApp['claims'] = (userId, change = {}) => ({
    ...accessClaims({ baseUrl: BASE_URL, userId, seconds: seconds() }),
    ...change,
  })
  return {
    app,
    issuer,
    claims,
    signUp: async () => {
      const made = await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })
      const account = made.body.data.document_id
      const { userId } = await app.signInMember([account])
      return { userId, account }
    },
    mint: (userId, change = {}, { header = {}, key = issuer.key } = {}) =>
      signParts({ ...headOf(key), ...header }, claims(userId, change), key),
    exchange: (token) => app.anonymous('POST', EXCHANGE, { token }),
    exchangeForm: (fields) =>
      app.anonymous('POST', EXCHANGE, new URLSearchParams(fields).toString(), {
        'content-type': 'application/x-www-form-urlencoded',
      }),
    entriesOf: async ({ headers }) => {
      const text =
        'select action, outcome, "user", session, client_id, target, detail, count from audit_log where request_id = $1'
      return (await app.database.pool.query(text, [headers['x-request-id']])).rows
    },
    seconds,
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]()
      if (!options.issuer) await issuer[Symbol.asyncDispose]()
    },
  }
}
