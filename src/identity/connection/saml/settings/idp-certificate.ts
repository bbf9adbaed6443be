import { X509Certificate } from 'node:crypto'

/** Certificates of a connection: two while one replaces the other, and some more for providers with several keys. */
export const CERTIFICATE_LIMIT = 4

/** Longest certificate, in characters of PEM. */
export const CERTIFICATE_CHARACTERS = 8_192

const [BITS_MIN, BITS_MAX] = [2_048, 8_192]

/** Refusal of a certificate, in the words of an `errors` entry. */
export interface CertificateFault {
  code: 'not_pem' | 'not_a_certificate' | 'not_rsa' | 'key_size'
  message: string
  /** Of `key_size`: bits. */
  params?: { least: number; most: number }
}

/** A certificate that can verify responses. */
export interface IdpCertificate {
  /** PEM with lines of 64 characters. */
  pem: string
  fingerprint: string
  notBefore: Date
  notAfter: Date
}

const PEM = /^-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----$/

/**
 * Reads a certificate of an identity provider, in PEM or as the base64 of metadata. It is a container of a key, as SAML
 * 2.0 metadata interoperability profile, 2.5 has it: who signed it and when it expires decide nothing, so an expired one
 * verifies, with a warning. The key is RSA of 2,048 to 8,192 bits. Pure.
 */
export function readCertificate(text: string): IdpCertificate | CertificateFault {
  const trimmed = text.trim()
  const base64 = (trimmed.startsWith('-') ? PEM.exec(trimmed)?.[1] : trimmed)?.replace(/\s/g, '')
  if (base64 === undefined || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64))
    return { code: 'not_pem', message: 'must be one certificate in PEM, from BEGIN CERTIFICATE to END CERTIFICATE' }
  const certificate = parseCertificate(base64)
  if (!certificate) return { code: 'not_a_certificate', message: 'must be an X.509 certificate; this one is damaged' }
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = certificate.publicKey
  if (type !== 'rsa')
    return {
      code: 'not_rsa',
      message: `must have an RSA key, since responses are signed with RSA; this one is ${type}`,
    }
  const bits = details?.modulusLength ?? 0
  const isKeySound = bits >= BITS_MIN && bits <= BITS_MAX && isExponentSound(details?.publicExponent)
  if (!isKeySound)
    return {
      code: 'key_size',
      message: `must have an RSA key of ${BITS_MIN} to ${BITS_MAX} bits; this one has ${bits}`,
      params: { least: BITS_MIN, most: BITS_MAX },
    }
  return {
    pem: `-----BEGIN CERTIFICATE-----\n${certificate.raw.toString('base64').replace(/(.{64})(?=.)/g, '$1\n')}\n-----END CERTIFICATE-----\n`,
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    notBefore: certificate.validFromDate,
    notAfter: certificate.validToDate,
  }
}

/** A small exponent makes forgeries easier, a large one makes each verification slow. */
const isExponentSound = (exponent: bigint | undefined) =>
  exponent !== undefined && exponent >= 65_537n && exponent < 2n ** 32n

function parseCertificate(base64: string): X509Certificate | undefined {
  try {
    const bytes = Buffer.from(base64, 'base64')
    const certificate = new X509Certificate(bytes)
    // The key is decoded when it is asked for. Bytes behind the certificate are not part of it.
    const isWhole = certificate.raw.equals(bytes) && certificate.publicKey.type === 'public'
    // Nobody has checked that its times are times. What is none has a text that says so, and any date.
    const hasTimes = [certificate.validFrom, certificate.validTo].every((text) => !Number.isNaN(Date.parse(text)))
    return isWhole && hasTimes ? certificate : undefined
  } catch {
    return undefined
  }
}
