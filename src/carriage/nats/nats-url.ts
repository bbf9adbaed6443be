import { isIP } from 'node:net'
import type { NatsAuth } from './nats-connection.ts'

/** The servers of `EVENT_LOG_URL`, and the user of its first URL that names one. */
export interface NatsAddress {
  servers: readonly string[]
  isTls: boolean
  auth: NatsAuth
}

const SCHEMES = ['nats:', 'tls:']
const DEFAULT_PORT = '4222'
const SERVERS_LIMIT = 16

/**
 * Parses comma-separated URLs `nats://host:4222` or `tls://host:4222`, with `user:password@` or `token@` in front of a
 * host. Throws an Error whose message completes "EVENT_LOG_URL ...", without the value. Pure.
 */
export function parseNatsUrl(text: string): NatsAddress {
  const urls = text.split(',').map((part) => URL.parse(part.trim()))
  if (urls.length > SERVERS_LIMIT) throw new Error(`must have at most ${SERVERS_LIMIT} URLs`)
  const known = urls.filter((url) => url !== null && SCHEMES.includes(url.protocol) && url.hostname !== '')
  if (known.length < urls.length || known.some((url) => !/^\/?$/.test(`${url?.pathname}${url?.search}${url?.hash}`)))
    throw new Error('must be one or more URLs nats://host:4222 or tls://host:4222, separated by commas, without a path')
  const checked = known as URL[]
  if (new Set(checked.map((url) => url.protocol)).size > 1) throw new Error('must not mix nats:// and tls://')
  // The client checks a certificate by the host name only.
  if (checked.some((url) => url.protocol === 'tls:' && isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0))
    throw new Error('must have names of hosts, not addresses, in tls:// URLs')
  const logins = new Set(checked.map(({ username, password }) => `${username}:${password}`).filter((it) => it !== ':'))
  if (logins.size > 1) throw new Error('must name the same user in every URL that names one')
  const named = checked.find(({ username }) => username !== '')
  return {
    servers: checked.map((url) => `${url.hostname}:${url.port || DEFAULT_PORT}`),
    isTls: checked[0]?.protocol === 'tls:',
    auth: named ? readLogin(named) : { kind: 'none' },
  }
}

function readLogin({ username, password }: URL): NatsAuth {
  const user = decode(username)
  return password === '' ? { kind: 'token', token: user } : { kind: 'password', user, password: decode(password) }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('must have a user and a password that are percent-encoded')
  }
}
