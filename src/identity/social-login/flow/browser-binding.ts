import { parseCookie } from 'cookie'
import type { Random } from '../../../base/random.ts'
import type { AnswerCookie } from '../../../http/route/outcome.ts'
import { FLOW_LIFETIME_MS } from './flow-state.ts'

/**
 * The cookie that binds a flow to the browser that started it (docs/contract/social-login.md#browser-binding): an
 * attacker who sends this browser the callback of another flow cannot set it. It names the browser, not the flow, so
 * that two tabs work.
 */
export interface BrowserBinding {
  /** The value of the cookie in a request; undefined when it is missing or malformed. */
  read(header: string | undefined): string | undefined
  /** The cookie for a value: the browser's own, renewed, or a new one. */
  renew(value: string): AnswerCookie
  /** A new value. */
  draw(): string
}

const VALUE_PATTERN = /^[A-Za-z0-9_-]{43}$/

/** Builds the binding. With `isHostBound` no other host can set the cookie (`__Host-`). */
export function buildBrowserBinding(
  random: Random,
  { isSecure, isHostBound }: { isSecure: boolean; isHostBound: boolean },
): BrowserBinding {
  const name = isHostBound ? '__Host-signalbox_flow' : 'signalbox_flow'
  return {
    read: (header) => {
      const value = header === undefined ? undefined : parseCookie(header)[name]
      return value !== undefined && VALUE_PATTERN.test(value) ? value : undefined
    },
    renew: (value) => ({
      name,
      value,
      path: '/',
      maxAgeSeconds: FLOW_LIFETIME_MS / 1000,
      httpOnly: true,
      secure: isSecure,
      // Sent when the provider sends the browser back by GET, and not with the post of another site.
      sameSite: 'lax',
    }),
    draw: () => random.bytes(32).toString('base64url'),
  }
}
