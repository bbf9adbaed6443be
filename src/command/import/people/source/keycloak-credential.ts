import { isPbkdf2Digest } from '../../../../identity/password/foreign-hash.ts'
import { type Foreign, findText, findTexts } from '../../source/foreign.ts'
import { type ForeignPasskey, type ForeignPassword, findBase32, findBytes, findObject } from '../person.ts'

/** Credentials of Keycloak 26 (`server-spi/.../models/credential/dto`): texts with JSON. */
const readParts = (credential: Foreign) => ({
  data: findObject(credential.credentialData),
  secret: findObject(credential.secretData),
})

const plain = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

/** The password of a user; `none` without one. Pure. */
export function readKeycloakPassword(credential: Foreign | undefined): ForeignPassword {
  if (!credential) return { kind: 'none' }
  const { data, secret } = readParts(credential)
  if (findText(credential, 'value') !== undefined) return { kind: 'other', what: 'a password in clear' }
  const algorithm = (findText(data, 'algorithm') ?? 'no algorithm').slice(0, 40)
  const value = findText(secret, 'value') ?? ''
  const [salt, tag] = [findBytes(secret.salt), findBytes(value)]
  const iterations = Number(data.hashIterations)
  const count = Number.isInteger(iterations) ? iterations : -1
  const other: ForeignPassword = { kind: 'other', what: algorithm }
  // Extensions for bcrypt keep the whole text.
  if (algorithm === 'bcrypt') return { kind: 'hash', text: value }
  if (!salt || !tag) return other
  if (algorithm === 'argon2') return readArgon2(data, { count, salt, tag }) ?? other
  const [family, digest = 'sha1', ...rest] = algorithm.split('-')
  if (family !== 'pbkdf2' || rest.length > 0 || !isPbkdf2Digest(digest)) return other
  return { kind: 'hash', text: `$pbkdf2-${digest}$i=${count}$${plain(salt)}$${plain(tag)}` }
}

function readArgon2(
  data: Foreign,
  { count, salt, tag }: { count: number; salt: Buffer; tag: Buffer },
): ForeignPassword | undefined {
  const parameters = findObject(data.additionalParameters)
  const first = (name: string) => findTexts(parameters[name])?.[0] ?? ''
  if (first('version') !== '1.3' || !['id', 'i', 'd'].includes(first('type'))) return undefined
  const cost = `m=${first('memory')},t=${count},p=${first('parallelism')}`
  return { kind: 'hash', text: `$argon2${first('type')}$v=19$${cost}$${plain(salt)}$${plain(tag)}` }
}

/** The secret of an app with the parameters of ours; undefined for another one. Its bytes are those of the text, unless it says base32. Pure. */
export function readKeycloakTotp(credential: Foreign): Buffer | undefined {
  const { data, secret } = readParts(credential)
  const isOurs = data.subType === 'totp' && data.algorithm === 'HmacSHA1' && data.digits === 6 && data.period === 30
  const value = findText(secret, 'value')
  if (!isOurs || value === undefined) return undefined
  if (data.secretEncoding === 'BASE32') return findBase32(value)
  const bytes = Buffer.from(value)
  return bytes.length >= 10 && bytes.length <= 128 ? bytes : undefined
}

/** A passkey; undefined where its key is not shown. Pure. */
export function readKeycloakPasskey(credential: Foreign, rpId: string | undefined): ForeignPasskey | undefined {
  const { data } = readParts(credential)
  const credentialId = findBytes(data.credentialId)
  const publicKey = findBytes(data.credentialPublicKey)
  if (!credentialId || !publicKey) return undefined
  return {
    rpId,
    credentialId,
    publicKey,
    counter: Number(data.counter ?? 0),
    transports: (findTexts(data.transports) ?? []).map((transport) => transport.toLowerCase()),
    name: findText(credential, 'userLabel'),
    // Keycloak does not keep it, and what may be copied counts for less.
    isBackupEligible: true,
    isBackedUp: false,
  }
}

/** Parts of a credential that are left out, in words. Pure. */
export function describeCredential(credential: Foreign): string[] {
  switch (credential.type) {
    case 'otp': {
      if (readKeycloakTotp(credential)) return []
      const { data } = readParts(credential)
      const what = `${data.subType}, ${data.algorithm}, ${data.digits} digits, ${data.period} s`.slice(0, 80)
      return [`authenticator app left out: ${what}; here it is HMAC-SHA1 with 6 digits and 30 s`]
    }
    case 'webauthn':
    case 'webauthn-passwordless':
      return readKeycloakPasskey(credential, undefined) ? [] : ['passkey left out: the export does not show its key']
    case 'recovery-authn-codes':
      return ['recovery codes left out: new ones on the own page']
    default:
      return []
  }
}
