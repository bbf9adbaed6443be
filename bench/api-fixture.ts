import { type ApiFixture, EVENT_TYPE } from './api-case.ts'
import { type Call, call, makeMany, signIn } from './api-client.ts'

const ACCOUNTS = 50
const CONTRACTS = 1_000

/**
 * Makes the rows of a comparison over the service's API: 50 accounts, the administrator as a member of the first three,
 * 1,000 contracts over all accounts, and the external event type. The session is opened last, so it has an account.
 */
export async function makeFixture(origin: string, adminPassword: string): Promise<Omit<ApiFixture, 'secrets'>> {
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
