import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { parseCookie } from 'cookie'
import { systemRandom } from '../../src/base/random.ts'
import { buildBrowserKeys } from '../../src/identity/pages/browser/browser-key.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import type { Breakage, BreakSwitch } from './breakage.ts'

/** Headers that each breakage removes from every answer. */
const LOST_HEADERS: Partial<Record<Breakage, readonly string[]>> = {
  'pages can be framed': ['content-security-policy', 'x-frame-options'],
  'answers are cached': ['cache-control', 'pragma'],
  'pages send their address on': ['referrer-policy'],
}

/** Puts the breakages in front of the service that are not in the provider. */
export function makeServerBreakable(server: Server, state: BreakSwitch): void {
  const listeners = server.listeners('request') as RequestListener[]
  server.removeAllListeners('request')
  server.on('request', async (request, response) => {
    Object.assign(request, { originalHeaders: { ...request.headers } })
    loseHeaders(response, (state.on && LOST_HEADERS[state.on]) ?? [])
    if (state.on === 'every origin reads pages') response.setHeader('access-control-allow-origin', '*')
    if (state.on === 'redirects repeat the form') repeatForms(response)
    const served = await changeRequest(request, state.on)
    for (const listener of listeners) listener(served as IncomingMessage as never, response as never)
  })
}

function loseHeaders(response: ServerResponse, names: readonly string[]): void {
  if (names.length === 0) return
  const write = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse
  response.writeHead = ((...args: unknown[]) => {
    for (const name of names) response.removeHeader(name)
    const headers = args.at(-1)
    if (typeof headers === 'object' && headers !== null && !Array.isArray(headers))
      for (const name of Object.keys(headers))
        if (names.includes(name.toLowerCase())) delete (headers as Record<string, unknown>)[name]
    return write(...args)
  }) as typeof response.writeHead
}

/** Answers 307 in place of 303: the browser then posts the form of the user to the next address too. */
function repeatForms(response: ServerResponse): void {
  const write = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse
  response.writeHead = ((status: number, ...rest: unknown[]) =>
    write(status === 303 ? 307 : status, ...rest)) as typeof response.writeHead
}

const browserKeys = buildBrowserKeys({
  secrets: TEST_SECRETS.sessionJwt,
  random: systemRandom,
  issuer: () => 'http://localhost',
})

async function changeRequest(request: IncomingMessage, breakage: Breakage | undefined): Promise<IncomingMessage> {
  const url = new URL(request.url ?? '/', 'http://service.example')
  if (breakage === 'origins of forms are not checked' && request.headers.origin !== undefined) {
    request.headers.origin = `http://${request.headers.host}`
    delete request.headers['sec-fetch-site']
  }
  if (breakage === 'PKCE methods are all taken for S256' && url.searchParams.has('code_challenge')) {
    url.searchParams.set('code_challenge_method', 'S256')
    request.url = url.pathname + url.search
  }
  if (breakage === 'the last of several values counts') {
    request.url = url.pathname + (url.search && `?${new URLSearchParams(Object.fromEntries(url.searchParams))}`)
    if (request.method === 'POST') return changeForm(request, (form) => new URLSearchParams(Object.fromEntries(form)))
  }
  if (breakage !== 'tokens of forms are not checked' || request.method !== 'POST') return request
  return changeForm(request, (form) => {
    form.set(
      'form_token',
      browserKeys.buildFormToken(parseCookie(request.headers.cookie ?? '').signalbox_browser ?? ''),
    )
    return form
  })
}

async function changeForm(
  request: IncomingMessage,
  change: (form: URLSearchParams) => URLSearchParams,
): Promise<IncomingMessage> {
  const body = Buffer.from(change(new URLSearchParams(Buffer.concat(await request.toArray()).toString())).toString())
  const { method, url, socket, httpVersion, rawHeaders } = request
  const headers = { ...request.headers, 'content-length': String(body.length) }
  const { originalHeaders } = request as { originalHeaders?: unknown }
  const raw = { method, url, socket, httpVersion, headers, rawHeaders, originalHeaders }
  return Object.assign(Readable.from([body]), raw) as unknown as IncomingMessage
}
