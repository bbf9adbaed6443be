import { hasPlainHost } from '../../http/request/plain-host.ts'
import { isEmailAddress } from '../../http/shape/formats.ts'
import { listRefusedSmtpOptions } from '../../identity/mail/smtp-transport.ts'
import { findHostFault, listHosts } from '../../postgres/connection/host-list.ts'

/** Parsers of settings. Each throws an Error whose message completes "<NAME> ...", without the value. */

/** Any text. */
export const text = (value: string): string => value

/** One of these words. */
export function oneOf<const Choice extends string>(...choices: Choice[]) {
  return (value: string): Choice => {
    const found = choices.find((choice) => choice === value)
    if (found === undefined) throw new Error(`must be one of ${choices.join(', ')}`)
    return found
  }
}

/** `true` or `false`. */
export function flag(value: string): boolean {
  if (value === 'true') return true
  if (value === 'false') return false
  throw new Error('must be true or false')
}

/** A cluster of a realtime provider, part of a host name. Blank counts as unset. */
export function cluster(value: string): string {
  if (!/^[A-Za-z0-9-]{0,63}$/.test(value.trim())) throw new Error('must have letters, digits and hyphens only')
  return value.trim()
}

/** The name or address of a host. */
export function hostName(value: string): string {
  if (URL.parse(`http://${value}/`)?.host !== value.toLowerCase() || /:\d+$/.test(value.replace(/^\[.*\]/, '')))
    throw new Error('must be a host name or an address, without scheme and port')
  return value.toLowerCase()
}

/** A whole number within these bounds. */
export function integer(from: number, to: number) {
  return (value: string): number => {
    const number = Number(value)
    if (!/^\d+$/.test(value) || number < from || number > to)
      throw new Error(`must be a whole number from ${from} to ${to}`)
    return number
  }
}

/** An http or https URL without query, fragment and user; without a trailing slash. */
export function httpUrl(value: string): string {
  const url = URL.parse(value)
  if (!url || !['http:', 'https:'].includes(url.protocol)) throw new Error('must be an http or https URL')
  if (url.search || url.hash || url.username || url.password) throw new Error('must have no query, fragment or user')
  if (!hasPlainHost(url)) throw new Error('must have a host of letters, digits, hyphens and dots')
  return url.href.replace(/\/+$/, '')
}

/** An http or https URL for requests: it may have a query, but no fragment and no user. */
export function receiverUrl(value: string): string {
  const url = URL.parse(value)
  if (!url || !['http:', 'https:'].includes(url.protocol)) throw new Error('must be an http or https URL')
  if (url.hash || url.username || url.password) throw new Error('must have no fragment or user')
  return url.href
}

/** A connection string. */
export function postgresUrl(value: string): string {
  const fault = findHostFault(value)
  if (fault !== undefined) throw new Error(fault)
  return value
}

/** The URL of a replica, or of an address that leads to several. */
export function replicaUrl(value: string): string {
  if (listHosts(value).length > 1) throw new Error('must name one host, such as an address that leads to the replicas')
  if (!['postgres:', 'postgresql:'].includes(URL.parse(value)?.protocol ?? ''))
    throw new Error('must be a postgres:// or postgresql:// URL')
  return value
}

/** The URL of a mail server. */
export function smtpUrl(value: string): string {
  const url = URL.parse(value)
  if (!url || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '')
    throw new Error('must be an smtp:// or smtps:// URL')
  const refused = listRefusedSmtpOptions(url)
  if (refused.length > 0)
    throw new Error(
      `must not have ${refused.length === 1 ? 'an option' : 'options'} that weaken TLS or are not known: only ignoreTLS=true, name, pool, maxConnections and maxMessages are taken`,
    )
  return value
}

/** `name@example.com` or `Name <name@example.com>`. */
export function mailbox(value: string): string {
  const [, address = value] = /^[^<>"]*<([^<>]+)>$/.exec(value) ?? []
  email(address)
  // A line break would begin another header of the mail.
  if (/[\p{Cc}]/u.test(value)) throw new Error('must be one line')
  return value
}

/** An e-mail address. */
export function email(value: string): string {
  if (!/^[^\s@]+@[^\s@]+$/.test(value) || value.length > 254) throw new Error('must be an e-mail address')
  return value
}

/** Comma-separated texts. */
export function list(value: string): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

/** Comma-separated origins, each written as the URL parser writes it: scheme, host and port in lower case. */
export function origins(value: string): string[] {
  const parts = list(value)
  const isOrigin = (part: string) => {
    const url = /^https?:[^*]+$/.test(part) ? URL.parse(part) : null
    return url !== null && url.origin === part && hasPlainHost(url)
  }
  if (!parts.every(isOrigin)) throw new Error('must list origins such as https://app.example.com, without a path')
  return parts
}

/** A host whose first label may be `*`. Two labels follow at least, since `*.com` would cover every site. */
const WILDCARD_HOST = /^https:\/\/\*\.((?:[a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}(?::\d{1,5})?)$/

/**
 * Comma-separated origins of pages that may frame another: `https://app.example.com`, or `https://*.example.com` for all
 * subdomains. Over TLS, except on this machine. They become sources of a policy (CSP Level 3 section 2.3.1).
 */
export function frameAncestors(value: string): string[] {
  const parts = list(value)
  const isAncestor = (part: string) => {
    const host = WILDCARD_HOST.exec(part)?.[1]
    const url = URL.parse(host === undefined ? part : `https://${host}`)
    const isOrigin = url !== null && hasPlainHost(url) && url.origin === (host === undefined ? part : `https://${host}`)
    const isLocal = url?.protocol === 'http:' && ['localhost', '127.0.0.1'].includes(url.hostname)
    return isOrigin && (url.protocol === 'https:' || isLocal)
  }
  if (!parts.every(isAncestor))
    throw new Error(
      'must list https:// origins such as https://app.example.com or https://*.example.com, without a path',
    )
  return parts
}

/** Comma-separated secrets, the newest first; each at least 32 bytes (docs/contract/sessions.md#session-jwt). */
export function secrets(value: string): string[] {
  const parts = list(value)
  if (parts.length === 0) throw new Error('must hold at least one secret')
  if (parts.some((part) => Buffer.byteLength(part) < 32))
    throw new Error('must hold secrets of at least 32 bytes each; make one with: openssl rand -base64 32')
  return parts
}

/**
 * Secrets of the access-token hook, each at least 32 bytes of text: `v1,whsec_<base64>` as Supabase Auth writes them,
 * separated by `|` or commas; without the `v1,`.
 */
export function hookSecrets(value: string): string[] {
  return secrets(value.replaceAll('v1,', '').replaceAll('|', ','))
}

/** A password of 8 to 256 characters. */
export function password(value: string): string {
  if (value.length < 8 || value.length > 256) throw new Error('must have 8 to 256 characters')
  return value
}

/** The name of a product, 1 to 60 characters. */
export function brandName(value: string): string {
  if (value.trim() === '' || value.length > 60) throw new Error('must have 1 to 60 characters')
  return value.trim()
}

/** A colour as pages write it, in lower case. */
export function hexColor(value: string): string {
  if (!/^#[0-9a-f]{6}$/i.test(value)) throw new Error('must be a colour of six hexadecimal digits: #4f46e5')
  return value.toLowerCase()
}

/** A domain of at least two labels, in lower case. */
export function cookieDomain(value: string): string {
  if (!/^(?:[a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}$/.test(value))
    throw new Error('must be a domain in lower case, without a leading dot: example.com')
  return value
}

/** Comma-separated domains of e-mail addresses, in lower case. */
export function emailDomains(value: string): string[] {
  const parts = list(value)
  if (!parts.every((part) => isEmailAddress(`a@${part}`) && part === part.toLowerCase()))
    throw new Error('must list domains in lower case, such as example.com')
  return parts
}

/** A webhook secret: one of 32 bytes, or a given one (docs/contract/webhooks.md#secret-of-a-known-value). */
export function sinkSecret(value: string): string {
  const bytes = /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(value) ? Buffer.from(value.slice('whsec_'.length), 'base64') : null
  if (!bytes || bytes.length < 24 || bytes.length > 64 || `whsec_${bytes.toString('base64')}` !== value)
    throw new Error('must be a webhook secret: whsec_ and the base64 of 24 to 64 bytes')
  return value
}

/** A bearer token (RFC 6750 section 2.1). */
export function bearerToken(value: string): string {
  if (!/^[A-Za-z0-9._~+/=-]+$/.test(value)) throw new Error('must be one token without spaces or line breaks')
  return value
}

/** A bearer token long enough to resist guessing. */
export function metricsToken(value: string): string {
  if (value.length < 16) throw new Error('must have at least 16 characters; make one with: openssl rand -base64 32')
  return bearerToken(value)
}

/** The name of a stream of NATS. */
export function streamName(value: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(value)) throw new Error('must be 1 to 64 letters, digits, underscores and hyphens')
  return value
}

/** The subject above those of the processes of realtime. JetStream would store and answer what is sent below `ev`. */
export function busSubject(value: string): string {
  if (!/^(?!ev(?:\.|$))[A-Za-z0-9_-]{1,32}(?:\.[A-Za-z0-9_-]{1,32}){0,3}$/.test(value))
    throw new Error(
      'must be 1 to 4 words of at most 32 letters, digits, underscores and hyphens, separated by dots, of which the first is not ev',
    )
  return value
}

/** Copies of a stream: an odd number, so that a majority exists. */
export function copies(value: string): 1 | 3 | 5 {
  return Number(oneOf('1', '3', '5')(value)) as 1 | 3 | 5
}

/** The seed of an nkey of a user of NATS. */
export function nkeySeed(value: string): string {
  if (!/^SU[A-Z2-7]{56}$/.test(value)) throw new Error('must be the seed of a user of NATS: SU and 56 characters')
  return value
}
