import { Problem } from '../../http/problem/problem.ts'
import { checkImportedSecret } from '../../webhook/registry/imported-secret.ts'

const PREFIX = 'whsec_'

/** A secret for a webhook here, or the reason for none. `isKept`: the receiver's text is the same. */
export type SecretForm = { ok: true; secret: string; isKept: boolean } | { ok: false; why: string }

/**
 * The secret of an endpoint in the form of a webhook here (docs/contract/webhooks.md#secret-of-a-known-value). A Standard Webhooks
 * secret stays as it is; any other text becomes `whsec_` and the base64 of its UTF-8 bytes, which keys the same HMAC. The reason
 * has no part of it. Pure.
 */
export function toSecretForm(given: string | undefined): SecretForm {
  if (given === undefined) return { ok: false, why: 'the source does not show it' }
  if (given.startsWith('whsk_')) return { ok: false, why: 'it is the private key of an asymmetric signature' }
  const standard = toStandardSecret(given)
  const secret = standard ?? `${PREFIX}${Buffer.from(given, 'utf8').toString('base64')}`
  try {
    checkImportedSecret(secret)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return { ok: false, why: error.errors?.[0]?.code === 'weak' ? 'it is weak' : 'it has not 24 to 64 bytes' }
  }
  return { ok: true, secret, isKept: standard !== undefined }
}

/** `whsec_` and base64, with the padding that some systems leave out; undefined for any other text. */
function toStandardSecret(given: string): string | undefined {
  if (!given.startsWith(PREFIX)) return undefined
  const text = given.slice(PREFIX.length).replace(/=+$/, '')
  const encoded = Buffer.from(text, 'base64').toString('base64')
  return encoded.replace(/=+$/, '') === text ? `${PREFIX}${encoded}` : undefined
}
