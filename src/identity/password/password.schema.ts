import { Type } from '../../http/shape/schema-type.ts'
import { PASSWORD_LENGTH_LIMIT, PASSWORD_LENGTH_MIN } from './password.ts'

/**
 * A new password (docs/contract/sessions.md#password-rules). The bounds are those of the text as it comes: normalization
 * makes it shorter or longer, and `checkNewPassword` applies the rule to the result.
 */
export const NewPasswordSchema = Type.String({
  minLength: 1,
  maxLength: 1_024,
  description: `${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_LIMIT} characters after normalization (NFKC), stored as an Argon2id hash. Refused: common passwords, and those made of the name or e-mail address of the user or of the name of the service.`,
})
