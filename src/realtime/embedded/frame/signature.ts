import { createHmac, hash, timingSafeEqual } from 'node:crypto'

/** An application: its id is in the paths of the HTTP API, its key in those of the WebSocket. */
export interface RealtimeApp {
  id: string
  key: string
  secret: string
}

/** The text that authorizes a subscription. `channelData` is part of it wherever a client sends it. */
export function buildSubscriptionText(socketId: string, channel: string, channelData?: string): string {
  return channelData === undefined ? `${socketId}:${channel}` : `${socketId}:${channel}:${channelData}`
}

/** The text that authorizes a sign-in. No channel name makes the same text, because names contain no `:`. */
export function buildSigninText(socketId: string, userData: string): string {
  return `${socketId}::user::${userData}`
}

/** The text that authorizes a request: method, path, and the parameters but the signature, by their names. */
export function buildRequestText(method: string, path: string, parameters: ReadonlyMap<string, string>): string {
  const pairs = [...parameters]
    .filter(([name]) => name !== 'auth_signature')
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .sort(([name], [other]) => (name < other ? -1 : 1))
  return `${method.toUpperCase()}\n${path}\n${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`
}

/** HMAC-SHA256 in lower-case hex. */
export function signText(secret: string, text: string): string {
  return createHmac('sha256', secret).update(text).digest('hex')
}

/** Whether `signature` is that of `text`. Takes the same time for every wrong signature. */
export function verifySignature(secret: string, text: string, signature: string): boolean {
  return isSameText(signText(secret, text), signature)
}

/** Whether `digest` is the MD5 of a body in hex, as the HTTP API demands it. */
export function verifyBodyDigest(body: Buffer, digest: string): boolean {
  return isSameText(hash('md5', body), digest)
}

/** Compares two texts; the time depends on their lengths only. */
export function isSameText(expected: string, given: string): boolean {
  const [wanted, other] = [Buffer.from(expected), Buffer.from(given)]
  return wanted.length === other.length && timingSafeEqual(wanted, other)
}

/** Validity of a token `<key>:<signature>`. */
export type TokenVerdict = 'valid' | 'missing' | 'wrong-key' | 'wrong-signature'

/** Classifies the `auth` of a subscription or a sign-in. */
export function classifyToken(app: RealtimeApp, token: string, text: string): TokenVerdict {
  if (token === '') return 'missing'
  const colon = token.indexOf(':')
  if (colon === -1 || !isSameText(app.key, token.slice(0, colon))) return 'wrong-key'
  return verifySignature(app.secret, text, token.slice(colon + 1)) ? 'valid' : 'wrong-signature'
}
