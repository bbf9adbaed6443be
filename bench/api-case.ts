/** Signing secret of the tokens of a comparison. */
export interface IdentitySecrets {
  session: string
  handshake: string
}

/** Rows of a comparison on both sides, made over the service's API and copied. */
export interface ApiFixture {
  jwt: string
  userId: string
  sessionId: string
  accounts: string[]
  contracts: string[]
  /** Secret with which both sides sign and verify tokens. */
  secrets: IdentitySecrets
}

/** An HTTP request as the load generator sends it, to the service and to the bare server alike. */
export interface ApiRequest {
  method: 'GET' | 'PATCH' | 'POST'
  path: string
  headers: Record<string, string>
  body?: string
}

/** One comparison: the same requests to the service and to a bare route that does the least that gives this answer. */
export interface ApiCase {
  /** Work of the bare route. */
  bare: string
  /** The ratio of requests a second that the service must reach. */
  goal: number
  /** The one status that both sides must answer. */
  status: number
  /** Request number `n`; numbers are used once. */
  buildRequest(fixture: ApiFixture, n: number): ApiRequest
}

/** The external event type that `publish` sends. */
export const EVENT_TYPE = 'bench-order.create'

/** Requests under way at once, each on a connection of its own. */
export const CLIENTS = 16

const pick = (rows: readonly string[], n: number): string => rows[n % rows.length] ?? ''

function buildGet({ jwt }: ApiFixture, path: string): ApiRequest {
  return { method: 'GET', path, headers: { authorization: `Bearer ${jwt}` } }
}

function buildWrite(
  { jwt }: ApiFixture,
  request: { method: 'PATCH' | 'POST'; path: string; body: object; headers?: Record<string, string> },
): ApiRequest {
  const { method, path, body, headers } = request
  const content = { authorization: `Bearer ${jwt}`, 'content-type': 'application/json', ...headers }
  return { method, path, headers: content, body: JSON.stringify(body) }
}

/** The comparisons by name, in the order they run. */
export const API_CASES: Readonly<Record<string, ApiCase>> = {
  read: {
    bare: 'the one prepared select',
    goal: 0.6,
    status: 200,
    buildRequest: (fixture, n) => buildGet(fixture, `/api/v3/contract/contract/${pick(fixture.contracts, n)}`),
  },
  session: {
    bare: 'one prepared select over the same tables',
    goal: 0.6,
    status: 200,
    buildRequest: (fixture) => buildGet(fixture, '/api/v3/auth/session'),
  },
  list: {
    bare: 'the same prepared select of 21 rows',
    goal: 0.6,
    status: 200,
    buildRequest: (fixture) => buildGet(fixture, '/api/v3/contract/contract?page_size=20'),
  },
  change: {
    bare: 'begin, update, inserts of event, audit entry and key, commit',
    goal: 0.5,
    status: 200,
    buildRequest: (fixture, n) =>
      buildWrite(fixture, {
        method: 'PATCH',
        path: `/api/v3/contract/contract/${pick(fixture.contracts, n)}`,
        headers: { 'idempotency-key': `change-${n}` },
        body: { name: `Contract of round ${n}` },
      }),
  },
  publish: {
    bare: 'begin, insert of the event, commit',
    goal: 0.5,
    status: 202,
    buildRequest: (fixture, n) =>
      buildWrite(fixture, {
        method: 'POST',
        path: '/api/v3/webhook/publish',
        body: { event: EVENT_TYPE, account: pick(fixture.accounts, n), id: `order-${n}` },
      }),
  },
}
