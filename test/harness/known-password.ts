import { systemRandom } from '../../src/random.ts'
import { hashPassword } from '../../src/sign-in/password.ts'
import type { TestApp } from './app.ts'

const hashes = new Map<string, Promise<string>>()

/** The stored form of a password, computed once in each process of tests: one takes 40 ms of a processor. */
export function hashOnce(password: string): Promise<string> {
  const known = hashes.get(password) ?? hashPassword(password, systemRandom)
  hashes.set(password, known)
  return known
}

/** Creates a user through the API, who then has this password. Returns its id. */
export async function createUserWithPassword(
  app: Pick<TestApp, 'admin' | 'database'>,
  user: { email: string; name?: string; [member: string]: unknown },
  password: string,
): Promise<string> {
  const created = await app.admin('POST', '/api/v3/identity/user', user)
  if (created.status !== 201) throw new Error(`the user was not created: ${JSON.stringify(created.body)}`)
  const id = created.body.data.document_id as string
  await app.database.pool.query('update "user" set password_hash = $2 where document_id = $1', [
    id,
    await hashOnce(password),
  ])
  return id
}
