import { parseUrl } from './next-path.ts'
import { findLanguage, LANGUAGES } from './texts.ts'

/**
 * Outcome of a landing or a sign-out, for a log line or a metric. Never holds a token. `asked`: the visitor has the
 * session of another user and was asked whether to continue.
 */
export type SsoEvent =
  | { readonly kind: 'arrived'; readonly userId: string; readonly endedOtherUser: boolean }
  | { readonly kind: 'failed'; readonly reason: SsoFailure; readonly status?: number; readonly error?: unknown }
  | { readonly kind: 'asked' }
  | { readonly kind: 'ignored'; readonly reason: 'prefetch' | 'not_a_navigation' }
  | { readonly kind: 'signed_out'; readonly isRevoked: boolean }

/**
 * Why a landing failed: `refused` by the service, `network` without an answer, `answer` that is not the documented one,
 * `token` more than once in the URL, `loop` after three landings within five seconds.
 */
export type SsoFailure = 'refused' | 'network' | 'answer' | 'token' | 'loop'

/** Texts and look of the page that asks whether to continue as another user. */
export type SsoQuestion = {
  /** Display name of a user of this app, such as the e-mail address; undefined for an unknown user. */
  readonly nameUser?: ((userId: string) => string | undefined | Promise<string | undefined>) | undefined
  /** Rules of CSS behind those of the page. */
  readonly style?: string | undefined
  /**
   * The language of the page, `en` or `de`: always the same, or by the request. Default, also where the function knows none:
   * what the browser prefers (`Accept-Language`), else English.
   */
  readonly language?: string | ((request: Request) => string | undefined) | undefined
}

/** The settings of a target app. */
export type SsoOptions = {
  /** The base URL of Signalbox: `https://id.example.com`. */
  readonly service: string
  /**
   * The public origin of this app, as it stands in `SSO_TARGETS`: `https://app.example.com`. `http://` is accepted on
   * loopback only; cookies then have no `Secure`.
   */
  readonly origin: string
  /** Name of the session cookie. Default `__Host-signalbox_session`, over http `signalbox_session`. */
  readonly cookieName?: string | undefined
  /** How long to wait for the service, in milliseconds. Default 5000. */
  readonly timeoutMs?: number | undefined
  /**
   * The network address of the visitor. It is sent as `X-Forwarded-For`, so that the service counts its rate limit for
   * the visitor and not for this app. The service must list this app in `TRUST_PROXY`.
   */
  readonly clientAddress?: ((request: Request) => string | undefined) | undefined
  /** The page that asks a visitor with the session of another user whether to continue. */
  readonly question?: SsoQuestion | undefined
  readonly onEvent?: ((event: SsoEvent) => unknown) | undefined
  /** Instead of the global `fetch`. */
  readonly fetch?: typeof fetch | undefined
  /** Milliseconds since the Unix epoch; `Date.now` unless a test passes its own. */
  readonly now?: (() => number) | undefined
}

/** Checked options. */
export type Settings = {
  readonly service: string
  readonly origin: string
  readonly isSecure: boolean
  readonly cookieName: string
  readonly guardName: string
  readonly timeoutMs: number
  readonly clientAddress: (request: Request) => string | undefined
  readonly question: SsoQuestion
  readonly report: (event: SsoEvent) => void
  readonly send: typeof fetch
  readonly now: () => number
}

const LOOPBACK = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Checks the options. Throws a `TypeError` that names the option, so that a wrong setting stops the start. */
export function readSettings(options: SsoOptions): Settings {
  const service = readService(options.service)
  const { isSecure, origin } = readOrigin(options.origin)
  const prefix = isSecure ? '__Host-' : ''
  const cookieName = options.cookieName ?? `${prefix}signalbox_session`
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(cookieName)) throw new TypeError('cookieName is not a valid cookie name')
  return {
    service,
    origin,
    isSecure,
    cookieName,
    guardName: `${prefix}signalbox_landings`,
    timeoutMs: options.timeoutMs ?? 5000,
    question: readQuestion(options.question),
    clientAddress: options.clientAddress ?? (() => undefined),
    report: (event) => report(options, event),
    send: options.fetch ?? ((...given) => fetch(...given)),
    now: options.now ?? Date.now,
  }
}

/** An error of the application's own log must not change the answer. */
function report({ onEvent }: SsoOptions, event: SsoEvent): void {
  try {
    const reported = onEvent?.(event)
    if (reported instanceof Promise) reported.catch(() => {})
  } catch {}
}

function readService(text: string): string {
  const url = parseUrl(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    throw new TypeError('service must be the base URL of Signalbox, such as https://id.example.com')
  return url.href.replace(/\/+$/, '')
}

function readOrigin(text: string): { origin: string; isSecure: boolean } {
  const url = parseUrl(text)
  if (!url || url.origin !== text || !/^https?:$/.test(url.protocol))
    throw new TypeError('origin must be the public origin of this app, such as https://app.example.com, without a path')
  const isSecure = url.protocol === 'https:'
  if (!isSecure && !LOOPBACK.test(url.hostname))
    throw new TypeError('origin must be https://; http:// is accepted on loopback only')
  return { origin: text, isSecure }
}

function readQuestion(question: SsoQuestion = {}): SsoQuestion {
  if (/<\//.test(question.style ?? '')) throw new TypeError('question.style must be rules of CSS without "</"')
  if (typeof question.language === 'string' && findLanguage(question.language) === undefined)
    throw new TypeError(`question.language must be one of ${Object.keys(LANGUAGES).join(', ')}`)
  return question
}
