import { decodeBase64 } from './base64.ts'
import { findHeaderValue, type HeadersInput } from './header-value.ts'
import { buildMalformed, MAX_SIGNATURES, parseUnixSeconds, type SignedClaim } from './signed-claim.ts'
import { WebhookVerificationError } from './verification-error.ts'

export const STANDARD_SIGNATURE_HEADER = 'webhook-signature'

// Printable ASCII without the full stop: the dot separates id, timestamp and body in the signed bytes, so an id with a
// dot would be ambiguous.
const MESSAGE_ID = /^[!-\-/-~]{1,256}$/
const SIGNATURE_TOKEN = /^(v[0-9]+[a-z]*),([A-Za-z0-9+/=_-]+)$/

/** The versions of a signature: the family of each, and its length in bytes. */
const VERSIONS = {
  v1: { family: 'standard-webhooks', length: 32 },
  v1a: { family: 'asymmetric', length: 64 },
} as const

/**
 * Parses the three Standard Webhooks headers (docs/contract/webhooks.md#signature). `webhook-signature` holds one or more `<version>,<base64>` separated
 * by one space; other versions are ignored beside the wanted one. Throws `header_missing`, `header_malformed`.
 */
export function parseStandardSignature<Version extends keyof typeof VERSIONS>(
  headers: HeadersInput,
  version: Version,
): SignedClaim & { family: (typeof VERSIONS)[Version]['family'] } {
  const id = loadHeader(headers, 'webhook-id')
  const timestamp = loadHeader(headers, 'webhook-timestamp')
  const signature = loadHeader(headers, STANDARD_SIGNATURE_HEADER)
  if (!MESSAGE_ID.test(id)) throw buildMalformed('webhook-id', 'is empty, too long, or holds a dot or a space')
  const timestampSeconds = parseUnixSeconds(timestamp)
  if (timestampSeconds === undefined) throw buildMalformed('webhook-timestamp', 'is not a whole number of seconds')
  const { family } = VERSIONS[version]
  const signatures = parseSignatureTokens(signature, version)
  return { family, timestampSeconds, signedPrefix: `${id}.${timestamp}.`, signatures }
}

function parseSignatureTokens(header: string, version: keyof typeof VERSIONS): Uint8Array<ArrayBuffer>[] {
  const { length } = VERSIONS[version]
  const signatures: Uint8Array<ArrayBuffer>[] = []
  for (const token of header.split(' ')) {
    const match = SIGNATURE_TOKEN.exec(token)
    if (!match) throw buildMalformed(STANDARD_SIGNATURE_HEADER, 'is not of the form v1,<base64>')
    if (match[1] !== version) continue
    const bytes = decodeBase64(match[2]!)
    if (bytes?.length !== length)
      throw buildMalformed(STANDARD_SIGNATURE_HEADER, `holds a ${version} that is not base64 of ${length} bytes`)
    signatures.push(bytes)
  }
  if (signatures.length === 0) throw buildMalformed(STANDARD_SIGNATURE_HEADER, `holds no ${version} signature`)
  if (signatures.length > MAX_SIGNATURES) throw buildMalformed(STANDARD_SIGNATURE_HEADER, 'holds too many signatures')
  return signatures
}

function loadHeader(headers: HeadersInput, name: string): string {
  const value = findHeaderValue(headers, name)
  if (value === undefined) throw new WebhookVerificationError('header_missing', `The header ${name} is missing.`)
  return value
}
