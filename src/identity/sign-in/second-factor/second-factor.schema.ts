import { namedObject, nullable, TimestampSchema, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import { CredentialProof } from '../passkey/passkey.schema.ts'
import type { FactorCount } from './second-factor.store.ts'
import type { TotpFactor } from './totp-factor.store.ts'
import type { EnrolledTotp } from './totp-factor.ts'

const CodeSchema = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'Six digits of an authenticator app, or a recovery code.',
})

/** The challenge of a `second_factor_required`. */
export const ChallengeSchema = Type.String({
  minLength: 1,
  maxLength: 255,
  description: 'The challenge of `second_factor_required`.',
})

export const CodeBody = namedObject('FactorCode', { code: CodeSchema })

/** A proof of a second factor. */
export const ProofBody = namedObject(
  'FactorProof',
  { code: Type.Optional(CodeSchema), credential: Type.Optional(CredentialProof) },
  { description: 'Either a code, or the answer of the browser for a passkey.' },
)

const RecoveryCodesSchema = Type.Array(Type.String({ description: '`xxxx-xxxx-xxxx-xxxx`' }))

const TotpRow = namedObject('AuthenticatorApp', {
  document_id: UuidSchema,
  is_confirmed: Type.Boolean({ description: 'Only a confirmed app is a factor.' }),
  last_used_at: nullable(TimestampSchema),
  created_at: TimestampSchema,
})

/** The second factors of a user. */
export const FactorsRow = namedObject('SecondFactors', {
  totp: nullable(TotpRow),
  passkeys: Type.Integer({ description: 'How many passkeys the user has.' }),
  recovery_codes: Type.Integer({ description: 'Recovery codes that were not used.' }),
})

/** An authenticator app with its secret. */
export const EnrolledTotpRow = namedObject('EnrolledAuthenticatorApp', {
  document_id: UuidSchema,
  secret: Type.String({ description: 'Base32, to be typed into the app.' }),
  otpauth_url: Type.String({ description: 'The same for a QR code.' }),
})

/** A confirmed app. */
export const ConfirmedTotpRow = namedObject('ConfirmedAuthenticatorApp', {
  document_id: UuidSchema,
  recovery_codes: nullable(RecoveryCodesSchema),
})

export const RecoveryCodesRow = namedObject('RecoveryCodes', { recovery_codes: RecoveryCodesSchema })

export const RemovedFactorRow = namedObject('RemovedFactor', { document_id: UuidSchema })

/** Maps the factors of a user for the wire. */
export function toFactorsRow(factor: TotpFactor | undefined, count: FactorCount): Static<typeof FactorsRow> {
  return {
    totp: factor
      ? {
          document_id: factor.id,
          is_confirmed: factor.confirmedAt !== null,
          last_used_at: factor.lastUsedAt?.toISOString() ?? null,
          created_at: factor.createdAt.toISOString(),
        }
      : null,
    passkeys: count.passkeys,
    recovery_codes: count.recoveryCodes,
  }
}

/** Maps an enrolled app for the wire. */
export function toEnrolledTotpRow({ factor, secret, otpauthUrl }: EnrolledTotp): Static<typeof EnrolledTotpRow> {
  return { document_id: factor.id, secret, otpauth_url: otpauthUrl }
}
