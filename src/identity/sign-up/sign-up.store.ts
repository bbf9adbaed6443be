import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { hasOpenInvitation } from '../account/invitation/invitation.store.ts'
import { ADMIT_ADDRESS_PROOF, type NewAddressProof } from '../address-proof/address-proof.store.ts'
import type { ProofRefusal } from '../address-proof/address-proof.ts'
import { hasEmail } from '../user-record/user.store.ts'

/** What is known about the address of a sign-up. */
export interface SignUpAddress {
  /** Whether a user has it. */
  isKnown: boolean
  /** Whether an open invitation is for it. */
  isInvited: boolean
}

const KNOWN = `exists (select from "user" u where ${hasEmail('$email')}) as "isKnown"`
const INVITED = `${hasOpenInvitation('$email', '$now')} as "isInvited"`

const admit = countBehindLock<SignUpAddress & { refusal: ProofRefusal }, NewAddressProof>({
  counts: 'open sign-ups of an address and of a network',
  lock: 'addressProofs',
  by: 'admit_address_proof',
  adds: true,
  call: `select ${ADMIT_ADDRESS_PROOF} as refusal, ${KNOWN}, ${INVITED}`,
})

/** Counts and keeps a sign-up, and reads what its address is: one statement, the same for every address. */
export async function admitSignUp(
  db: Database,
  row: NewAddressProof,
): Promise<SignUpAddress & { refusal: ProofRefusal }> {
  const [admitted] = await admit(db, row)
  if (!admitted) throw new Error('the statement that admits a sign-up returns a row')
  return admitted
}

const describe = statement<SignUpAddress, { email: string; now: Date }>(`select ${KNOWN}, ${INVITED}`)

/** What is known about an address. */
export async function findSignUpAddress(db: Database, email: string, now: Date): Promise<SignUpAddress> {
  const [row] = await describe(db, { email, now })
  return row ?? { isKnown: true, isInvited: false }
}
