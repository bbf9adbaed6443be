import type { Database } from '../../../postgres/statement/database.ts'
import { buildSampleClaims, type SamplePerson } from '../../engine/embedded/sample-person.ts'
import { updateUser } from '../../user-record/user.store.ts'
import { type PersonDeps, resolvePerson } from '../person/person.ts'

/**
 * Brings the database to what a sample person shows: somebody who has signed in before, somebody who was disabled. For the
 * development provider only; nobody is signed in.
 */
export async function prepareSampleUser(
  deps: PersonDeps,
  tx: Database,
  { person, now }: { person: SamplePerson; now: Date },
): Promise<void> {
  if (person.id !== 'returning' && person.id !== 'disabled') return
  const { sub: subject, name, email = null } = buildSampleClaims(person, '')
  const identity = { provider: 'dev', subject, email: email || null, isEmailVerified: true, name, avatarUrl: null }
  const resolved = await resolvePerson(deps, tx, { identity, trace: null, now })
  if (person.id === 'disabled' && resolved.kind === 'user')
    await updateUser(tx, resolved.user.id, { isActived: false, now })
}
