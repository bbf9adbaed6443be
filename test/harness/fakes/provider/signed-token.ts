import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'

/** A key pair of a fake provider, with its public part as a JWK. */
export interface SigningKey {
  privateKey: KeyObject
  jwk: Record<string, unknown>
}

function makeKey(kid: string): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' } }
}

const keys = new Map<string, SigningKey>()

/** The RSA key with this id; made once in a process, because making one is slow. */
export function findKey(kid: string): SigningKey {
  const known = keys.get(kid) ?? makeKey(kid)
  keys.set(kid, known)
  return known
}

const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url')

/** Signs claims with RS256, or with what the header says for the forgeries `none` and `HS256`. */
export function signToken(claims: object, key: SigningKey, header: Record<string, unknown> = {}): string {
  const full = { alg: 'RS256', typ: 'JWT', kid: key.jwk.kid, ...header }
  const text = `${encode(full)}.${encode(claims)}`
  if (full.alg === 'none') return `${text}.`
  if (full.alg === 'HS256')
    return `${text}.${createHmac('sha256', JSON.stringify(key.jwk)).update(text).digest('base64url')}`
  return `${text}.${sign('sha256', Buffer.from(text), key.privateKey).toString('base64url')}`
}

/** The claims of an ES256 token that `publicKey` verifies; undefined otherwise. */
export function readEs256(token: string, publicKey: KeyObject): Record<string, unknown> | undefined {
  const [header = '', claims = '', signature = ''] = token.split('.')
  const isValid = verify(
    'sha256',
    Buffer.from(`${header}.${claims}`),
    { key: publicKey, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  return isValid ? JSON.parse(Buffer.from(claims, 'base64url').toString()) : undefined
}

/** The S256 challenge of a verifier (RFC 7636 section 4.2). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}
