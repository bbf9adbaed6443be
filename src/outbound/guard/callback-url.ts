import { type AddressRange, classifyAddress, isInRange, parseAddress, parseRange } from './address.ts'
import { findForbiddenPort } from './port.ts'

/** Longest callback URL, in characters (docs/contract/delivery.md#fixed-constants). Counted on the text as given and on its normal form. */
const MAX_CALLBACK_URL_LENGTH = 2048

/** One entry of `WEBHOOK_ALLOWED_PRIVATE_TARGETS`: a host name or a range of addresses, on one port or on any. */
export type AllowedTarget =
  | { kind: 'host'; host: string; port: number | undefined }
  | { kind: 'range'; range: AddressRange; port: number | undefined }

/** The exemptions of a deployment (docs/contract/webhooks.md#callback-guard). */
export interface CallbackRules {
  /** Whether `http://` is accepted: in development only. */
  allowHttp: boolean
  /** The service's own sink, exempt in development and certification; absent elsewhere. */
  sinkUrl?: string | undefined
  /** Private targets that the operator listed; empty in production. */
  allowedPrivateTargets: readonly AllowedTarget[]
}

export type CallbackUrlCode =
  | 'url_required'
  | 'url_too_long'
  | 'url_invalid'
  | 'url_not_https'
  | 'url_has_user_info'
  | 'url_host_not_public'
  | 'url_port_not_allowed'

/** A refused callback URL or target. `message` names the rule and the remedy, for the caller. */
export interface CallbackRefusal {
  ok: false
  code: CallbackUrlCode
  message: string
  /** Of `url_too_long`. */
  params?: { limit: number }
}

/**
 * Suffixes without public hosts: special-use names (RFC 6761, 6762, 8375), ICANN's private-use and never-delegated
 * suffixes, and those of Kubernetes services. `.test`, `.example` and `.invalid` do not resolve, so they need no rule.
 */
const PRIVATE_SUFFIXES = new Set([
  'arpa',
  'corp',
  'home',
  'internal',
  'intranet',
  'lan',
  'local',
  'localdomain',
  'localdomain6',
  'localhost',
  'private',
  'svc',
])

/** Metadata services under public names. The rest end in `.internal`, have one label, or are caught by their address. */
const METADATA_NAMES = new Set([
  'metadata.azure.com',
  'metadata.goog',
  'metadata.packet.net',
  'metadata.platformequinix.com',
  'metadata.tencentyun.com',
])

/**
 * Checks a callback URL without network access (docs/contract/webhooks.md#url-rules; docs/contract/webhooks.md#callback-guard).
 * The WHATWG parser normalizes odd spellings of an address, so the rule that a private one breaks is named first. The
 * host, port and https rules do not apply to an exempt target (the sink, a listed private target); all other rules do.
 */
export function checkCallbackUrl(
  text: string,
  rules: CallbackRules,
): { ok: true; url: URL; isExempt: boolean } | CallbackRefusal {
  if (text === '') return refuse('url_required', 'is required; give the https:// URL that receives the deliveries.')
  if (text.length > MAX_CALLBACK_URL_LENGTH) return refuseLength()
  const read = readUrl(text)
  if (!('url' in read)) return read
  const { url, host } = read
  if (url.href.length > MAX_CALLBACK_URL_LENGTH) return refuseLength()
  const isExempt = isExemptTarget(url, rules)
  if (isExempt) return { ok: true, url, isExempt }
  if (url.protocol === 'http:' && !rules.allowHttp) {
    return refuse('url_not_https', 'must start with https://; plain http is taken in development only.')
  }
  return checkHost(url.hostname) ?? checkSpelling(host, url.hostname) ?? checkPort(url) ?? { ok: true, url, isExempt }
}

/** Parses an absolute http(s) URL that all parsers read alike. `host` is its host as given, the URL's has no root dot. */
function readUrl(text: string): { url: URL; host: string } | CallbackRefusal {
  // The WHATWG parser drops tabs and newlines, trims spaces and maps backslashes to slashes; other parsers do not.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters
  if (/[\u0000-\u0020\u007f\\]/.test(text)) {
    return refuse('url_invalid', 'holds a space, a control character or a backslash; percent-encode it.')
  }
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme !== undefined && scheme !== 'https' && scheme !== 'http') {
    return refuse('url_not_https', 'must start with https://.')
  }
  const authority = /^https?:\/\/([^/?#]+)/i.exec(text)?.[1]
  const url = URL.parse(text)
  if (authority === undefined || url === null) {
    return refuse('url_invalid', 'is not an absolute URL with a valid host and port; write https://host/path.')
  }
  // On the text, because the parser drops an empty user-info (`https://@host/`).
  if (authority.includes('@')) {
    return refuse('url_has_user_info', 'holds a user name or password; take out everything before the @.')
  }
  if (url.hostname.endsWith('.')) url.hostname = url.hostname.slice(0, -1)
  return { url, host: authority.replace(/:[0-9]*$/, '') }
}

function checkHost(hostname: string): CallbackRefusal | undefined {
  const literal = findLiteral(hostname)
  if (literal !== undefined) {
    if (classifyAddress(literal) === 'public') return undefined
    return refuseHost('is a loopback, private, link-local, metadata or otherwise non-public address')
  }
  const labels = hostname.split('.')
  if (hostname.length > 253 || labels.some((label) => !/^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label))) {
    return refuse(
      'url_invalid',
      'has a host that is not a valid DNS name: letters, digits and inner hyphens, 63 to a label.',
    )
  }
  const suffix = labels.at(-1)!
  if (labels.length === 1 || PRIVATE_SUFFIXES.has(suffix) || METADATA_NAMES.has(hostname)) {
    return refuseHost('is a local, internal or cloud-metadata name')
  }
  if (/^(?:[0-9]+|0x[0-9a-f]*)$/.test(suffix)) return refuseHost('ends in a number without being an address')
  return undefined
}

/** Refuses a public host that is written in a way which only some parsers and resolvers read as this host. */
function checkSpelling(given: string, hostname: string): CallbackRefusal | undefined {
  if (/[.\u3002\uff0e\uff61]$/.test(given))
    return refuse('url_invalid', 'has a host that ends with a dot; remove the dot.')
  if (!/^[0-9.]+$/.test(hostname) || given === hostname) return undefined
  return refuse('url_invalid', `has an address in another notation; write ${hostname}.`)
}

function checkPort(url: URL): CallbackRefusal | undefined {
  const service = findForbiddenPort(effectivePort(url))
  if (service === undefined) return undefined
  return refuse(
    'url_port_not_allowed',
    `uses port ${url.port}, which belongs to ${service}; use 443 or another HTTP port.`,
  )
}

/** The address inside a URL's host when it is a literal, without brackets; `undefined` for a name. */
export function findLiteral(hostname: string): string | undefined {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return parseAddress(bare) === undefined ? undefined : bare
}

/** The effective port of a URL. */
export function effectivePort(url: URL): number {
  if (url.port !== '') return Number(url.port)
  return url.protocol === 'https:' ? 443 : 80
}

/** Whether the deployment exempts this target by its name or literal address: the sink, or a listed private target. */
export function isExemptTarget(url: URL, rules: CallbackRules): boolean {
  const sink = rules.sinkUrl === undefined ? null : URL.parse(rules.sinkUrl)
  if (sink !== null && url.origin === sink.origin && url.pathname === sink.pathname) return true
  if (rules.allowedPrivateTargets.length === 0) return false
  const port = effectivePort(url)
  const literal = findLiteral(url.hostname)
  if (literal !== undefined) return isAllowedAddress(literal, port, rules)
  return rules.allowedPrivateTargets.some(
    (target) => target.kind === 'host' && target.host === url.hostname && (target.port ?? port) === port,
  )
}

/** Whether the operator listed this address with this port. */
export function isAllowedAddress(text: string, port: number, rules: CallbackRules): boolean {
  if (rules.allowedPrivateTargets.length === 0) return false
  const address = parseAddress(text)
  if (address === undefined) return false
  return rules.allowedPrivateTargets.some(
    (target) => target.kind === 'range' && isInRange(address, target.range) && (target.port ?? port) === port,
  )
}

/**
 * Parses `WEBHOOK_ALLOWED_PRIVATE_TARGETS` (docs/contract/webhooks.md#callback-guard): `host[:port]` or `CIDR[:port]`,
 * comma-separated, IPv6 in brackets (`[fd00::/8]:8443`). The empty text is the empty list. Throws an `Error` with the
 * position of the invalid entry, never with its text: it may be a URL with a password.
 */
export function parseAllowedTargets(text: string): AllowedTarget[] {
  if (text.trim() === '') return []
  return text.split(',').map((entry, index) => {
    const target = readAllowedTarget(entry.trim())
    if (!target)
      throw new Error(`must list ${TARGET_FORMS}, with no bits behind the prefix; entry ${index + 1} is none of these`)
    return target
  })
}

const TARGET_FORMS = 'private targets: host, host:port, 10.0.0.0/8, 10.0.0.0/8:8443 or [fd00::/8]:8443'

function readAllowedTarget(entry: string): AllowedTarget | undefined {
  const match = /^(?:\[([^\]]*)\](\/[0-9]+)?|([^:[\]]+))(?::([0-9]{1,5}))?$/.exec(entry)
  const port = match?.[4] === undefined ? undefined : Number(match[4])
  if (match === null || port === 0 || (port ?? 0) > 65535) return undefined
  if (match[1] !== undefined) {
    const range = parseRange(match[1] + (match[2] ?? ''))
    if (range?.family !== 6) return undefined
    return { kind: 'range', range, port }
  }
  const host = match[3]!.toLowerCase().replace(/\.$/, '')
  const range = parseRange(host)
  if (range !== undefined) return { kind: 'range', range, port }
  const labels = host.split('.')
  const isName = host.length <= 253 && labels.every((label) => /^[a-z0-9_-]{1,63}$/.test(label))
  if (!isName || /^(?:[0-9]+|0x[0-9a-f]*)$/.test(labels.at(-1)!)) return undefined
  return { kind: 'host', host, port }
}

function refuse(code: CallbackUrlCode, message: string): CallbackRefusal {
  return { ok: false, code, message }
}

function refuseLength(): CallbackRefusal {
  const message = `is over ${MAX_CALLBACK_URL_LENGTH} characters; shorten its path or query.`
  return { ...refuse('url_too_long', message), params: { limit: MAX_CALLBACK_URL_LENGTH } }
}

function refuseHost(why: string): CallbackRefusal {
  return refuse('url_host_not_public', `has a host that ${why}; use a host that the public internet reaches.`)
}
