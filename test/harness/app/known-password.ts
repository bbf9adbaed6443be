import type { TestApp } from './app.ts'
import { testPasswords } from './small-hash.ts'

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
    await testPasswords.hash(password),
  ])
  return id
}
