import type { IdMaker, UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { totpContextOf } from '../sign-in/second-factor/second-factor.ts'
import { foldEmail } from '../user-record/email-key.ts'
import {
  findKnownOfImport,
  type IdentityKey,
  type InsertedOfImport,
  identityKeyOf,
  insertImportedUsers,
  type KnownOfImport,
  lockIdentitiesOf,
  type NewImportedUser,
} from './imported-user.store.ts'

/** A user of another system, as it is to be here (docs/contract/identity.md#imported-users). */
export interface ImportedUser {
  id: UserId
  email: string
  emailVerifiedAt: Date | null
  name: string | null
  /** The stored form of `storeForeignHash`; null without a password. */
  passwordHash: string | null
  isActived: boolean
  identities: readonly (IdentityKey & { email: string | null; isEmailVerified: boolean; name: string | null })[]
  /** The secret of an authenticator app: HMAC-SHA1, six digits, 30 seconds. */
  totpSecret: Buffer | null
  passkeys: readonly Omit<NewImportedUser['passkeys'][number], 'id'>[]
}

/**
 * What became of a user. `already`: its id is there, of an earlier import, deleted ones among them. `email_taken`: another
 * user has its address, and nothing was made. Of a `created` one, `left` has the identities and passkeys that another
 * user has.
 */
export type ImportOutcome =
  | { kind: 'already' | 'email_taken' }
  | { kind: 'created'; left: { providers: readonly string[]; passkeys: number } }

interface ImportDeps {
  ids: IdMaker
  keyring: Keyring
}

/** What an import of these users would make of each, in their order. Changes nothing. */
export async function previewImport(db: Database, users: readonly ImportedUser[]): Promise<ImportOutcome[]> {
  const known = await findKnownOfImport(db, users.map(toPreview))
  return decideImport(users, known).map((decision, at) => {
    if (decision !== 'create') return { kind: decision }
    const { identities } = users[at] as ImportedUser
    const taken = identities.filter((identity) => known.identities.has(identityKeyOf(identity)))
    return { kind: 'created', left: { providers: taken.map(({ provider }) => provider), passkeys: 0 } }
  })
}

/**
 * Imports users, in the caller's transaction, with the role `member`. A user of an earlier import is left as it is. Nobody
 * is mailed. Returns what became of each, in their order.
 */
export async function importUsers(
  deps: ImportDeps,
  tx: Database,
  { users, now }: { users: readonly ImportedUser[]; now: Date },
): Promise<ImportOutcome[]> {
  const rows = users.map((user) => seal(deps, user))
  await lockIdentitiesOf(tx, rows)
  const known = await findKnownOfImport(tx, rows)
  const decisions = decideImport(users, known)
  const fresh = rows.filter((_, at) => decisions[at] === 'create')
  const inserted = fresh.length > 0 ? await insertImportedUsers(tx, fresh, now) : undefined
  return decisions.map((decision, at) => {
    if (decision !== 'create') return { kind: decision }
    return describe(rows[at] as NewImportedUser, inserted)
  })
}

type Decision = 'create' | 'already' | 'email_taken'

/** Of two with one address in `users`, the first has it. Pure. */
function decideImport(users: readonly ImportedUser[], known: KnownOfImport): Decision[] {
  const ids = new Set(known.ids)
  const emails = new Set(known.emails)
  return users.map(({ id, email }) => {
    const key = foldEmail(email)
    if (ids.has(id)) return 'already'
    if (emails.has(key)) return 'email_taken'
    ids.add(id)
    emails.add(key)
    return 'create'
  })
}

function describe(row: NewImportedUser, inserted: InsertedOfImport | undefined): ImportOutcome {
  // Somebody signed up with the address since it was looked up.
  if (!inserted?.ids.has(row.id)) return { kind: 'email_taken' }
  const left = row.identities.filter((identity) => !inserted.identities.has(identityKeyOf(identity)))
  const passkeys = row.passkeys.filter(({ credentialId }) => !inserted.credentialIds.has(credentialId))
  return { kind: 'created', left: { providers: left.map(({ provider }) => provider), passkeys: passkeys.length } }
}

function seal({ ids, keyring }: ImportDeps, user: ImportedUser): NewImportedUser {
  const { totpSecret, ...row } = user
  const totpId = ids.next<'totp factor'>()
  return {
    ...row,
    identities: user.identities.map((identity) => ({ ...identity, id: ids.next<'identity'>() })),
    totp: totpSecret && {
      id: totpId,
      secretEncrypted: keyring.seal(totpSecret.toString('base64url'), totpContextOf(totpId)),
    },
    passkeys: user.passkeys.map((passkey) => ({ ...passkey, id: ids.next<'passkey'>() })),
  }
}

const toPreview = (user: ImportedUser): NewImportedUser => ({
  ...user,
  identities: user.identities.map((identity) => ({ ...identity, id: '' })),
  totp: null,
  passkeys: [],
})
