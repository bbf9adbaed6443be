import { lineSchema, namedObject, nullable, TimestampSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import { EmailSchema, LinkTokenSchema, toUserRow, userMembers } from '../user.schema.ts'
import type { OwnUser } from './email-change.store.ts'

/** A change of the own address that waits for the use of a link. */
const EmailChangeRow = namedObject('EmailChange', {
  email: Type.String({ description: 'The new address.' }),
  is_new_confirmed: Type.Boolean({ description: 'Whether the link to the new address was used.' }),
  is_present_confirmed: Type.Boolean({ description: 'Whether the link to the present address was used.' }),
  created_at: TimestampSchema,
  expires_at: TimestampSchema,
})

/** The user of the token, with its open change of the address. */
export const OwnUserRow = namedObject('OwnUser', { ...userMembers, email_change: nullable(EmailChangeRow) })

export const UpdateOwnUserBody = namedObject('UpdateOwnUser', { name: nullable(lineSchema(200)) })

export const DeleteOwnUserBody = namedObject('DeleteOwnUser', {
  email: Type.String({ minLength: 1, maxLength: 320, description: "The user's own address, as confirmation." }),
})

export const RequestEmailChangeBody = namedObject('RequestEmailChange', { email: EmailSchema })

export const ConfirmEmailChangeBody = namedObject('ConfirmEmailChange', { token: LinkTokenSchema })

/** Maps the own user for the wire. */
export function toOwnUserRow({ emailChange, ...user }: OwnUser): Static<typeof OwnUserRow> {
  return {
    ...toUserRow(user),
    email_change: emailChange && {
      email: emailChange.newEmail,
      is_new_confirmed: emailChange.isNewConfirmed,
      is_present_confirmed: emailChange.isOldConfirmed,
      created_at: emailChange.askedAt.toISOString(),
      expires_at: emailChange.validUntil.toISOString(),
    },
  }
}
