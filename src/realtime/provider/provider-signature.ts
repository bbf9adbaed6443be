import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { ProviderApp } from './provider-settings.ts'

type Keys = Pick<ProviderApp, 'key' | 'secret'>

export interface ProviderRequest {
  method: 'GET' | 'POST'
  /** Below `/apps/<id>`, such as `/channels`. */
  path: string
  /** Neither names nor values need escapes. */
  query?: Readonly<Record<string, string>>
  /** JSON text. */
  body?: string
}

/**
 * The path of a request with its signed query (documentation of Pusher Channels, "HTTP API reference", "Generating
 * authentication signatures"). The server takes it for 600 s around `now`.
 */
export function signRequest(app: Keys & Pick<ProviderApp, 'appId'>, request: ProviderRequest, now: Date): string {
  const path = `/apps/${app.appId}${request.path}`
  const parameters: Record<string, string> = {
    ...request.query,
    auth_key: app.key,
    auth_timestamp: String(Math.floor(now.getTime() / 1000)),
    auth_version: '1.0',
    ...(request.body !== undefined && { body_md5: createHash('md5').update(request.body).digest('hex') }),
  }
  const query = Object.keys(parameters)
    .sort()
    .map((name) => `${name}=${parameters[name]}`)
    .join('&')
  const signature = signText(app.secret, `${request.method}\n${path}\n${query}`)
  return `${path}?${query}&auth_signature=${signature}`
}

/** A subscription of a connection; `channelData` is the JSON text of a member of a presence channel. */
interface SignedSubscription {
  socketId: string
  channel: string
  channelData?: string
}

/** `<key>:<hex>`: lets the connection `socketId` join the channel (the same documentation, "Auth signatures"). */
export function signSubscription(app: Keys, { socketId, channel, channelData }: SignedSubscription): string {
  const data = channelData === undefined ? '' : `:${channelData}`
  return `${app.key}:${signText(app.secret, `${socketId}:${channel}${data}`)}`
}

/** `<key>:<hex>`: identifies the user of the connection `socketId`; `userData` is JSON text. */
export function signUser(app: Keys, { socketId, userData }: { socketId: string; userData: string }): string {
  return `${app.key}:${signText(app.secret, `${socketId}::user::${userData}`)}`
}

/** Whether a webhook of the provider is signed with the secret: lower-case hex HMAC-SHA256 over the bytes of its body. */
export function isWebhookSignature(app: Keys, { signature, body }: { signature: string; body: Buffer }): boolean {
  const expected = createHmac('sha256', app.secret).update(body).digest('hex')
  const [given, wanted] = [Buffer.from(signature), Buffer.from(expected)]
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

function signText(secret: string, text: string): string {
  return createHmac('sha256', secret).update(text).digest('hex')
}
