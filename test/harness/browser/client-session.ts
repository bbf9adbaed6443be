import { buildIdMaker, type UserId } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import type { SessionClient } from '../../../src/identity/session/session.store.ts'
import { type IssuedSession, issueSession } from '../../../src/identity/session/session.ts'
import { inTransaction } from '../../../src/postgres/statement/database.ts'
import type { TestApp } from '../app/app.ts'
import { TEST_SECRETS } from '../app/test-secrets.ts'

/** The app of these tests. */
export const CLIENT_ID = 'client-of-a-test'

/** Opens a session of an app for a user, as an exchange does. */
export async function openClientSession(
  { app, database, clock }: TestApp,
  userId: UserId,
  client: Partial<SessionClient> & { scope: string },
): Promise<IssuedSession> {
  const keys = { secrets: TEST_SECRETS.sessionJwt, issuer: () => app.baseUrl() }
  const deps = { ids: buildIdMaker(clock, systemRandom), random: systemRandom, keys }
  const session = await inTransaction(database.db, (tx) =>
    issueSession(deps, tx, {
      userId,
      origin: { address: null, userAgent: 'an app' },
      client: { id: CLIENT_ID, grantId: null, ...client },
      now: new Date(clock.now()),
    }),
  )
  if (!session) throw new Error('the user of a test cannot sign in')
  return session
}
