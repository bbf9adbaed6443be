import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Random } from '../random.ts'

/** What a code of the browser vouches for. Each purpose has keys of its own. */
type Purpose = 'form' | 'refresh' | 'known'

const SALT_BYTES = 16

/** A browser's id has 32 bytes; of one that signs in, half of them are a code of the other half. */
const KNOWN_BYTES = 16

/**
 * Authenticates what the service hands to a browser, with keys derived from `SESSION_JWT_SECRET`: the first secret makes
 * codes, all of them check.
 */
export interface BrowserKeys {
  /** The token of a form for one browser. It differs each time, so that a compressed page does not reveal it. */
  buildFormToken(browserId: string): string
  isFormToken(token: string, browserId: string): boolean
  /** A refresh token as its cookie holds it: bound to the browser, so that it is worth nothing in another one. */
  sealRefreshToken(token: string, browserId: string): string
  /** A new id for a browser that signs in. */
  createKnownBrowserId(): string
  /** Whether the id was made for a browser that signed in. */
  isKnownBrowserId(browserId: string): boolean
  openRefreshToken(sealed: string, browserId: string): string | undefined
}

/** Builds the keys. */
export function buildBrowserKeys({ secrets, random }: { secrets: readonly string[]; random: Random }): BrowserKeys {
  const keysOf = (purpose: Purpose) =>
    secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', `signalbox browser ${purpose}`, 32)))
  const keys: Record<Purpose, Buffer[]> = {
    form: keysOf('form'),
    refresh: keysOf('refresh'),
    known: keysOf('known'),
  }
  const sign = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest('base64url')
  const build = (purpose: Purpose, text: string) => {
    const [key] = keys[purpose]
    if (key === undefined) throw new Error('the pages need at least one session secret')
    return sign(key, text)
  }
  const isCode = (purpose: Purpose, text: string, code: string) =>
    keys[purpose].some((key) => isSame(sign(key, text), code))
  return {
    buildFormToken: (browserId) => {
      const salt = random.bytes(SALT_BYTES).toString('base64url')
      return `${salt}.${build('form', `${salt}.${browserId}`)}`
    },
    isFormToken: (token, browserId) => {
      const [salt = '', code = ''] = token.split('.')
      return isCode('form', `${salt}.${browserId}`, code)
    },
    createKnownBrowserId: () => {
      const own = random.bytes(KNOWN_BYTES)
      return Buffer.concat([own, codeOfKnown(build, own)]).toString('base64url')
    },
    isKnownBrowserId: (browserId) => {
      const bytes = Buffer.from(browserId, 'base64url')
      const [own, code] = [bytes.subarray(0, KNOWN_BYTES), bytes.subarray(KNOWN_BYTES)]
      return keys.known.some((key) =>
        isSame(codeOfKnown((_, text) => sign(key, text), own).toString('hex'), code.toString('hex')),
      )
    },
    sealRefreshToken: (token, browserId) => `${token}.${build('refresh', `${token}.${browserId}`)}`,
    openRefreshToken: (sealed, browserId) => {
      const [token = '', code = ''] = sealed.split('.')
      return isCode('refresh', `${token}.${browserId}`, code) ? token : undefined
    },
  }
}

function codeOfKnown(build: (purpose: 'known', text: string) => string, own: Buffer): Buffer {
  return Buffer.from(build('known', own.toString('base64url')), 'base64url').subarray(0, KNOWN_BYTES)
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
