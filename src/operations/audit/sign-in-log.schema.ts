import { enumSchema, named, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import type { SignInColumns } from './sign-in-log.store.ts'

/** One try of a user to sign in. */
export const SignInRow = named(
  'SignIn',
  Type.Object({
    document_id: UuidSchema,
    method: Type.String({
      description:
        'How: `local` by password, `factor` the second step, `passkey`, `oauth` a provider, `code` a deep link.',
    }),
    outcome: enumSchema(['success', 'failure']),
    reason: nullable(Type.String({ description: 'Why it was refused; null for a success.' })),
    provider: nullable(Type.String({ description: 'The provider of the sign-in.' })),
    session: nullable(UuidSchema),
    address: nullable(Type.String()),
    request_id: nullable(Type.String()),
    count: Type.Integer({ description: 'How many equal refusals of one minute the entry stands for.' }),
    created_at: TimestampSchema,
    updated_at: TimestampSchema,
  }),
)

/** Maps an audit entry of a sign-in for the wire. */
export function toSignInRow(row: SignInColumns): Static<typeof SignInRow> {
  const at = row.created_at.toISOString()
  return {
    document_id: row.document_id,
    method: row.action.slice(row.action.indexOf('.') + 1),
    outcome: row.outcome === 'success' ? 'success' : 'failure',
    reason: row.reason,
    provider: row.provider,
    session: row.session,
    address: row.address,
    request_id: row.request_id,
    count: row.count,
    created_at: at,
    updated_at: at,
  }
}
