import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const PAGE = 'https://app.example.com'
const CONFIG = '/api/v3/realtime/realtime/config'
const AUTH = '/api/v3/realtime/realtime/auth'

const t = await openForFile(createTestApp({ env: { CORS_ALLOWED_ORIGINS: `${PAGE},http://localhost:5173` } }))

/** The parts of the API document that name headers. */
interface OpenApi {
  paths: object
  components: {
    parameters: Record<string, { in: string; name: string }>
    responses: Record<string, { headers?: Record<string, unknown> }>
  }
}

const ask = (method: 'GET' | 'POST' | 'OPTIONS', url: string, headers: Record<string, string>) =>
  t.app.server.inject({ method, url, headers })

/** The headers of CORS of an answer. */
const corsOf = (answer: { headers: Record<string, unknown> }) =>
  Object.fromEntries(Object.entries(answer.headers).filter(([name]) => name.startsWith('access-control-')))

const preflight = (origin: string, url = AUTH) =>
  ask('OPTIONS', url, {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type',
  })

test('a page of a listed origin may ask for the settings and authorize a channel, and reads refusals too', async () => {
  const answers = [
    await ask('GET', CONFIG, { origin: PAGE }),
    await ask('POST', AUTH, { origin: 'http://localhost:5173' }),
    await ask('GET', '/api/v3/nothing', { origin: PAGE }),
  ]
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([503, 401, 404])
  expect(answers.map(({ headers }) => headers['access-control-allow-origin'])).toEqual([
    PAGE,
    'http://localhost:5173',
    PAGE,
  ])
  for (const { headers } of answers) {
    expect(headers.vary).toContain('origin')
    expect(headers['access-control-expose-headers']).toContain('retry-after')
    expect(headers['access-control-allow-credentials']).toBeUndefined()
  }
})

test('a preflight of a listed origin is answered 204 with the methods and the headers of the API', async () => {
  const answer = await preflight(PAGE)
  expect([answer.statusCode, answer.body]).toEqual([204, ''])
  expect(corsOf(answer)).toEqual({
    'access-control-allow-origin': PAGE,
    'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': expect.stringMatching(/authorization.*content-type.*idempotency-key/),
    'access-control-max-age': '7200',
  })
})

test('a page may send and read every header that the API document names, and the tag of a row', async () => {
  const listOf = (value: unknown) => String(value).split(', ')
  const sent = listOf((await preflight(PAGE)).headers['access-control-allow-headers'])
  const read = listOf((await ask('GET', CONFIG, { origin: PAGE })).headers['access-control-expose-headers'])
  const document = JSON.parse((await ask('GET', '/openapi.json', {})).body) as OpenApi
  const { parameters, responses } = document.components
  const lower = (names: string[]) => names.map((name) => name.toLowerCase())
  const routes = JSON.stringify(document.paths)
  const isOfRoutes = (key: string) => routes.includes(`"#/components/parameters/${key}"`)
  const shared = Object.entries(parameters).filter(([key, one]) => one.in === 'header' && isOfRoutes(key))
  const asked = lower(shared.map(([, { name }]) => name))
  expect(asked).toContain('if-match')
  expect(sent).toEqual(expect.arrayContaining([...asked, 'if-none-match']))
  const answered = lower(Object.values(responses).flatMap(({ headers = {} }) => Object.keys(headers)))
  expect(answered).toContain('www-authenticate')
  expect(read).toEqual(expect.arrayContaining([...answered, 'allow', 'content-disposition', 'etag']))
})

test.each([
  'https://app.example.com.evil.test',
  'https://evil.test',
  'http://app.example.com',
  'https://app.example.com:8443',
  'https://APP.example.com',
  'null',
  '*',
])('the origin %s, which is not listed, is allowed nothing', async (origin) => {
  expect(corsOf(await ask('GET', CONFIG, { origin }))).toEqual({})
  const refused = await preflight(origin)
  expect([refused.statusCode, corsOf(refused)]).toEqual([405, {}])
})

test('an OPTIONS that is no preflight is refused as before', async () => {
  expect((await ask('OPTIONS', AUTH, { origin: PAGE })).statusCode).toBe(405)
})

test('what a browser shows is not opened to pages of other origins', async () => {
  const answer = await ask('GET', '/healthz', { origin: PAGE })
  expect([corsOf(answer), answer.headers.vary]).toEqual([{}, undefined])
})

test('development lets pages of this machine call the API without the setting, and no other page', async () => {
  await using development = await createTestApp({ env: { APP_ENV: 'development' } })
  const allowed = async (origin: string) => {
    const answer = await development.app.server.inject({ method: 'GET', url: CONFIG, headers: { origin } })
    return answer.headers['access-control-allow-origin']
  }
  for (const origin of ['http://localhost:5173', 'http://127.0.0.1:8080', 'http://[::1]:3001', 'https://app.localhost'])
    expect(await allowed(origin)).toBe(origin)
  for (const origin of [
    PAGE,
    'null',
    'http://localhost.evil.test',
    'http://127.0.0.1.evil.test',
    'http://evil.test#.localhost',
    'http://localhost:5173/',
    'http://10.0.0.1',
  ])
    expect([origin, await allowed(origin)]).toEqual([origin, undefined])
})

test('without the setting no answer says anything of origins', async () => {
  await using off = await createTestApp()
  const answer = await off.app.server.inject({ method: 'GET', url: CONFIG, headers: { origin: PAGE } })
  expect([corsOf(answer), answer.headers.vary]).toEqual([{}, undefined])
})
