import { findHeaderValue, type HeadersInput } from './header-value.ts'
import { hasAsymmetricSignature, type KeySource, type PublicKeyInput, readPublicKeys } from './public-key.ts'
import { buildSignedBytes, type RawBody, readRawBody } from './raw-body.ts'
import { readSecrets, type SecretInput, type SecretKeys } from './secret.ts'
import { parseServiceSignature, SERVICE_SIGNATURE_HEADER } from './service-signature.ts'
import type { SignatureFamily, SignedClaim, SymmetricFamily } from './signed-claim.ts'
import { parseStandardSignature, STANDARD_SIGNATURE_HEADER } from './standard-signature.ts'
import { WebhookVerificationError } from './verification-error.ts'

/** Tolerance of `t` in seconds, past and future: 300 is accepted, 301 is refused. A constant of the contract. */
export const TOLERANCE_SECONDS = 300

/**
 * The required HMAC signatures of a delivery. `either` (the default): at least one family, and every present family must
 * be valid. `both`: both families. A family's name: that one; the other is ignored.
 */
export type SignatureRequirement = 'either' | 'both' | SymmetricFamily

/**
 * The keys of a webhook. A secret verifies the HMAC signatures, a public key the asymmetric one, which must then be there.
 * With both, both must be valid. Each that is passed must be set: a variable that is not set never drops a check.
 */
export type VerificationKeys =
  | {
      /** `whsec_...`, or several during a rotation. */
      readonly secret: SecretInput
      readonly publicKey?: PublicKeyInput
    }
  | {
      /** `whpk_...`, several during a rotation, or a key set (`createKeySet`). */
      readonly publicKey: PublicKeyInput
    }

export type VerificationInput = VerificationKeys & {
  /** The headers of the request, all of them. */
  readonly headers: HeadersInput
  /** The unparsed body. */
  readonly body: RawBody
  readonly require?: SignatureRequirement | undefined
  /** The time now in milliseconds since the Unix epoch; `Date.now` unless a test passes its own. */
  readonly now?: (() => number) | undefined
}

/** A verified body. */
export type VerifiedBody = {
  readonly text: string
  /** The families that were verified. */
  readonly families: readonly SignatureFamily[]
}

/**
 * Verifies signature and age, and decodes the body. Throws `WebhookVerificationError`.
 *
 * Every present family must be valid under the same secret (unless `require` names one). With "the first that verifies", a
 * forged `webhook-id` could accompany a genuine `x-service-signature`. Removing the headers of one family is useless for
 * an attacker: the other must still be valid, and both are HMAC-SHA256 under the same secret. The asymmetric signature is
 * required whenever a public key is passed.
 */
export async function verifySignature(input: VerificationInput): Promise<VerifiedBody> {
  const { secrets, publicKeys } = readKeys(input)
  const body = readRawBody(input.body)
  const claims = secrets ? readClaims(input.headers, input.require ?? 'either') : []
  const asymmetric = publicKeys && parseStandardSignature(input.headers, 'v1a')
  const all = [...claims, ...(asymmetric ? [asymmetric] : [])]
  const nowSeconds = Math.floor((input.now ?? Date.now)() / 1000)
  for (const claim of all) checkAge(claim, nowSeconds)
  const isSigned =
    (!secrets || (await isSignedByAny(claims, secrets, body))) &&
    (!publicKeys || (await isSignedByListed(asymmetric as SignedClaim, publicKeys, body)))
  if (!isSigned) {
    const finding = body.length === 0 ? 'The body is empty and no signature matches it.' : 'No signature matches.'
    throw new WebhookVerificationError('signature_mismatch', finding)
  }
  return { text: decodeUtf8(body), families: all.map((claim) => claim.family) }
}

/**
 * Reads the keys that are passed. Throws `secret_missing`, `secret_malformed`, `public_key_missing`,
 * `public_key_malformed`.
 */
export function readKeys(input: object): { secrets?: readonly SecretKeys[]; publicKeys?: KeySource } {
  const { secret, publicKey } = input as { secret?: SecretInput; publicKey?: PublicKeyInput }
  const hasPublicKey = 'publicKey' in input
  return {
    ...((!hasPublicKey || 'secret' in input) && { secrets: readSecrets(secret) }),
    ...(hasPublicKey && { publicKeys: readPublicKeys(publicKey) }),
  }
}

/** Whether the asymmetric signature is valid under the present keys, or under those after a rotation. */
async function isSignedByListed(claim: SignedClaim, publicKeys: KeySource, body: Uint8Array): Promise<boolean> {
  const bytes = buildSignedBytes(claim.signedPrefix, body)
  const keys = await publicKeys.list()
  if (await hasAsymmetricSignature(claim, keys, bytes)) return true
  const later = await publicKeys.list(keys)
  return later !== keys && hasAsymmetricSignature(claim, later, bytes)
}

type SymmetricClaim = SignedClaim & { readonly family: SymmetricFamily }

function readClaims(headers: HeadersInput, require: SignatureRequirement): readonly SymmetricClaim[] {
  const service = findHeaderValue(headers, SERVICE_SIGNATURE_HEADER)
  const wantsService = require === 'service-signature' || require === 'both'
  const wantsStandard = require === 'standard-webhooks' || require === 'both'
  const claims: SymmetricClaim[] = []
  if (wantsService && service === undefined) {
    throw new WebhookVerificationError('header_missing', `The header ${SERVICE_SIGNATURE_HEADER} is missing.`)
  }
  if (service !== undefined && require !== 'standard-webhooks') claims.push(parseServiceSignature(service))
  const isStandardPresent = require === 'either' && findHeaderValue(headers, STANDARD_SIGNATURE_HEADER) !== undefined
  if (wantsStandard || isStandardPresent) claims.push(parseStandardSignature(headers, 'v1'))
  if (claims.length > 0) return claims
  const names = `${SERVICE_SIGNATURE_HEADER} nor ${STANDARD_SIGNATURE_HEADER}`
  throw new WebhookVerificationError('header_missing', `The request carries neither ${names}.`)
}

function checkAge(claim: SignedClaim, nowSeconds: number): void {
  const ageSeconds = nowSeconds - claim.timestampSeconds
  if (ageSeconds > TOLERANCE_SECONDS) {
    throw new WebhookVerificationError('timestamp_too_old', `The delivery was signed ${ageSeconds} seconds ago.`)
  }
  // The comparison refuses NaN, the result of a broken clock.
  if (!(ageSeconds >= -TOLERANCE_SECONDS)) {
    throw new WebhookVerificationError('timestamp_too_new', `The delivery was signed ${-ageSeconds} seconds ahead.`)
  }
}

async function isSignedByAny(claims: readonly SymmetricClaim[], secrets: readonly SecretKeys[], body: Uint8Array) {
  const signed = claims.map((claim) => ({ claim, bytes: buildSignedBytes(claim.signedPrefix, body) }))
  for (const keys of secrets) {
    let isSigned = true
    for (const { claim, bytes } of signed) {
      isSigned = isSigned && (await hasSignature(claim, keys[claim.family], bytes))
    }
    if (isSigned) return true
  }
  return false
}

/** Whether one of the claim's signatures matches. `subtle.verify` compares in constant time. */
export async function hasSignature(
  claim: SignedClaim,
  key: Uint8Array<ArrayBuffer>,
  signedBytes: Uint8Array<ArrayBuffer>,
) {
  const subtle = globalThis.crypto?.subtle
  if (!subtle) throw new WebhookVerificationError('crypto_unavailable', 'WebCrypto is not available.')
  const hmacKey = await subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  for (const signature of claim.signatures) {
    if (await subtle.verify('HMAC', hmacKey, signature, signedBytes)) return true
  }
  return false
}

function decodeUtf8(body: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    throw new WebhookVerificationError('body_not_json', 'The body is not UTF-8.')
  }
}
