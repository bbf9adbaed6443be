import 'reflect-metadata'
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes } from 'node:crypto'
import * as x509 from '@peculiar/x509'

/** A key of an identity provider, and its certificate in PEM. */
export interface SamlKey {
  key: KeyObject
  certificate: string
}

const DAY_MS = 86_400_000

/** Generates a key with a self-signed certificate, by default of 2,048 bits, valid from `notBefore` for ten years. */
export async function createSamlKey(
  options: { bits?: number; curve?: string; notBefore?: Date; notAfter?: Date } = {},
): Promise<SamlKey> {
  const { bits = 2048, curve, notBefore = new Date('2026-01-01') } = options
  const { notAfter = new Date(notBefore.getTime() + 3650 * DAY_MS) } = options
  const algorithm = curve
    ? { name: 'ECDSA', namedCurve: curve, hash: 'SHA-256' }
    : {
        name: 'RSASSA-PKCS1-v1_5',
        modulusLength: bits,
        publicExponent: new Uint8Array([1, 0, 1]),
        hash: 'SHA-256',
      }
  const keys = (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as CryptoKeyPair
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey))
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=Test identity provider',
    keys,
    signingAlgorithm: algorithm,
    notBefore,
    notAfter,
  })
  return {
    key: createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }),
    certificate: certificate.toString('pem'),
  }
}

/** A public key of RSA whose modulus has so many bits, for which nobody has a private one. */
export function inventRsaKey({ bits = 2048, exponent = 65_537n }: { bits?: number; exponent?: bigint } = {}): Buffer {
  const modulus = randomBytes(bits / 8)
  modulus[0]! |= 0x80
  modulus[modulus.length - 1]! |= 1
  const digits = exponent.toString(16)
  const e = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex').toString('base64url')
  const jwk = { kty: 'RSA', n: modulus.toString('base64url'), e }
  return createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'der' })
}

/** The certificate of a public key, as DER of SPKI, by another key: in DER, valid from 2026 up to `notAfter`. */
export async function certifyKey(publicKey: Buffer, notAfter = new Date('2030-01-01T00:00:00Z')): Promise<Buffer> {
  const signingAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = (await crypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify'])) as CryptoKeyPair
  const name = 'CN=Test identity provider'
  const made = await x509.X509CertificateGenerator.create({
    ...{ subject: name, issuer: name, publicKey: new x509.PublicKey(new Uint8Array(publicKey)), signingAlgorithm },
    ...{ signingKey: keys.privateKey, notBefore: new Date('2026-01-01T00:00:00Z'), notAfter },
  })
  return Buffer.from(made.rawData)
}
