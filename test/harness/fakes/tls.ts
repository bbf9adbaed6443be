import 'reflect-metadata'
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'

/** A private key and its certificate, in PEM. */
export interface Certificate {
  key: string
  cert: string
}

/** A certificate authority of one test. */
export interface Authority {
  /** Its certificate, in PEM, for the trust store of a client. */
  ca: string
  /** Issues a server certificate for DNS names and addresses; by default valid from yesterday for a year. */
  issue(names: string[], validity?: Validity): Promise<Certificate>
}

interface Validity {
  notBefore: Date
  notAfter: Date
}

const DAY_MS = 86_400_000
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

/** Creates a certificate authority: generated certificates avoid keys in the repository and expiring fixtures. */
export async function createAuthority(): Promise<Authority> {
  const keys = await generateKeys()
  // A unique name, as real authorities have.
  const name = `CN=Test Authority ${randomBytes(4).toString('hex')}`
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name,
    keys,
    signingAlgorithm: ALGORITHM,
    ...aboutNow(),
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return {
    ca: certificate.toString('pem'),
    issue: async (names, validity = aboutNow()) => {
      const leaf = await generateKeys()
      const issued = await x509.X509CertificateGenerator.create({
        subject: subjectOf(names),
        issuer: name,
        publicKey: leaf.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: ALGORITHM,
        ...validity,
        extensions: [namesOf(names)],
      })
      return toPem(leaf, issued)
    },
  }
}

/** Creates a self-signed certificate. */
export async function createSelfSigned(names: string[]): Promise<Certificate> {
  const keys = await generateKeys()
  const name = subjectOf(names)
  const common = { name, keys, signingAlgorithm: ALGORITHM, extensions: [namesOf(names)] }
  return toPem(keys, await x509.X509CertificateGenerator.createSelfSigned({ ...common, ...aboutNow() }))
}

/** A validity that ended yesterday. */
export function expiredValidity(): Validity {
  return { notBefore: new Date(Date.now() - 30 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) }
}

function aboutNow(): Validity {
  return { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 365 * DAY_MS) }
}

function generateKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
}

const subjectOf = ([first = 'leaf']: string[]) => `CN=${first}`

function namesOf(names: string[]): x509.SubjectAlternativeNameExtension {
  const typed = names.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value }) as const)
  return new x509.SubjectAlternativeNameExtension(typed)
}

async function toPem({ privateKey }: CryptoKeyPair, certificate: x509.X509Certificate): Promise<Certificate> {
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', privateKey)
  return { key: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY'), cert: certificate.toString('pem') }
}
