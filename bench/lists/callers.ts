import { randomBytes } from 'node:crypto'
import { call, makeMany, signIn } from '../api-client.ts'
import type { Filled } from './population.ts'

/** The kinds of callers of a list. */
export const CALLERS = ['operator', 'member of one', 'member of 50', 'key of one', 'member of another'] as const
export type CallerName = (typeof CALLERS)[number]

/**
 * Makes the callers over the API and returns their tokens. The member of another account sees that of the others which holds
 * the most.
 */
export async function makeCallers(
  origin: string,
  adminPassword: string,
  { own, other }: Filled,
): Promise<Record<CallerName, string>> {
  const { jwt } = await signIn(origin, adminPassword)
  const { data } = await call(origin, { jwt, method: 'GET', path: '/api/v3/identity/role?page_size=200' })
  const roles = data as unknown as { document_id: string; name: string }[]
  const role = roles.find(({ name }) => name === 'account-admin')?.document_id
  const addMember = async (name: string, accounts: readonly string[]) => {
    const email = `${name}@bench.example`
    const password = randomBytes(12).toString('base64url')
    const user = await call(origin, { jwt, method: 'POST', path: '/api/v3/identity/user', body: { email, password } })
    const body = { user: user.data.document_id, roles: [role] }
    await makeMany(accounts.length, (index) =>
      call(origin, { jwt, method: 'POST', path: `/api/v3/identity/account/${accounts[index]}/member`, body }),
    )
    const path = '/api/v3/auth/login/local'
    const signedIn = await call(origin, { method: 'POST', path, body: { email, password } })
    return String(signedIn.data.jwt)
  }
  const [first = ''] = own
  const memberOfOne = await addMember('one', [first])
  const read = ['webhook', 'webhook-event', 'webhook-dispatch', 'contract', 'event-occurrence', 'account-member']
  const permissions = [...read.map((resource) => `${resource}:find-all`), 'webhook:dashboard']
  const body = { name: 'bench', account: first, permissions }
  const key = await call(origin, { jwt: memberOfOne, method: 'POST', path: '/api/v3/identity/api-key', body })
  return {
    operator: jwt,
    'member of one': memberOfOne,
    'member of 50': await addMember('fifty', own),
    'key of one': String(key.data.key),
    'member of another': await addMember('other', [other]),
  }
}
