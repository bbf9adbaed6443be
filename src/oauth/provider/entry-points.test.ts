import { expect, test } from 'vitest'
import { startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

interface Sent {
  issuer: string
  headers?: Record<string, string>
}

const open = await openForFile(startOauthFixture({ env: { OAUTH_REGISTRATION: 'true' } }))
const closed = await openForFile(startOauthFixture())

const PREFLIGHT = { origin: 'https://app.example.com', 'access-control-request-method': 'POST' }

async function send(method: string, path: string, { issuer, headers = PREFLIGHT }: Sent = open) {
  const answer = await fetch(issuer + path, { method, headers, redirect: 'manual' })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, isProblem: readType(answer) === PROBLEM }
}

const PROBLEM = 'application/problem+json'
const readType = ({ headers }: Response) => headers.get('content-type')?.split(';', 1)[0]

/** The methods of a path that the library answers. */
async function listServed(path: string): Promise<string[]> {
  const served: string[] = []
  for (const method of METHODS) {
    const { status, text, isProblem } = await send(method, path)
    // The library's own answer for what it does not serve.
    expect([method, text]).not.toEqual([method, 'Not Found'])
    if (isProblem) expect([method, status]).toEqual([method, 405])
    else served.push(method)
  }
  return served
}

test.each([
  ['/.well-known/openid-configuration', ['GET', 'HEAD', 'OPTIONS']],
  ['/authorize', ['GET', 'HEAD', 'POST']],
  ['/authorize/some-uid', ['GET', 'HEAD']],
  ['/token', ['POST', 'OPTIONS']],
  ['/TOKEN', ['POST', 'OPTIONS']],
  ['/userinfo', ['GET', 'HEAD', 'POST', 'OPTIONS']],
  ['/jwks', ['GET', 'HEAD', 'OPTIONS']],
  ['/revoke', ['POST', 'OPTIONS']],
  ['/introspect', ['POST', 'OPTIONS']],
  ['/par', ['POST', 'OPTIONS']],
  ['/end-session', ['GET', 'HEAD', 'POST']],
  ['/end-session/confirm', ['POST']],
  ['/end-session/success', ['GET', 'HEAD']],
  ['/device-authorization', ['POST', 'OPTIONS']],
  ['/device', ['GET', 'HEAD', 'POST']],
  ['/device/some-uid', ['GET', 'HEAD']],
  ['/register', ['POST']],
  ['/register/some-client', ['GET', 'HEAD']],
])('%s is served by %j; another method is a 405 that names them', async (path, methods) => {
  expect(await listServed(path)).toEqual(methods)
  const { status, headers, text } = await send('PUT', path)
  expect([status, headers.get('allow'), JSON.parse(text).code]).toEqual([405, methods.join(', '), 'method_not_allowed'])
})

test.each([
  ['/token', 'POST'],
  ['/userinfo', 'GET, HEAD, POST'],
  ['/authorize', 'GET, HEAD, POST'],
])('an OPTIONS at %s that is no preflight is a 405 that names %s', async (path, allow) => {
  for (const headers of [{}, { origin: PREFLIGHT.origin }, { 'access-control-request-method': '' }]) {
    const answer = await send('OPTIONS', path, { ...open, headers: headers as Record<string, string> })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    expect(JSON.parse(answer.text)).toMatchObject({ code: 'method_not_allowed' })
  }
})

test.each(['', '/', '/clients', '/token/', '/token/x', '/%74oken', '/scope', '/end-session/other', '/constructor'])(
  '%j is a 404 like every path that does not exist',
  async (path) => {
    for (const method of ['GET', 'POST']) {
      const { status, headers, text, isProblem } = await send(method, path)
      expect([status, isProblem]).toEqual([404, true])
      expect(JSON.parse(text)).toMatchObject({ code: 'not_found', request_id: headers.get('x-request-id') })
    }
  },
)

test('registration does not exist while it is off', async () => {
  for (const path of ['/register', '/register/some-client', '/Register'])
    expect(await send('POST', path, closed)).toMatchObject({ status: 404, isProblem: true })
})
