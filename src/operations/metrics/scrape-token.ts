import { createHash, timingSafeEqual } from 'node:crypto'

/** Whether a header holds the token of the metrics. Compares hashes, so that time reveals nothing. */
export function holdsScrapeToken(authorization: string | undefined, token: string): boolean {
  const given = /^bearer +([!-~]+) *$/i.exec(authorization ?? '')?.[1]
  return given !== undefined && timingSafeEqual(hash(given), hash(token))
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
