import { describe, expect, test } from 'vitest'
import { type Flow, openFlow } from '../harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import type { Visited } from '../harness/browser/visitor.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Attacks on the authorization endpoint (RFC 9700 section 4), each on a user who is signed in and has allowed the client. */

const WEB = 'https://app.example.com/callback'
const NATIVE = 'http://127.0.0.1/callback'

const fixture = await openForFile(startOauthFixture())
const user = await fixture.user()
const web = await openFlow(fixture, await fixture.client({ redirect_uris: [WEB] }))
const uris = [NATIVE, 'https://app.example.com/native', 'com.example.app:/callback']
const native = await openFlow(
  fixture,
  await fixture.client({ type: 'public', application_type: 'native', redirect_uris: uris }),
)
const browser = openBrowser()
await web.signIn(browser, { user, scope: 'openid email' })

/** Sends an authorization request with changed parameters; a parameter that is undefined is left out. */
async function ask(flow: Flow, change: Record<string, string | undefined> = {}, extra = ''): Promise<Visited> {
  const { url } = await flow.prepare({ scope: 'openid email' })
  const target = new URL(url)
  for (const [name, value] of Object.entries(change))
    if (value === undefined) target.searchParams.delete(name)
    else target.searchParams.set(name, value)
  return browser.visit(target.href + extra)
}

/** The request is refused on a page of the service: nothing goes to the address that it names. */
function expectNoRedirect(answer: Visited): void {
  expect(answer.headers.location).toBeUndefined()
  expect(answer.status).toBe(400)
}

/** The parameters of an answer at the client's redirect URI, in the query or the fragment. */
function readAnswer(answer: Visited): URLSearchParams {
  const url = new URL(answer.headers.location ?? 'about:blank')
  return url.hash === '' ? url.searchParams : new URLSearchParams(url.hash.slice(1))
}

/** The request is refused at the client's own redirect URI, without a code. */
function expectErrorAt(answer: Visited, uri: string, error: string): void {
  expect(answer.headers.location?.replace(/[?#].*/, ''), answer.body).toBe(uri)
  const parameters = readAnswer(answer)
  expect(parameters.get('error')).toBe(error)
  expect(parameters.get('code')).toBeNull()
  expect(parameters.get('iss')).toBe(fixture.issuer)
}

test('the request that the attacks change is answered with a code', async () => {
  const answer = await ask(web)
  expect(answer.headers.location).toMatch(/^https:\/\/app\.example\.com\/callback\?.*\bcode=/)
})

describe('a redirect URI is refused', () => {
  test.each([
    ['with a slash at the end', `${WEB}/`],
    ['with another path', 'https://app.example.com/other'],
    ['with a longer path', `${WEB}/evil`],
    ['with a query', `${WEB}?next=https://evil.example`],
    ['with a fragment', `${WEB}#evil`],
    ['with an explicit port', 'https://app.example.com:443/callback'],
    ['with another port', 'https://app.example.com:8443/callback'],
    ['without TLS', 'http://app.example.com/callback'],
    ['with the host in capitals', 'https://APP.example.com/callback'],
    ['on a subdomain', 'https://evil.app.example.com/callback'],
    ['on a host that ends the same', 'https://evilapp.example.com/callback'],
    ['on a host that begins the same', 'https://app.example.com.evil.example/callback'],
    ['with the registered host as user name', 'https://app.example.com@evil.example/callback'],
    ['with a backslash before another host', 'https://evil.example\\@app.example.com/callback'],
    ['with dot segments', 'https://app.example.com/x/../callback'],
    ['with encoded dot segments', 'https://app.example.com/%2e%2e/callback'],
    ['with an encoded slash', 'https://app.example.com%2fcallback'],
    ['with a space at the end', `${WEB} `],
    ['with a line break', `${WEB}\r\nx-evil: 1`],
    ['with a null character', `${WEB}\u0000`],
    ['without a scheme', '//app.example.com/callback'],
    ['that is relative', '/callback'],
    ['that is a script', 'javascript:alert(1)//https://app.example.com/callback'],
    ['that is data', 'data:text/html,<script>1</script>'],
    ['that is the sign-out of the service', 'https://app.example.com/auth/sign-out'],
  ])('%s', async (_name, uri) => expectNoRedirect(await ask(web, { redirect_uri: uri })))

  test('that is missing', async () => expectNoRedirect(await ask(web, { redirect_uri: undefined })))

  test('that is given twice', async () =>
    expectNoRedirect(await ask(web, {}, `&redirect_uri=${encodeURIComponent('https://evil.example/')}`)))

  test.each([
    ['on the loopback of a web client', 'web', 'http://127.0.0.1:4711/callback'],
    ['on the loopback with another path', 'native', 'http://127.0.0.1:50000/evil'],
    ['on the loopback by name, where the address is registered', 'native', 'http://localhost:50000/callback'],
    ['on a host that begins like the loopback', 'native', 'http://127.0.0.1.evil.example:50000/callback'],
    ['on the loopback with a user name', 'native', 'http://127.0.0.1:50000@evil.example/callback'],
    ['of a native client on https with another port', 'native', 'https://app.example.com:8443/native'],
    ['with the custom scheme of another app', 'native', 'com.example.app2:/callback'],
    ['with the custom scheme and another path', 'native', 'com.example.app:/evil'],
  ] as const)('%s', async (_name, kind, uri) =>
    expectNoRedirect(await ask(kind === 'web' ? web : native, { redirect_uri: uri })),
  )
})

describe('PKCE cannot be weakened', () => {
  test.each([
    ['by leaving the challenge out', { code_challenge: undefined, code_challenge_method: undefined }],
    ['by the method plain', { code_challenge_method: 'plain' }],
    ['by leaving the method out, which means plain', { code_challenge_method: undefined }],
    ['by an unknown method', { code_challenge_method: 's256' }],
    ['by an empty challenge', { code_challenge: '' }],
    ['by a short challenge', { code_challenge: 'abc' }],
    ['by a challenge with other characters', { code_challenge: '='.repeat(43) }],
  ])('%s', async (_name, change) => expectErrorAt(await ask(web, change), WEB, 'invalid_request'))
})

describe('a request is refused', () => {
  test.each([
    ['for a token in the redirect', { response_type: 'token' }, 'unsupported_response_type'],
    ['for an ID token in the redirect', { response_type: 'id_token', nonce: 'n' }, 'unsupported_response_type'],
    ['for code and token', { response_type: 'code token' }, 'unsupported_response_type'],
    ['without a response type', { response_type: undefined }, 'invalid_request'],
    ['for a scope that the client may not ask for', { scope: 'openid webhook:write' }, 'invalid_scope'],
    ['for the API of somebody else', { resource: 'https://evil.example/api' }, 'invalid_target'],
    ['with an unsigned request object', { request: 'eyJhbGciOiJub25lIn0.e30.' }, 'request_not_supported'],
    [
      'with a request object at an address',
      { request_uri: 'https://evil.example/request' },
      'request_uri_not_supported',
    ],
    ['with a made-up pushed request', { request_uri: 'urn:ietf:params:oauth:request_uri:abc' }, 'invalid_request_uri'],
    ['with an unknown prompt', { prompt: 'sudo' }, 'invalid_request'],
    ['with prompt none beside another', { prompt: 'none login' }, 'invalid_request'],
  ])('%s', async (_name, change, error) => expectErrorAt(await ask(web, change), WEB, error))

  test('for an unknown client', async () =>
    expectNoRedirect(await ask(web, { client_id: '00000000-0000-7000-8000-000000000000' })))

  test('for a client id that is no id', async () => expectNoRedirect(await ask(web, { client_id: "' or 1=1 --" })))

  test.each(['client_id', 'scope', 'state', 'response_type', 'code_challenge', 'nonce', 'prompt'])(
    'with two values of %s',
    async (name) => {
      const answer = await ask(
        web,
        { [name]: name === 'client_id' ? web.client.client_id : 'openid' },
        `&${name}=openid`,
      )
      expect(answer.headers.location ?? '').not.toContain('code=')
    },
  )
})

describe('what a request says', () => {
  const SCRIPT = '<script>alert(1)</script>'

  test.each(['client_id', 'redirect_uri', 'scope', 'state', 'prompt', 'response_type', 'ui_locales'])(
    'in %s is not part of the markup of the error page',
    async (name) => {
      const answer = await ask(web, { redirect_uri: 'https://evil.example', [name]: SCRIPT })
      expect(answer.body).not.toContain(SCRIPT)
      expect(answer.headers['content-security-policy']).toContain("default-src 'none'")
      expect(answer.headers['cache-control']).toBe('no-store')
    },
  )

  test('in the state cannot add a header to the redirect', async () => {
    const answer = await ask(web, { state: 'a\r\nset-cookie: evil=1' })
    expect(JSON.stringify(answer.headers['set-cookie'] ?? [])).not.toContain('evil')
  })

  test('is forgotten when the page of the service is opened in a frame', async () => {
    const { url } = await web.prepare({ parameters: { prompt: 'consent' } })
    const page = await fixture.walk(browser, url, { decision: 'stop' })
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'")
    expect(page.headers['x-frame-options']).toBe('DENY')
    expect(page.headers['referrer-policy']).toBe('same-origin')
  })
})

describe('the headers of a request', () => {
  test.each([
    ['host', 'evil.example'],
    ['x-forwarded-host', 'evil.example'],
    ['forwarded', 'host=evil.example'],
    ['x-original-url', '/evil'],
    ['x-http-method-override', 'DELETE'],
  ])('%s change no address that the service names', async (name, value) => {
    const { url } = await web.prepare({ parameters: { prompt: 'login' } })
    const { pathname, search } = new URL(url)
    const answer = await fixture.app.anonymous('GET', pathname + search, undefined, { [name]: value })
    expect(answer.headers.location).toMatch(/^\/auth\/oauth\?id=/)
    expect(JSON.stringify(answer.headers)).not.toContain('evil')
  })
})
