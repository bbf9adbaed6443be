import { request } from 'undici'
import { type ApiFixture, EVENT_TYPE } from './api-case.ts'

const ACCOUNTS = 50
const CONTRACTS = 1_000
const WRITERS = 8

/** The first administrator's address when SIGNALBOX_ADMIN_EMAIL is not set. */
const ADMIN_EMAIL = 'admin@signalbox.localhost'

interface Answer {
  headers: Record<string, string | string[] | undefined>
  data: Record<string, unknown>
}

interface Call {
  jwt?: string
  method: 'GET' | 'POST' | 'PATCH'
  path: string
  body?: object
  headers?: Record<string, string>
}

/** Calls the service and reads its answer. Throws with the body when the status is no 2xx. */
async function call(origin: string, { jwt, method, path, body, headers }: Call): Promise<Answer> {
  const response = await request(`${origin}${path}`, {
    method,
    headers: {
      ...(jwt !== undefined && { authorization: `Bearer ${jwt}` }),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body ? JSON.stringify(body) : null,
  })
  const text = await response.body.text()
  if (response.statusCode >= 300) throw new Error(`${method} ${path} answered ${response.statusCode}: ${text}`)
  return { headers: response.headers, data: (JSON.parse(text) as { data: Record<string, unknown> }).data }
}

/** Makes `count` things, some at once. The results keep the order of their numbers. */
async function makeMany<Made>(count: number, make: (index: number) => Promise<Made>): Promise<Made[]> {
  const made: Made[] = []
  let next = 0
  const writer = async () => {
    for (let index = next++; index < count; index = next++) made[index] = await make(index)
  }
  await Promise.all(Array.from({ length: WRITERS }, writer))
  return made
}

async function signIn(origin: string, password: string): Promise<Pick<ApiFixture, 'jwt' | 'userId' | 'sessionId'>> {
  const body = { email: ADMIN_EMAIL, password }
  const signedIn = await call(origin, { method: 'POST', path: '/api/v3/auth/login/local', body })
  const jwt = String(signedIn.data.jwt)
  const { data } = await call(origin, { jwt, method: 'GET', path: '/api/v3/auth/session' })
  const idOf = (row: unknown) => (row as { document_id: string }).document_id
  return { jwt, userId: idOf(data.user), sessionId: idOf(data.session) }
}

/**
 * Makes the rows of a comparison over the service's API: 50 accounts, the administrator as a member of the first three,
 * 1,000 contracts over all accounts, and the external event type. The session is opened last, so it has an account.
 */
export async function makeFixture(origin: string, adminPassword: string): Promise<ApiFixture> {
  const { jwt, userId } = await signIn(origin, adminPassword)
  const post = async (path: string, body: object) => {
    const { data } = await call(origin, { jwt, method: 'POST', path, body })
    return String(data.document_id)
  }
  const accounts = await makeMany(ACCOUNTS, (index) =>
    post('/api/v3/identity/account', { name: `Account number ${index}` }),
  )
  for (const account of accounts.slice(0, 3)) await post(`/api/v3/identity/account/${account}/member`, { user: userId })
  const contracts = await makeMany(CONTRACTS, (index) =>
    post('/api/v3/contract/contract', { account: accounts[index % ACCOUNTS], name: `Contract number ${index}` }),
  )
  await post('/api/v3/webhook/event', { internal: EVENT_TYPE, account_scope: 'account' })
  return { ...(await signIn(origin, adminPassword)), accounts, contracts }
}

/** Whether the service keeps the answer of a `PATCH` under its `Idempotency-Key`. */
export async function keepsIdempotencyKeys(origin: string, { jwt, contracts }: ApiFixture): Promise<boolean> {
  const change: Call = {
    jwt,
    method: 'PATCH',
    path: `/api/v3/contract/contract/${contracts[0]}`,
    body: { name: 'Contract changed twice' },
    headers: { 'idempotency-key': 'asked-twice' },
  }
  await call(origin, change)
  const again = await call(origin, change)
  return again.headers['idempotency-replayed'] === 'true'
}
