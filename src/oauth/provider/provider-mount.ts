import type { IncomingMessage, ServerResponse } from 'node:http'
import { disguiseJwt } from '../grant/state-id.ts'
import { handOver } from './overrides.ts'
import { PROVIDER_PATH, type ProviderSource } from './provider-source.ts'

/** Limits of the body and the target of a request: data of strangers is stored until it expires. */
const BODY_LIMIT_BYTES = 8_192
const TARGET_LIMIT = 8_192

/** The forms with a token, whose handlers refuse a plain JWT. */
const TOKEN_FORMS = new Set(['/revoke', '/introspect'])

/** The forms of a browser, which continue by GET. */
const BROWSER_FORMS = new Set(['/authorize', '/end-session'])

/** The request as Koa reads it. */
type ProviderRequest = IncomingMessage & { originalUrl?: string }

/** The last read address of the service: it changes once, when the service listens. */
let lastBase = { text: '', protocol: '', host: '' }

function readBase(text: string): { protocol: string; host: string } {
  if (lastBase.text === text) return lastBase
  const { protocol, host } = new URL(text)
  lastBase = { text, protocol: protocol.slice(0, -1), host }
  return lastBase
}

/** Dependencies of a mounted provider. */
export interface ProviderMount {
  source: ProviderSource
  baseUrl: () => string
}

/**
 * Serves a request for the provider, which is mounted at `PROVIDER_PATH`. The provider takes the address of the service
 * from BASE_URL and never from the request's `Host`, so that no link, audience or issuer follows what a client sends.
 */
export async function serveProvider(
  { source, baseUrl }: ProviderMount,
  request: ProviderRequest,
  { response, address }: { response: ServerResponse; address: string },
): Promise<void> {
  const url = request.url ?? ''
  const own = url.slice(PROVIDER_PATH.length) || '/'
  const path = own.split('?', 1)[0] ?? ''
  const base = readBase(baseUrl())
  request.originalUrl = url
  request.url = own.startsWith('/') ? own : `/${own}`
  request.headers['x-forwarded-proto'] = base.protocol
  request.headers['x-forwarded-host'] = base.host
  request.headers['x-forwarded-for'] = address
  if (url.length > TARGET_LIMIT) return refuseForm(response)
  if (request.method === 'POST') {
    const body = await readBody(request)
    if (isForm(request) && BROWSER_FORMS.has(path))
      return redirectForm(body, response, baseUrl() + PROVIDER_PATH + path)
    if (!body || (!isForm(request) && (BROWSER_FORMS.has(path) || TOKEN_FORMS.has(path)))) return refuseForm(response)
    handOver(request, TOKEN_FORMS.has(path) ? disguiseTokens(body) : body)
  }
  const serve = await source.current()
  await serve(request, response)
}

const isForm = ({ headers }: IncomingMessage) =>
  /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '')

/** The body of a request; undefined when it is too large, or its client has disconnected. */
function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_LIMIT_BYTES) chunks.push(chunk)
      // The rest is read and dropped.
      else resolve(undefined)
    })
    // Of one that is too large, this comes too late.
    request.on('end', () => resolve(Buffer.concat(chunks)))
    request.on('error', () => resolve(undefined))
    request.on('close', () => resolve(undefined))
  })
}

/**
 * A request by POST for an authorization (OpenID Connect Core section 3.1.2.1) or a sign-out (RP-Initiated Logout section
 * 2) continues by GET, with the user's cookies.
 */
function redirectForm(form: Buffer | undefined, response: ServerResponse, address: string): void {
  const location = form && `${address}?${new URLSearchParams(form.toString())}`
  if (location === undefined || location.length > TARGET_LIMIT) return void refuseForm(response)
  response.writeHead(303, { location, 'cache-control': 'no-store' })
  response.end()
}

function refuseForm(response: ServerResponse): void {
  response.writeHead(400, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
  response.end(
    JSON.stringify({
      error: 'invalid_request',
      error_description: 'the request is larger than 8 KiB, or cannot be read',
    }),
  )
}

/** The form with its token in the form that the provider's handler accepts. */
function disguiseTokens(form: Buffer): Buffer {
  const fields = new URLSearchParams(form.toString())
  const given = fields.getAll('token')
  fields.delete('token')
  for (const token of given) fields.append('token', disguiseJwt(token))
  return Buffer.from(fields.toString())
}
