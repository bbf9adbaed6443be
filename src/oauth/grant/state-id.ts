import { hash } from 'node:crypto'

/** The hash of an id or a token, as the state of the provider keeps it. */
export function hashStateId(id: string): Buffer {
  return hash('sha256', id, 'buffer')
}

/** The family id of an authorization that rests on a grant: the grant's id, a dot, and a part of its own. */
export function buildTokenFamilyId(grantId: string, own: string): string {
  return `${grantId}.${own}`
}

/** The grant of a family id. */
export function findGrantIdOf(tokenFamilyId: string): string {
  return tokenFamilyId.split('.', 1)[0] ?? ''
}

/** The parts of a JWT access token: its id, and the hash that distinguishes it from a forged one with the same id. */
export interface JwtTokenId {
  jti: string
  tokenHash: string
  claims: Readonly<Record<string, unknown>>
}

/** Reads the id of an access token. Undefined when the text is not a JWT. The signature is not checked: the hash is. */
export function readJwtTokenId(token: string): JwtTokenId | undefined {
  // A token without dots is no JWT.
  if (!token.includes('.')) return undefined
  const parts = token.split('.')
  if (parts.length !== 3) return undefined
  try {
    const claims = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString()) as Record<string, unknown>
    const { jti } = claims
    return typeof jti === 'string' ? { jti, tokenHash: hashStateId(token).toString('base64url'), claims } : undefined
  } catch {
    return undefined
  }
}

/** Replacement of a JWT in requests of revocation and introspection, whose handlers refuse every JWT. */
export function disguiseJwt(token: string): string {
  return token.split('.').length === 3 ? `${token}.` : token
}

/** The JWT behind `disguiseJwt`; any other text unchanged. */
export function revealJwt(text: string): string {
  return text.endsWith('.') && text.split('.').length === 4 ? text.slice(0, -1) : text
}
