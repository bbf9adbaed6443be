import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { lineSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, type TSchema, Type } from '../../../http/shape/schema-type.ts'

const bytes = (maxLength: number) => Type.String({ minLength: 1, maxLength, description: 'Base64url.' })

/** Browsers add members as WebAuthn grows. */
const open = { additionalProperties: true }

const COMMON = {
  id: bytes(2048),
  rawId: bytes(2048),
  type: Type.Literal('public-key'),
  clientExtensionResults: Type.Object({}, open),
}

/** Result of `PublicKeyCredential.toJSON()` for a new passkey (WebAuthn section 5.1). */
export const NewCredential = namedObject(
  'PasskeyRegistration',
  {
    ...COMMON,
    response: namedObject(
      'PasskeyRegistrationResponse',
      {
        clientDataJSON: bytes(8192),
        attestationObject: bytes(16_384),
        transports: Type.Optional(Type.Array(Type.String({ maxLength: 32 }), { maxItems: 10 })),
      },
      open,
    ),
  },
  open,
)

/** Result of `PublicKeyCredential.toJSON()` for a proof by a passkey. */
export const CredentialProof = namedObject(
  'PasskeyProof',
  {
    ...COMMON,
    response: namedObject(
      'PasskeyProofResponse',
      {
        clientDataJSON: bytes(8192),
        authenticatorData: bytes(8192),
        signature: bytes(8192),
        userHandle: Type.Optional(nullable(Type.String({ maxLength: 128 }))),
      },
      open,
    ),
  },
  open,
)

export const CreatePasskeyBody = namedObject('CreatePasskey', { name: lineSchema(100), credential: NewCredential })

export const PasskeyLoginBody = namedObject('PasskeyLogin', { credential: CredentialProof })

const optionsSchema = (name: string, text: string): TSchema =>
  namedObject(name, { options: Type.Object({}, { ...open, description: text }) })

export const CreationOptions = optionsSchema(
  'PasskeyCreationOptions',
  'For `PublicKeyCredential.parseCreationOptionsFromJSON`.',
)

export const RequestOptions = optionsSchema(
  'PasskeyRequestOptions',
  'For `PublicKeyCredential.parseRequestOptionsFromJSON`.',
)

/** A passkey as the API shows it. */
export const PasskeyRow = namedObject('Passkey', {
  document_id: UuidSchema,
  name: Type.String(),
  transports: Type.Array(Type.String()),
  is_backed_up: Type.Boolean({ description: 'Whether it is copied to other devices.' }),
  last_used_at: nullable(TimestampSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

export const CreatedPasskeyRow = namedObject('CreatedPasskey', {
  ...PasskeyRow.properties,
  recovery_codes: nullable(Type.Array(Type.String(), { description: 'Of the first factor; shown once.' })),
})

/** The proof of a checked body, as the library reads it. */
export function toAuthentication(credential: Static<typeof CredentialProof>): AuthenticationResponseJSON {
  const { userHandle, ...response } = credential.response
  return { ...credential, response: { ...response, ...(userHandle && { userHandle }) } }
}

/** The new passkey of a checked body, as the library reads it. */
export function toRegistration(credential: Static<typeof NewCredential>): RegistrationResponseJSON {
  return credential as RegistrationResponseJSON
}
