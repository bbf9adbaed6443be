import type { Database } from '../../../postgres/statement/database.ts'
import { buildSampleClaims, type SampleUser } from '../../engine/embedded/sample-user.ts'
import { updateUser } from '../../user-record/user.store.ts'
import { resolveUser, type UserDeps } from '../user/user.ts'

/** Prepares the database for a returning or a disabled sample user, in development. Signs no user in. */
export async function prepareSampleUser(
  deps: UserDeps,
  tx: Database,
  { user, now }: { user: SampleUser; now: Date },
): Promise<void> {
  if (user.id !== 'returning' && user.id !== 'disabled') return
  const { sub: subject, name, email = null } = buildSampleClaims(user, '')
  const identity = { provider: 'dev', subject, email: email || null, isEmailVerified: true, name, avatarUrl: null }
  const resolved = await resolveUser(deps, tx, { identity, trace: null, now })
  if (user.id === 'disabled' && resolved.kind === 'user')
    await updateUser(tx, resolved.user.id, { isActived: false, now })
}
