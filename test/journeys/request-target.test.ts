import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { REDIRECT_URI, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { limit } from '../harness/run/wait.ts'

/** One strict request a minute: a second registration has to be refused however its target is written. */
const fixture = await openForFile(
  startOauthFixture({ env: { OAUTH_REGISTRATION: 'true', RATE_LIMIT_STRICT_PER_MINUTE: '1' } }),
)

const REGISTER = '/api/v3/oauth/register'

/** Sends bytes as they are: clients of the platform would mend the target. */
async function send(method: string, target: string, body = '', headers = ''): Promise<number> {
  const socket = connect(fixture.port, '127.0.0.1')
  const head = `${method} ${target} HTTP/1.1\r\nhost: service.test\r\nconnection: close\r\n${headers}`
  socket.write(Buffer.from(`${head}content-length: ${body.length}\r\n\r\n${body}`, 'latin1'))
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  await limit(once(socket, 'close'), 60_000, 'the end of the connection')
  return Number(text.split(' ')[1])
}

const register = (target: string) =>
  send('POST', target, JSON.stringify({ redirect_uris: [REDIRECT_URI] }), 'content-type: application/json\r\n')

describe('a request target', () => {
  test.each([
    '/livez#x',
    '/livez?a=#',
    '/#',
    '#',
    '/docs#/a',
    '/auth/sign-in#x',
    '/api/v3/auth/login/local#x',
    '/api/v3/oauth/token#',
    '/api/v3/oauth/.well-known/openid-configuration#x',
    '/apps/1/events#x',
    '/nothing#x',
    'http://service.test/livez#x',
    '*#',
  ])('with # is refused for every method: %s', async (target) => {
    for (const method of ['GET', 'POST', 'OPTIONS', 'PROPFIND', 'FOO']) expect(await send(method, target)).toBe(400)
    const upgrade =
      'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
    expect(await send('GET', target, '', upgrade)).toBe(400)
  })

  test('without # is served, in origin form and in absolute form', async () => {
    for (const target of [
      '/livez',
      '/livez?',
      '/livez?a=b?c',
      'http://service.test/livez',
      'HTTP://other.test/livez?a',
    ])
      expect(await send('GET', target)).toBe(200)
    expect(await send('GET', '/livez%23')).toBe(404)
  })
})

test('the strict limit of registration counts every spelling that the provider serves', async () => {
  expect(await register(REGISTER)).toBe(201)
  expect(await register(REGISTER)).toBe(429)
  const spellings = [
    `${REGISTER}?`,
    `${REGISTER}?a=b`,
    `${REGISTER}/`,
    `${REGISTER}/?a`,
    `${REGISTER}//`,
    `${REGISTER}#x`,
    `${REGISTER}/#x`,
    `${REGISTER}?#x`,
    `${REGISTER}?a#/../token`,
    `${REGISTER};`,
    `${REGISTER};a=b`,
    `${REGISTER}\\`,
    `${REGISTER}\u00a0`,
    `${REGISTER}%20`,
    `${REGISTER}%2f`,
    `${REGISTER}%23x`,
    `${REGISTER}%3f`,
    `${REGISTER}/.`,
    `${REGISTER}/%2e`,
    `${REGISTER}/x/..`,
    '/api/v3/oauth/REGISTER',
    '/api/v3/oauth/%72egister',
    '/api/v3/oauth/%52egister',
    '/api/v3/oauth//register',
    '/api/v3/oauth/./register',
    '/api/v3/oauth/%2e/register',
    '/api/v3/oauth%2fregister',
    '/api/v3/oauth\\register',
    '/api/v3/%6fauth/register',
    '/api/v3/%6Fauth//register',
    '//api/v3/oauth/register',
    '/./api/v3/oauth/register',
    `http://service.test${REGISTER}`,
    `HTTPS://service.test${REGISTER}?a`,
    `http://a${REGISTER}/`,
    `http://service.test/${REGISTER}`,
  ]
  // 405 where a spelling is the path of one client, which takes no POST.
  for (const target of spellings)
    expect([target, await register(target)]).toEqual([target, expect.toBeOneOf([400, 404, 405, 429])])
})
