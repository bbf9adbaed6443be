/** The claims of a JWT that this package reads. */
export type Claims = {
  readonly sub?: unknown
  readonly exp?: unknown
  readonly next?: unknown
  readonly jwt?: unknown
}

/**
 * The claims of a JWT, without a check of its signature: the service has checked it, or will. Undefined for a text that is
 * no JWT.
 */
export function readClaims(token: string): Claims | undefined {
  const [, payload, signature] = token.split('.')
  if (payload === undefined || !signature) return undefined
  try {
    const bytes = Uint8Array.from(atob(payload.replace(/-/g, '+').replace(/_/g, '/')), (character) =>
      character.charCodeAt(0),
    )
    const claims: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof claims === 'object' && claims !== null ? claims : undefined
  } catch {
    return undefined
  }
}

/** A session JWT with the user and the end that it names. */
export type SessionToken = { readonly jwt: string; readonly userId: string; readonly expiresAtSeconds: number }

/** Reads a session JWT; undefined for a text that is none, or holds what a cookie cannot. */
export function readSessionToken(jwt: unknown): SessionToken | undefined {
  if (typeof jwt !== 'string' || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(jwt)) return undefined
  const claims = readClaims(jwt)
  if (typeof claims?.sub !== 'string' || !Number.isSafeInteger(claims.exp)) return undefined
  return { jwt, userId: claims.sub, expiresAtSeconds: claims.exp as number }
}

/** The user that a handshake token says it is for: its own claim, else that of the JWT inside. Not checked. */
export function readHandshakeUser(token: string): string | undefined {
  const claims = readClaims(token)
  if (typeof claims?.sub === 'string') return claims.sub
  const inner = typeof claims?.jwt === 'string' ? readClaims(claims.jwt)?.sub : undefined
  return typeof inner === 'string' ? inner : undefined
}
