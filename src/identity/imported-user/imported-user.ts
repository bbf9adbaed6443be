import type { IdMaker, UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { totpContextOf } from '../sign-in/second-factor/second-factor.ts'
import { foldEmail } from '../user-record/email-key.ts'
import {
  findKnownOfImport,
  type IdentityKey,
  identityKeyOf,
  insertImportedUsers,
  type KnownOfImport,
  lockIdentitiesOf,
  type NewImportedUser,
} from './imported-user.store.ts'

/** A user of another system to create here (docs/contract/identity.md#imported-users). */
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
 * Outcome for a user. `already`: its id exists, also deleted, from an earlier import. `email_taken`: another
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

/** Outcome of an import for each of these users, in their order, but for passkeys. Changes nothing. */
export async function previewImport(db: Database, users: readonly ImportedUser[]): Promise<ImportOutcome[]> {
  const rows = users.map(toPreview)
  return decideImport(rows, await findKnownOfImport(db, rows)).map(({ kind, left }) =>
    kind === 'create' ? { kind: 'created', left: { providers: left, passkeys: 0 } } : { kind },
  )
}

/** Imports users, with the role `member` and without a mail. One of an earlier import is unchanged. In their order. */
export async function importUsers(
  deps: ImportDeps,
  tx: Database,
  { users, now }: { users: readonly ImportedUser[]; now: Date },
): Promise<ImportOutcome[]> {
  const rows = users.map((user) => seal(deps, user))
  await lockIdentitiesOf(tx, rows)
  const decisions = decideImport(rows, await findKnownOfImport(tx, rows))
  const fresh = decisions.flatMap(({ kind, row }) => (kind === 'create' ? [row] : []))
  const inserted = fresh.length > 0 ? await insertImportedUsers(tx, fresh, now) : undefined
  return decisions.map(({ kind, row, left }, at) => {
    if (kind !== 'create') return { kind }
    // A user has signed up with the address since the look-up.
    if (!inserted?.ids.has(row.id)) return { kind: 'email_taken' }
    const kept = row.passkeys.filter(({ credentialId }) => inserted.credentialIds.has(credentialId))
    const asked = rows[at]?.passkeys.length ?? 0
    return { kind: 'created', left: { providers: left, passkeys: asked - kept.length } }
  })
}

/** A user as it is inserted. `left`: the providers whose identity another user has. */
interface Decision {
  kind: 'create' | 'already' | 'email_taken'
  row: NewImportedUser
  left: string[]
}

/** Of two rows with one address, identity or passkey, the first has it. Pure. */
function decideImport(rows: readonly NewImportedUser[], known: KnownOfImport): Decision[] {
  const ids = new Set(known.ids)
  const emails = new Set(known.emails)
  const identities = new Set(known.identities)
  const passkeys = new Set<string>()
  return rows.map((row) => {
    const email = foldEmail(row.email)
    if (ids.has(row.id)) return { kind: 'already', row, left: [] }
    if (emails.has(email)) return { kind: 'email_taken', row, left: [] }
    ids.add(row.id)
    emails.add(email)
    const take = (taken: Set<string>, key: string) => !taken.has(key) && taken.add(key) !== undefined
    const kept = row.identities.filter((identity) => take(identities, identityKeyOf(identity)))
    const left = row.identities.filter((identity) => !kept.includes(identity)).map(({ provider }) => provider)
    const own = row.passkeys.filter(({ credentialId }) => take(passkeys, credentialId))
    return { kind: 'create', row: { ...row, identities: kept, passkeys: own }, left }
  })
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
