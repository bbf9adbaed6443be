import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'
import { hasOpenInvitation } from '../account/invitation/invitation.store.ts'
import { defineAdmission } from '../address-proof/address-proof.store.ts'
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

/** Counts and keeps a sign-up, and reads what its address is. */
export const admitSignUp = defineAdmission<SignUpAddress>('open sign-ups of an address and of a network', {
  reads: `${KNOWN}, ${INVITED}`,
})

const describe = statement<SignUpAddress, { email: string; now: Date }>(`select ${KNOWN}, ${INVITED}`)

/** What is known about an address. */
export async function findSignUpAddress(db: Database, email: string, now: Date): Promise<SignUpAddress> {
  const [row] = await describe(db, { email, now })
  return row ?? { isKnown: true, isInvited: false }
}
