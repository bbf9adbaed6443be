/** The claims of a token, read without verifying it: for users to look at. Undefined for what is no JWT. Pure. */
export function readClaims(token: string): Record<string, unknown> | undefined {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/')
    const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0))
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The claims that are shown of a handshake token: not the session JWT inside. Pure. */
export function describeHandshake(redirectUrl: string): [name: string, value: string][] {
  const token = new URL(redirectUrl).searchParams.get('sso_token')
  const claims = token === null ? undefined : readClaims(token)
  if (!claims) return []
  return ['iss', 'aud', 'iat', 'exp', 'nonce', 'next'].flatMap((name): [string, string][] => {
    const value = claims[name]
    if (value === undefined || value === null) return []
    const isTime = (name === 'iat' || name === 'exp') && typeof value === 'number'
    return [[name, isTime ? new Date(value * 1000).toISOString() : String(value)]]
  })
}
