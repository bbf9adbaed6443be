import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { PROVIDER_PATH, type ProviderSource } from './provider-source.ts'
import { disguiseJwt } from './state-id.ts'

/** Largest form that is read here, in bytes: as the provider's own limit. */
const FORM_LIMIT_BYTES = 57_344

/** The longest address that a form of the authorization endpoint is turned into. */
const ADDRESS_LIMIT = 8_192

/** The forms that name a token, whose handlers refuse a JWT as it is. */
const TOKEN_FORMS = new Set(['/revoke', '/introspect'])

/** The request as Koa reads it. */
type ProviderRequest = IncomingMessage & { originalUrl?: string }

/** What a mounted provider needs. */
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
  const base = new URL(baseUrl())
  request.originalUrl = url
  request.url = own.startsWith('/') ? own : `/${own}`
  request.headers['x-forwarded-proto'] = base.protocol.slice(0, -1)
  request.headers['x-forwarded-host'] = base.host
  request.headers['x-forwarded-for'] = address
  if (request.method === 'POST' && path === '/authorize') return redirectForm(request, response, baseUrl())
  const served = request.method === 'POST' && TOKEN_FORMS.has(path) ? await discloseToken(request) : request
  if (served === undefined) return refuseForm(response)
  const serve = await source.current()
  await serve(served, response)
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams | undefined> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers['content-type'] ?? '')) return undefined
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += (chunk as Buffer).length
    if (size > FORM_LIMIT_BYTES) return undefined
    chunks.push(chunk as Buffer)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString())
}

/**
 * An authorization request by POST (OpenID Connect Core section 3.1.2.1) goes on as the same request by GET: browsers send
 * the cookies of the person only with that one.
 */
async function redirectForm(request: IncomingMessage, response: ServerResponse, baseUrl: string): Promise<void> {
  const form = await readForm(request)
  const location = form && `${baseUrl}${PROVIDER_PATH}/authorize?${form}`
  if (location === undefined || location.length > ADDRESS_LIMIT) return refuseForm(response)
  response.writeHead(303, { location, 'cache-control': 'no-store' })
  response.end()
}

function refuseForm(response: ServerResponse): void {
  response.writeHead(400, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
  response.end(JSON.stringify({ error: 'invalid_request', error_description: 'the form cannot be read' }))
}

/** The same request with the token in a form that the provider's handler takes; undefined when the form is unreadable. */
async function discloseToken(request: ProviderRequest): Promise<ProviderRequest | undefined> {
  const form = await readForm(request)
  if (!form) return undefined
  const given = form.getAll('token')
  form.delete('token')
  for (const token of given) form.append('token', disguiseJwt(token))
  const body = Buffer.from(form.toString())
  const stream = new Readable({ read() {} })
  stream.push(body)
  stream.push(null)
  const { method, url, originalUrl, socket, httpVersion } = request
  const headers: IncomingMessage['headers'] = { ...request.headers, 'content-length': String(body.length) }
  delete headers['transfer-encoding']
  return Object.assign(stream, { method, url, originalUrl, socket, httpVersion, headers }) as unknown as ProviderRequest
}
