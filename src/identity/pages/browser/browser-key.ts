import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { Random } from '../../../base/random.ts'
import type { KnownBrowser } from '../../../http/pipeline/pipeline-deps.ts'
import { foldEmail } from '../../user-record/email-key.ts'

/** Purpose of a browser code. Each purpose has its own keys. */
type Purpose = 'form' | 'refresh' | 'known'

const SALT_BYTES = 16

/** A browser's id has 32 bytes. After a sign-in, half are a MAC of the others, which end in its time, in ms. */
const KNOWN_BYTES = 16
const TIME_BYTES = 6

/** Time for which a browser is known after a sign-in: the lifetime of its cookie. */
export const KNOWN_MS = 90 * 24 * 3_600_000

/** The sign-in that a browser's id is made for: of whom, and when. */
export interface BrowserSignIn {
  email: string
  now: Date
}

/** Codes for browsers, by keys derived from `SESSION_JWT_SECRET`: the first secret makes them, all of them check. */
export interface BrowserKeys {
  /** The token of a form for one browser. It differs each time, so that a compressed page does not reveal it. */
  buildFormToken(browserId: string): string
  isFormToken(token: string, browserId: string): boolean
  /** The refresh token in its cookie: bound to the browser, so that it is useless in another one. */
  sealRefreshToken(token: string, browserId: string): string
  /** A new id for a browser in which a user signs in. */
  createKnownBrowserId(signIn: BrowserSignIn): string
  /** The browser of an id made for a sign-in with this address here, at most `KNOWN_MS` ago; else undefined. */
  findKnownBrowser(browserId: string, attempt: BrowserSignIn): KnownBrowser | undefined
  openRefreshToken(sealed: string, browserId: string): string | undefined
}

/** Builds the keys. `issuer` is the base URL of the service: another one may have the same secrets. */
export function buildBrowserKeys({
  secrets,
  random,
  issuer,
}: {
  secrets: readonly string[]
  random: Random
  issuer: () => string
}): BrowserKeys {
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
  const describe = (own: Buffer, email: string) =>
    JSON.stringify([issuer(), own.toString('base64url'), foldEmail(email.trim())])
  const isCode = (purpose: Purpose, text: string, code: string) =>
    keys[purpose].some((key) => isSame(sign(key, text), code))
  return {
    buildFormToken: (browserId) => {
      const salt = random.bytes(SALT_BYTES).toString('base64url')
      return `${salt}.${build('form', `${salt}.${browserId}`)}`
    },
    isFormToken: (token, browserId) => {
      const [salt, code] = splitOnce(token)
      return isCode('form', `${salt}.${browserId}`, code)
    },
    createKnownBrowserId: ({ email, now }) => {
      const time = Buffer.alloc(TIME_BYTES)
      time.writeUIntBE(now.getTime(), 0, TIME_BYTES)
      const own = Buffer.concat([random.bytes(KNOWN_BYTES - TIME_BYTES), time])
      return Buffer.concat([own, toCode(build('known', describe(own, email)))]).toString('base64url')
    },
    findKnownBrowser: (browserId, { email, now }) => {
      const bytes = Buffer.from(browserId, 'base64url')
      if (bytes.length !== 2 * KNOWN_BYTES) return undefined
      const [own, code] = [bytes.subarray(0, KNOWN_BYTES), bytes.subarray(KNOWN_BYTES)]
      const since = own.readUIntBE(KNOWN_BYTES - TIME_BYTES, TIME_BYTES)
      const text = describe(own, email)
      const isMadeHere = keys.known.some((key) => timingSafeEqual(toCode(sign(key, text)), code))
      return isMadeHere && now.getTime() - since < KNOWN_MS ? { id: browserId, since } : undefined
    },
    sealRefreshToken: (token, browserId) => `${token}.${build('refresh', `${token}.${browserId}`)}`,
    openRefreshToken: (sealed, browserId) => {
      const [token, code] = splitOnce(sealed)
      return isCode('refresh', `${token}.${browserId}`, code) ? token : undefined
    },
  }
}

const toCode = (signature: string) => Buffer.from(signature, 'base64url').subarray(0, KNOWN_BYTES)

/** Text before the first dot, and the rest behind it. */
function splitOnce(text: string): [string, string] {
  const at = text.indexOf('.')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function isSame(text: string, other: string): boolean {
  const [a, b] = [Buffer.from(text), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
