import { Type } from '../../http/shape/schema-type.ts'
import { PASSWORD_LENGTH_LIMIT, PASSWORD_LENGTH_MIN } from './password.ts'

/** A new password (docs/contract/sessions.md#password-rules). */
export const NewPasswordSchema = Type.String({
  minLength: PASSWORD_LENGTH_MIN,
  maxLength: PASSWORD_LENGTH_LIMIT,
  description:
    'Stored as an Argon2id hash. Refused: common passwords, and those made of the name or e-mail address of the user or of the name of the service.',
})
