import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { type SignIn, signIn } from './sign-in-log.store.ts'

/** One sign-in attempt of a user. */
export const SignInRow = namedObject('SignIn', {
  document_id: UuidSchema,
  method: Type.String({
    description:
      'Method: `local` by password, `sign-up`, `mail` by link or code, `factor` the second step, `passkey`, `oauth` a provider, `code` a deep link.',
  }),
  outcome: enumSchema(['success', 'failure']),
  reason: nullable(Type.String({ description: 'Why it was refused; null for a success.' })),
  provider: nullable(Type.String({ description: 'The provider of the sign-in.' })),
  session: nullable(UuidSchema),
  address: nullable(Type.String()),
  request_id: nullable(Type.String()),
  count: Type.Integer({ description: 'Number of equal refusals of one minute that the entry stands for.' }),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

const toStoredRow = wireOf(signIn, SignInRow)

/** Maps an audit entry of a sign-in for the wire. */
export function toSignInRow(entry: SignIn): Static<typeof SignInRow> {
  const { action, outcome, reason, provider } = entry
  return {
    ...toStoredRow(entry),
    method: action.slice(action.indexOf('.') + 1),
    outcome: outcome === 'success' ? 'success' : 'failure',
    reason,
    provider,
    updated_at: entry.createdAt.toISOString(),
  }
}
