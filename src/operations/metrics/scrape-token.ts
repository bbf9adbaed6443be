import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * Whether an `Authorization` header holds the bearer token of the metrics. Compares hashes, so that the time does not
 * reveal the token or its length.
 */
export function holdsScrapeToken(authorization: string | undefined, token: string): boolean {
  const given = /^bearer +([!-~]+) *$/i.exec(authorization ?? '')?.[1]
  return given !== undefined && timingSafeEqual(hash(given), hash(token))
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
