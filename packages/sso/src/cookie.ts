/** The value of the first cookie with this name in a `Cookie` header; undefined without one. */
export function readCookie(header: string | null, name: string): string | undefined {
  for (const part of (header ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at !== -1 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim()
  }
  return undefined
}

/** A `Set-Cookie` header of this origin: `HttpOnly`, `SameSite=Lax`, and `Secure` where that is asked for. */
export function writeCookie(
  cookie: { name: string; value: string; maxAgeSeconds: number },
  { isSecure }: { isSecure: boolean },
): string {
  const { name, value, maxAgeSeconds } = cookie
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`
  return `${name}=${value}; ${attributes}${isSecure ? '; Secure' : ''}`
}
