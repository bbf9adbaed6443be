import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIPv4 } from 'node:net'

/** A private key and its certificate, in PEM. */
export interface Certificate {
  key: string
  cert: string
}

/** A certificate authority of one test. */
export interface Authority {
  /** Its certificate, in PEM, for the trust store of a client. */
  ca: string
  /** Issues a server certificate for DNS names and IPv4 addresses; by default valid from yesterday for a year. */
  issue(names: string[], validity?: { from: Date; to: Date }): Certificate
}

const DAY_MS = 86_400_000

/**
 * Creates a certificate authority with node:crypto only. The needed subset of X.509 (RFC 5280) is small, and generated
 * certificates avoid keys in the repository and expiring fixtures.
 */
export function createAuthority(): Authority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  // A unique name, as real authorities have.
  const subject = `Test Authority ${randomBytes(4).toString('hex')}`
  const ca = buildCertificate({
    subject,
    issuer: subject,
    publicKey: keys.publicKey,
    signer: keys.privateKey,
    validity: aboutNow(),
    extensions: [extension('551d13', sequence(boolean(true)), true), keyIdentifier(keys.publicKey)],
  })
  return {
    ca,
    issue: (names, validity = aboutNow()) => {
      const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const cert = buildCertificate({
        subject: names[0] ?? 'leaf',
        issuer: subject,
        publicKey: leaf.publicKey,
        signer: keys.privateKey,
        validity,
        extensions: [subjectAltNames(names)],
      })
      return { key: exportKey(leaf.privateKey), cert }
    },
  }
}

/** Creates a self-signed certificate. */
export function createSelfSigned(names: string[]): Certificate {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = names[0] ?? 'self'
  const cert = buildCertificate({
    subject,
    issuer: subject,
    publicKey: keys.publicKey,
    signer: keys.privateKey,
    validity: aboutNow(),
    extensions: [subjectAltNames(names)],
  })
  return { key: exportKey(keys.privateKey), cert }
}

/** A validity that ended yesterday. */
export function expiredValidity(): { from: Date; to: Date } {
  return { from: new Date(Date.now() - 30 * DAY_MS), to: new Date(Date.now() - DAY_MS) }
}

function aboutNow() {
  return { from: new Date(Date.now() - DAY_MS), to: new Date(Date.now() + 365 * DAY_MS) }
}

function exportKey(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** The algorithm ecdsa-with-SHA256 (RFC 5758). */
const ECDSA_SHA256 = sequence(objectId('2a8648ce3d040302'))

function buildCertificate(input: {
  subject: string
  issuer: string
  publicKey: KeyObject
  signer: KeyObject
  validity: { from: Date; to: Date }
  extensions: Buffer[]
}): string {
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(8)])
  const toSign = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, serial),
    ECDSA_SHA256,
    commonName(input.issuer),
    sequence(generalizedTime(input.validity.from), generalizedTime(input.validity.to)),
    commonName(input.subject),
    input.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...input.extensions)),
  )
  const der = sequence(toSign, ECDSA_SHA256, bitString(sign('sha256', toSign, input.signer)))
  const lines = der.toString('base64').match(/.{1,64}/g)!
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

/** One DER value: tag, length, content (X.690). */
function tagged(tag: number, content: Buffer): Buffer {
  const length = content.length
  const head =
    length < 128 ? [tag, length] : length < 256 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), content])
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

function objectId(hex: string): Buffer {
  return tagged(0x06, Buffer.from(hex, 'hex'))
}

function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]))
}

function bitString(content: Buffer): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.from([0]), content]))
}

function commonName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(objectId('550403'), tagged(0x0c, Buffer.from(name)))))
}

function generalizedTime(at: Date): Buffer {
  return tagged(0x18, Buffer.from(`${at.toISOString().replaceAll(/[-:T]/g, '').slice(0, 14)}Z`))
}

function extension(idHex: string, value: Buffer, isCritical = false): Buffer {
  return sequence(objectId(idHex), ...(isCritical ? [boolean(true)] : []), tagged(0x04, value))
}

function keyIdentifier(key: KeyObject): Buffer {
  const digest = createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
  return extension('551d0e', tagged(0x04, digest))
}

function subjectAltNames(names: string[]): Buffer {
  const entries = names.map((name) =>
    isIPv4(name) ? tagged(0x87, Buffer.from(name.split('.').map(Number))) : tagged(0x82, Buffer.from(name)),
  )
  return extension('551d11', sequence(...entries))
}
