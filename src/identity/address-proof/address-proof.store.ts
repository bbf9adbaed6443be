import type { UserId } from '../../base/id.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { closingStatement, isAfter, rowStatement, soleRowStatement } from '../../postgres/statement/statement.ts'
import { hasOpenInvitation } from '../account/invitation/invitation.store.ts'
import { mailRoomOf } from '../mail/mail-room.ts'
import { hasEmail } from '../user-record/user.store.ts'

/**
 * A proof of an address, without the hash of its token. `browser` is a hash of the browser's id, null for the API; `userId`
 * and `codeHash` are of a sign-in, `userId` of one whose address a user has.
 */
const proof = defineRecord(
  'address_proof',
  ['purpose', 'email', 'user', 'code_hash', 'attempts', 'browser', 'redirect_url', 'next', 'expires_at', 'created_at'],
  { user: 'userId' },
)
export type AddressProof = RecordOf<typeof proof>

/** A presented token of a proof. */
export interface PresentedToken {
  tokenHash: Buffer
  purpose: AddressProof['purpose']
  now: Date
}

/** A new proof, with the limits that it is counted against. */
export interface NewAddressProof
  extends PresentedToken,
    Pick<AddressProof, 'email' | 'codeHash' | 'browser' | 'redirectUrl' | 'next' | 'expiresAt'> {
  network: Buffer
  wideNetwork: Buffer
  loginHash: Buffer | null
  /** Whether a user with this address has signed in with this browser: it is counted by itself. */
  isKnownBrowser: boolean
  addressLimit: number
  networkLimit: number
  wideNetworkLimit: number
  totalLimit: number
}

/** The exceeded limit; null when the proof is kept. */
export type ProofRefusal = 'address' | 'network' | 'total' | null

/** Result of counting a proof. */
interface Admission {
  refusal: ProofRefusal
  /** Whether the address may get the mail: those for a browser that its user knows are counted by themselves. */
  hasRoom: boolean
}

/** Facts about the address of a sign-up. */
export interface SignUpAddress {
  /** Whether a user has it. */
  isKnown: boolean
  /** Whether an open invitation is for it. */
  isInvited: boolean
}

/** The user who may sign in by mail with an address, and its address as it is spelled; null for none. */
export interface MailLoginUser {
  userId: UserId | null
  to: string | null
}

/**
 * Defines the statement that counts a proof and keeps it, and reads the columns `reads` about its address: one statement,
 * the same for every address. `holder` selects the id of the user that a sign-in is for.
 */
function defineAdmission<Read>(
  counts: string,
  { kind, holder = 'null::uuid', reads }: { kind: 'sign-up' | 'sign-in'; holder?: string; reads: string },
): (db: Database, row: NewAddressProof) => Promise<Read & Admission> {
  const admit = countBehindLock<Read & Admission, NewAddressProof>({
    counts,
    lock: 'addressProofs',
    by: 'admit_address_proof',
    adds: true,
    call: `
      select admit_address_proof($tokenHash, $purpose, $email, ${holder}, $loginHash, $codeHash, $network, $wideNetwork,
        $browser, $isKnownBrowser, $redirectUrl, $next, $expiresAt, $now, $addressLimit, $networkLimit,
        $wideNetworkLimit, $totalLimit) as refusal,
        $isKnownBrowser or ${mailRoomOf(kind, '$email')} > 0 as "hasRoom", ${reads}`,
  })
  return async (db, row) => {
    const [admitted] = await admit(db, row)
    if (!admitted) throw new Error('the statement that admits a proof of an address returns a row')
    return admitted
  }
}

const OF_SIGN_UP = `
  exists (select from "user" u where ${hasEmail('$email')}) as "isKnown",
  ${hasOpenInvitation('$email', '$now')} as "isInvited"`

/** Counts and keeps a sign-up, and reads the facts about its address. */
export const admitSignUp = defineAdmission<SignUpAddress>('open sign-ups', {
  kind: 'sign-up',
  reads: OF_SIGN_UP,
})

/** Facts about the address of a sign-up. */
export const describeSignUpAddress = soleRowStatement<SignUpAddress, { email: string; now: Date }>(
  `select ${OF_SIGN_UP}`,
)

/**
 * The creator of a user may have set a password and wait for the owner of the address to prove it: such a user
 * gets no mail (docs/contract/sessions.md#sign-in-by-mail).
 */
const ofMailedUser = (column: string) => `
  (select u.${column} from "user" u
    where ${hasEmail('$email')} and u.is_actived and (u.email_verified_at is not null or u.password_hash is null))`

/** Counts and keeps a sign-in by mail, with its user, if any. */
export const admitMailLogin = defineAdmission<MailLoginUser>('open sign-ins by mail', {
  kind: 'sign-in',
  holder: ofMailedUser('document_id'),
  reads: `${ofMailedUser('document_id')} as "userId", ${ofMailedUser('email')} as "to"`,
})

/** The open proof of a token. */
export const findAddressProof = rowStatement<AddressProof, PresentedToken>(`
  select ${proof.members('p')} from address_proof p
  where p.token_hash = $tokenHash and p.purpose = $purpose and ${isAfter('p.expires_at', '$now')}`)

/** The open sign-in by mail of the id that its client holds. */
export const findMailLogin = rowStatement<AddressProof, { loginHash: Buffer; now: Date }>(`
  select ${proof.members('p')} from address_proof p
  where p.login_hash = $loginHash and ${isAfter('p.expires_at', '$now')}`)

/** A sign-in by mail that is being used: by the token of its link, or by the id of its client, the other being null. */
export interface TriedMailLogin {
  tokenHash: Buffer | null
  loginHash: Buffer | null
  now: Date
}

/** Locks an open sign-in by mail behind its user, and counts an attempt by its id. The count includes this attempt. */
export const tryMailLogin = rowStatement<AddressProof, TriedMailLogin>(
  `select ${proof.members('p')} from try_mail_login($tokenHash, $loginHash, $now) p`,
)

/** Deletes every open sign-in by mail of a locked user, with the last statement of the transaction. */
export const endMailLogins = closingStatement<{ userId: UserId }>(
  'used_mail_logins as (delete from address_proof where "user" = $userId)',
)

/**
 * Spends the proof of a token, with every other one of its address and purpose. Undefined when it is unknown, used or
 * expired: of two concurrent uses one succeeds. All proofs of the address are deleted at once, in the order of the
 * locks of their rows.
 */
export const takeAddressProof = rowStatement<AddressProof, PresentedToken>(`
  with asked as materialized (
    select email_key(p.email) as key from address_proof p
    where p.token_hash = $tokenHash and p.purpose = $purpose and ${isAfter('p.expires_at', '$now')}
  ), gone as (
    delete from address_proof where token_hash = any(array(
      select x.token_hash from asked a cross join lateral (
        select p.token_hash from address_proof p where email_key(p.email) = a.key and p.purpose = $purpose
        order by p.token_hash offset 0 for update) x))
    returning *
  )
  select ${proof.members('g')} from gone g where g.token_hash = $tokenHash`)

/** Deletes up to `limit` proofs that expired before `before`. Returns their number. For maintenance. */
export const deleteExpiredAddressProofs = deletionOfOld('address_proof', { key: 'token_hash', time: 'expires_at' })
