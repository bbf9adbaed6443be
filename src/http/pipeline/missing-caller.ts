const SEND_TOKEN = 'Send a valid, unexpired token: Authorization: Bearer <token>.'

const EXCHANGE_TOKEN =
  'This is an OAuth access token. Exchange it at POST /api/v3/oauth/exchange, and send the JWT of the answer: Authorization: Bearer <jwt>.'

/** Maximum length of a parsed JWT header, in characters: those of access tokens have some 100. */
const JOSE_HEADER_LIMIT = 1_000

/** Detail for a caller without a valid token, in words chosen by its unverified claims. */
export function describeMissingCaller(authorization: string | undefined): string {
  const header = /^bearer +([\w-]+)\.[\w-]+\.[\w-]+ *$/i.exec(authorization ?? '')?.[1]
  return header !== undefined && isOfAccessToken(header) ? EXCHANGE_TOKEN : SEND_TOKEN
}

/** Whether it is the class of an access token (RFC 9068), or an algorithm of OAuth engines: a session JWT has HS256. */
function isOfAccessToken(segment: string): boolean {
  if (segment.length > JOSE_HEADER_LIMIT) return false
  try {
    const header: unknown = JSON.parse(Buffer.from(segment, 'base64url').toString())
    if (typeof header !== 'object' || header === null) return false
    const { typ, alg } = header as { typ?: unknown; alg?: unknown }
    return /^(?:application\/)?at\+jwt$/i.test(String(typ)) || alg === 'ES256' || alg === 'RS256'
  } catch {
    return false
  }
}
