import { buildMalformed, MAX_SIGNATURES, parseUnixSeconds, type SignedClaim } from './signed-claim.ts'

export const SERVICE_SIGNATURE_HEADER = 'x-service-signature'

// Printable ASCII without the comma that separates parts. Spaces are refused: Signalbox sends none, and ", " is how
// HTTP stacks join a header that was sent twice.
const GRAMMAR = /^[a-z][a-z0-9]*=[!-+\--~]+(?:,[a-z][a-z0-9]*=[!-+\--~]+)*$/
const HEX_SHA256 = /^[0-9a-f]{64}$/

/**
 * Parses `t=<unix seconds>,v1=<hex>` (docs/contract/webhooks.md#signature). Exactly one `t`, in canonical form; one to eight `v1`, each 64 lower-case
 * hex digits; parts of other names are ignored, so that a later scheme can be sent beside `v1`.
 * Throws `header_malformed`.
 */
export function parseServiceSignature(header: string): SignedClaim & { family: 'service-signature' } {
  if (!GRAMMAR.test(header)) throw buildMalformed(SERVICE_SIGNATURE_HEADER, 'is not of the form t=<seconds>,v1=<hex>')
  const timestamps: string[] = []
  const candidates: string[] = []
  for (const part of header.split(',')) {
    const equals = part.indexOf('=')
    const name = part.slice(0, equals)
    if (name === 't') timestamps.push(part.slice(equals + 1))
    if (name === 'v1') candidates.push(part.slice(equals + 1))
  }
  const [timestamp] = timestamps
  if (timestamp === undefined || timestamps.length > 1) {
    throw buildMalformed(SERVICE_SIGNATURE_HEADER, 'does not hold exactly one t')
  }
  const timestampSeconds = parseUnixSeconds(timestamp)
  if (timestampSeconds === undefined)
    throw buildMalformed(SERVICE_SIGNATURE_HEADER, 'holds a t that is not a whole number')
  if (candidates.length === 0) throw buildMalformed(SERVICE_SIGNATURE_HEADER, 'holds no v1 signature')
  if (candidates.length > MAX_SIGNATURES) throw buildMalformed(SERVICE_SIGNATURE_HEADER, 'holds too many signatures')
  return {
    family: 'service-signature',
    timestampSeconds,
    signedPrefix: `${timestamp}.`,
    signatures: candidates.map(decodeHexSignature),
  }
}

function decodeHexSignature(hex: string): Uint8Array<ArrayBuffer> {
  if (!HEX_SHA256.test(hex)) throw buildMalformed(SERVICE_SIGNATURE_HEADER, 'holds a v1 that is not 64 hex digits')
  return Uint8Array.from({ length: 32 }, (_, index) => Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16))
}
