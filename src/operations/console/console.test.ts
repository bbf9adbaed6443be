import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import {
  buildPageVisitor,
  PAGE_ENV,
  PAGE_ORIGIN,
  type PageVisitor,
} from '../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildConsole, warnWithoutConsole } from './build-console.ts'
import { buildConsoleReader, CONSOLE_FOLDER } from './console-build.ts'
import { buildConsoleHeaders, type ConsoleSettings } from './console-page.ts'

const PASSWORD = 'correct horse battery'
const SAME_SITE = { 'sec-fetch-site': 'same-origin' }
const WHO = '/api/v3/auth/session'

let users = 0

await buildConsole()
const app = await openForFile(createTestApp({ env: { ...PAGE_ENV, CORS_ALLOWED_ORIGINS: 'https://app.example' } }))

async function signIn() {
  users += 1
  const email = `person-${users}@example.test`
  const id = await createUserWithPassword(app, { email }, PASSWORD)
  const visitor = buildPageVisitor(app)
  await visitor.get('/auth/sign-in')
  await visitor.post('/auth/sign-in', { email, password: PASSWORD })
  return { visitor, id, email }
}

function readSettings(body: string): ConsoleSettings {
  const content = /<meta name="signalbox-console" content="([^"]+)">/.exec(body)?.[1] ?? ''
  return JSON.parse(content.replaceAll('&quot;', '"').replaceAll('&amp;', '&')) as ConsoleSettings
}

const openConsole = async (visitor: PageVisitor) => readSettings((await visitor.get('/console')).body)

const withToken = (formToken: string, headers: Record<string, string> = SAME_SITE) => ({
  'x-form-token': formToken,
  ...headers,
})

/** Compressed scripts of a first load at most; docs/operations/scale.md has the goal of 250 kB. */
const FIRST_LOAD_BYTES = 200_000

test('a first load takes few scripts, and no more of them than its bound', () => {
  const build = buildConsoleReader(CONSOLE_FOLDER)()
  const { script, start, preloads } = build?.entries.get('console') ?? { script: '', start: '', preloads: [] }
  const texts = [...(build?.files.keys() ?? [])].filter((name) => /^en-[\w-]+\.js$/.test(name))
  const scripts = [...new Set([script, start ?? '', ...preloads, ...texts])]
  expect(texts).toHaveLength(1)
  expect(scripts.length).toBeLessThanOrEqual(6)
  const bytes = scripts.map((name) => build?.files.get(name)?.compressed?.length ?? Number.NaN)
  expect(bytes.reduce((sum, length) => sum + length)).toBeLessThanOrEqual(FIRST_LOAD_BYTES)
})

test('its first reads begin by a small script that waits for no style sheet', async () => {
  const { visitor } = await signIn()
  const { body } = await visitor.get('/console')
  const start = buildConsoleReader(CONSOLE_FOLDER)()?.entries.get('console')?.start
  expect(body).toContain(`<script type="module" async src="/console/assets/${start}"></script>`)
  expect(body.indexOf('<script')).toBeLessThan(body.indexOf('<link'))
})

describe('the page', () => {
  test.each(['/console', '/console/', '/console/deliveries/1?status=failed'])(
    'at %s asks for a sign-in, and comes back',
    async (path) => {
      const reply = await buildPageVisitor(app).get(path)
      expect([reply.status, reply.location]).toEqual([303, `/auth/sign-in?next=${encodeURIComponent(path)}`])
    },
  )

  test('lets no script run but its own, and hands it no token of the session', async () => {
    const { visitor } = await signIn()
    const [page, other] = [await visitor.get('/console'), await visitor.get('/console/webhooks')]
    const settings = readSettings(page.body)
    expect(page.status).toBe(200)
    expect(page.headers['content-security-policy']).toContain("script-src 'self'; style-src 'self' 'nonce-")
    expect(page.headers['content-security-policy']).toContain(`'nonce-${settings.nonce}'`)
    expect(page.headers['content-security-policy']).toContain("frame-ancestors 'none'")
    expect(page.headers['content-security-policy']).toContain("connect-src 'self';")
    expect(page.headers['cache-control']).toBe('no-store')
    expect(readSettings(other.body).nonce).not.toBe(settings.nonce)
    const [session, refresh] = ['signalbox_session', 'signalbox_refresh'].map((name) =>
      [...visitor.cookies].find(([cookie]) => cookie.endsWith(name)),
    )
    for (const cookie of [session, refresh]) expect(page.body).not.toContain(cookie?.[1].value)
    expect(page.body).not.toMatch(/<script(?![^>]* src="\/console\/assets\/)/)
  })

  test('connects to the realtime server of the settings beside itself, and to nobody else', async () => {
    const policy = buildConsoleHeaders('n', 'wss://ws-eu.pusher.com')['content-security-policy']
    expect(policy).toContain("connect-src 'self' wss://ws-eu.pusher.com;")
  })

  test.each([
    ['development', 'The console is being built', true],
    ['test', 'The console is not installed', false],
  ])('without a build in %s says: %s', async (APP_ENV, sentence, looksAgain) => {
    const folder = await mkdtemp(join(tmpdir(), 'signalbox console '))
    await using unbuilt = await createTestApp({ env: { ...PAGE_ENV, APP_ENV }, consoleFolder: folder })
    const email = 'waiting@example.test'
    await createUserWithPassword(unbuilt, { email }, PASSWORD)
    const visitor = buildPageVisitor(unbuilt)
    await visitor.get('/auth/sign-in')
    await visitor.post('/auth/sign-in', { email, password: PASSWORD })
    const reply = await visitor.get('/console')
    expect([reply.status, reply.body.includes(sentence)]).toEqual([503, true])
    expect(reply.body.includes('/auth/load-again.js')).toBe(looksAgain)
    await writeFile(join(folder, 'main.js'), 'built')
    await writeFile(
      join(folder, 'manifest.json'),
      JSON.stringify({ main: { name: 'console', file: 'main.js', isEntry: true } }),
    )
    expect((await visitor.get('/console')).status).toBe(200)
    expect((await visitor.get('/console/assets/main.js')).body).toBe('built')
    await rm(folder, { recursive: true })
  })
})

test('a build is made once: sources that did not change are not built again', async () => {
  expect(await buildConsole()).toBe('unchanged')
})

test('an installation without a build is warned of, and one with a build is not', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox console '))
  const lines: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => void lines.push(line) })
  warnWithoutConsole(logger, folder)
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['console not installed: see docs/operations.md, console'])
  await writeFile(join(folder, 'main.js'), 'built')
  await writeFile(join(folder, 'manifest.json'), JSON.stringify({ main: { file: 'main.js', isEntry: true } }))
  warnWithoutConsole(logger, folder)
  expect(lines).toHaveLength(1)
  await rm(folder, { recursive: true })
})

describe('a file of the console', () => {
  const get = (url: string, headers: Record<string, string> = {}) =>
    app.app.server.inject({ method: 'GET', url, headers })

  test('is kept for good, and compressed for who takes it', async () => {
    const { visitor } = await signIn()
    const path = /src="(\/console\/assets\/[\w.-]+\.js)"/.exec((await visitor.get('/console')).body)?.[1] ?? ''
    const plain = await get(path)
    expect(plain.statusCode).toBe(200)
    expect(plain.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': 'text/javascript; charset=utf-8',
      vary: 'accept-encoding',
    })
    const compressed = await get(path, { 'accept-encoding': 'gzip, br' })
    expect(compressed.headers['content-encoding']).toBe('br')
    expect(brotliDecompressSync(compressed.rawPayload).equals(plain.rawPayload)).toBe(true)
    expect(compressed.rawPayload.length).toBeLessThan(250_000)
  })

  test.each(['other.js', '', '../manifest.json', '..%2f..%2fpackage.json', '%2e%2e/sources', 'sources'])(
    '%j is none',
    async (name) => {
      const answer = await get(`/console/assets/${name}`)
      expect([303, 404]).toContain(answer.statusCode)
      expect(answer.body).not.toContain('"name"')
    },
  )
})

describe('a call of the console', () => {
  test('is made for the user of the session cookie', async () => {
    const { visitor, id, email } = await signIn()
    const { formToken } = await openConsole(visitor)
    const answer = await visitor.get(WHO, withToken(formToken))
    expect([answer.status, JSON.parse(answer.body).data.user]).toEqual([
      200,
      expect.objectContaining({ document_id: id, email }),
    ])
    expect((await visitor.get(WHO, withToken(formToken, { origin: PAGE_ORIGIN }))).status).toBe(200)
    expect((await visitor.get(WHO, withToken(formToken, {}))).status).toBe(200)
  })

  test('needs the token that its page was given in this browser', async () => {
    const { visitor } = await signIn()
    const { formToken } = await openConsole(visitor)
    const other = await openConsole((await signIn()).visitor)
    for (const token of ['', 'x', formToken.slice(0, -1), other.formToken, `${formToken}.x`.repeat(1_000)])
      expect((await visitor.get(WHO, withToken(token))).status).toBe(401)
    expect((await visitor.get(WHO, SAME_SITE)).status).toBe(401)
  })

  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another host of the site', { 'sec-fetch-site': 'same-site' }],
    ['nowhere', { 'sec-fetch-site': 'none' }],
    ['another origin', { origin: 'https://evil.example' }],
    ['an origin that is hidden', { origin: 'null' }],
  ])('of %s is nobody', async (_where, headers) => {
    const { visitor } = await signIn()
    const { formToken } = await openConsole(visitor)
    expect((await visitor.get(WHO, withToken(formToken, headers))).status).toBe(401)
  })

  test('with a bearer token is judged by that alone', async () => {
    const { visitor } = await signIn()
    const { formToken } = await openConsole(visitor)
    const headers = { ...withToken(formToken), authorization: 'Bearer sbx_wrong' }
    expect((await visitor.get(WHO, headers)).status).toBe(401)
  })

  test('with an API key in place of the session is nobody', async () => {
    const { visitor } = await signIn()
    const { formToken } = await openConsole(visitor)
    const made = await app.admin('POST', '/api/v3/identity/api-key', { name: 'planted', permissions: ['*:*'] })
    const [name, cookie] = [...visitor.cookies].find(([cookieName]) => cookieName.endsWith('signalbox_session'))!
    visitor.cookies.set(name, { ...cookie, value: made.body.data.key })
    expect((await visitor.get(WHO, withToken(formToken))).status).toBe(401)
  })

  test('ends with the session: by a sign-out, a disable, and its expiry', async () => {
    const endings = [
      async ({ visitor }: Awaited<ReturnType<typeof signIn>>) => {
        const cookies = new Map(visitor.cookies)
        await visitor.get('/auth/')
        await visitor.post('/auth/sign-out')
        // Cookies that a thief kept of the browser.
        for (const [name, cookie] of cookies) visitor.cookies.set(name, cookie)
      },
      async ({ id }: Awaited<ReturnType<typeof signIn>>) => {
        await app.admin('POST', `/api/v3/identity/user/${id}/disable`, {})
      },
      async () => {
        app.clock.advance(24 * 3_600_000)
      },
    ]
    for (const end of endings) {
      const user = await signIn()
      const { formToken } = await openConsole(user.visitor)
      expect((await user.visitor.get(WHO, withToken(formToken))).status).toBe(200)
      await end(user)
      expect((await user.visitor.get(WHO, withToken(formToken))).status).toBe(401)
    }
  })

  test('cannot be made by a page of another origin, which is not allowed to send the token', async () => {
    const { headers } = await app.app.server.inject({
      method: 'OPTIONS',
      url: WHO,
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'x-form-token',
      },
    })
    expect(headers['access-control-allow-origin']).toBe('https://app.example')
    expect(headers['access-control-allow-headers']).not.toContain('x-form-token')
    expect(headers).not.toHaveProperty('access-control-allow-credentials')
  })
})
