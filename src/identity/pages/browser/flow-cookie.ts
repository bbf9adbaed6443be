import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { parseCookie } from 'cookie'
import type { Keyring } from '../../../base/keyring.ts'
import type { AnswerCookie } from '../../../http/route/outcome.ts'

/** Maximum number of open flows of a browser: their cookies are a kilobyte of each request. */
export const OPEN_FLOWS = 16

const KEY_PURPOSE = 'flow cookie v1'

const NAME_CHARACTERS = 8
const CODE_BYTES = 16

/** `<time of the begin in seconds, base 36>.<code>`, the code in base64url. */
const VALUE_PATTERN = /^([0-9a-z]{1,8})\.([A-Za-z0-9_-]{22})$/

/** A flow that begins in a browser. */
export interface BrowserFlow {
  /** Its id: random, and too long to guess. */
  id: string
  lifetimeSeconds: number
  now: Date
  /** The id of the flow that this one continues. */
  continues?: string | undefined
}

/** The cookies that bind a flow to the browser that began it, one each (docs/contract/pages.md#cookies-of-flows). */
export interface FlowCookies {
  /** Whether the flow of this id began in the browser of a `Cookie` header. */
  isOwn(header: string | undefined, id: string | undefined): boolean
  /** The cookie of a new flow, and the removal of the oldest ones beyond `OPEN_FLOWS`. */
  begin(header: string | undefined, flow: BrowserFlow): AnswerCookie[]
  /** The removal of the cookie of a flow that has ended; nothing for a browser without it. */
  end(header: string | undefined, id: string | undefined): AnswerCookie[]
}

/** Builds the cookies. With `isHostBound` no other host can set them (`__Host-`). */
export function buildFlowCookies(
  keyring: Pick<Keyring, 'deriveKeys'>,
  { isSecure, isHostBound }: { isSecure: boolean; isHostBound: boolean },
): FlowCookies {
  const prefix = isHostBound ? '__Host-signalbox_flow_' : 'signalbox_flow_'
  const keys = keyring.deriveKeys(KEY_PURPOSE)
  // Sent when another site leads the browser back by GET, and not with its post.
  const attributes = { path: '/', httpOnly: true, secure: isSecure, sameSite: 'lax' } as const
  const nameOf = (id: string) => prefix + createHash('sha256').update(id).digest('base64url').slice(0, NAME_CHARACTERS)
  const remove = (name: string): AnswerCookie => ({ ...attributes, name, value: '', maxAgeSeconds: 0 })
  const isFlowName = (name: string) =>
    name.startsWith(prefix) && /^[A-Za-z0-9_-]+$/.test(name) && name.length === prefix.length + NAME_CHARACTERS
  return {
    isOwn: (header, id) => {
      if (header === undefined || id === undefined) return false
      const code = VALUE_PATTERN.exec(parseCookie(header)[nameOf(id)] ?? '')?.[2]
      return code !== undefined && keys.some((key) => timingSafeEqual(sign(key, id), Buffer.from(code, 'base64url')))
    },
    begin: (header, { id, lifetimeSeconds, now, continues }) => {
      const [key] = keys
      if (!key) throw new Error('a keyring has at least one key')
      const own = nameOf(id)
      const begun = Math.floor(now.getTime() / 1000).toString(36)
      const value = `${begun}.${sign(key, id).toString('base64url')}`
      const ended = continues === undefined ? undefined : nameOf(continues)
      const open = Object.entries(parseCookie(header ?? '')).filter(
        ([name]) => isFlowName(name) && name !== own && name !== ended,
      )
      return [
        { ...attributes, name: own, value, maxAgeSeconds: lifetimeSeconds },
        ...listOldest(open, open.length + 1 - OPEN_FLOWS).map(remove),
      ]
    },
    end: (header, id) => {
      if (header === undefined || id === undefined) return []
      const name = nameOf(id)
      return parseCookie(header)[name] === undefined ? [] : [remove(name)]
    },
  }
}

function sign(key: Buffer, id: string): Buffer {
  return createHmac('sha256', key).update(id).digest().subarray(0, CODE_BYTES)
}

/** The names of the cookies that began first, `OPEN_FLOWS` at most for one answer. One of another form is the oldest. */
function listOldest(cookies: readonly [string, string | undefined][], count: number): string[] {
  if (count <= 0) return []
  const begunAt = (value = '') => Number.parseInt(VALUE_PATTERN.exec(value)?.[1] ?? '0', 36)
  return cookies
    .map(([name, value]) => ({ name, at: begunAt(value) }))
    .sort((one, other) => one.at - other.at)
    .slice(0, Math.min(count, OPEN_FLOWS))
    .map(({ name }) => name)
}
