import { decodeBase64 } from './base64.ts'
import type { SymmetricFamily } from './signed-claim.ts'
import { WebhookVerificationError } from './verification-error.ts'

/**
 * One secret, or several during a rotation: any of them may have signed. The type allows `undefined`, so that environment
 * variables can be passed directly: unset ones are left out, and without any the delivery is refused as `secret_missing`.
 */
export type SecretInput = string | undefined | readonly (string | undefined)[]

/** The HMAC keys of one secret. They differ by family, so a signature of one family is not valid for the other. */
export type SecretKeys = Readonly<Record<SymmetricFamily, Uint8Array<ArrayBuffer>>>

/** More secrets than this are refused: each costs up to `MAX_SIGNATURES` HMACs. */
const MAX_SECRETS = 8

const PREFIX = 'whsec_'

/**
 * Parses the secrets (docs/contract/webhooks.md#signature): `whsec_` and base64 of 24 to 64 bytes (Signalbox generates 32;
 * the bounds are those of the Standard Webhooks specification). Throws `secret_missing`, `secret_malformed`; no message
 * contains a part of a secret.
 */
export function readSecrets(input: SecretInput): readonly SecretKeys[] {
  const listed: readonly unknown[] = Array.isArray(input) ? input : [input]
  const secrets = listed.filter((secret) => secret !== undefined && secret !== null && secret !== '')
  if (secrets.length === 0) throw new WebhookVerificationError('secret_missing', 'The secret is empty or not set.')
  if (secrets.length > MAX_SECRETS) {
    throw new WebhookVerificationError('secret_malformed', `More than ${MAX_SECRETS} secrets were passed.`)
  }
  return secrets.map(readSecret)
}

function readSecret(secret: unknown): SecretKeys {
  if (typeof secret !== 'string') throw new WebhookVerificationError('secret_malformed', 'The secret is not a string.')
  if (!secret.startsWith(PREFIX)) {
    throw new WebhookVerificationError('secret_malformed', `The secret does not begin with "${PREFIX}".`)
  }
  const decoded = decodeBase64(secret.slice(PREFIX.length))
  if (!decoded) throw new WebhookVerificationError('secret_malformed', 'What follows "whsec_" is not base64.')
  if (decoded.length < 24 || decoded.length > 64) {
    throw new WebhookVerificationError('secret_malformed', 'The secret is cut short or too long.')
  }
  return { 'service-signature': new TextEncoder().encode(secret), 'standard-webhooks': decoded }
}
