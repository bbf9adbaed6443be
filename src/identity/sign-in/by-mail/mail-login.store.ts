import type { UserId } from '../../../base/id.ts'
import { defineAdmission } from '../../address-proof/address-proof.store.ts'
import { hasEmail } from '../../user-record/user.store.ts'

/** The active user who has the address of a sign-in by mail, and its address as it is spelled; null for none. */
export interface MailLoginUser {
  userId: UserId | null
  to: string | null
}

const read = (column: string) => `(select u.${column} from "user" u where ${hasEmail('$email')} and u.is_actived)`

/** Counts and keeps a sign-in by mail, with its user, if any. */
export const admitMailLogin = defineAdmission<MailLoginUser>('open sign-ins by mail of an address and of a network', {
  holder: read('document_id'),
  reads: `${read('document_id')} as "userId", ${read('email')} as "to"`,
})
