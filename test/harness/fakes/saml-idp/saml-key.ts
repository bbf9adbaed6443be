import 'reflect-metadata'
import { createPrivateKey, type KeyObject } from 'node:crypto'
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
