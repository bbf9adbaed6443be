import { expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

test('a browser gets the start page at /, curl its text, and a caller that wants neither the 404 in JSON', async () => {
  await using app = await createTestApp({ env: { APP_ENV: 'production' } })
  const page = await app.anonymous('GET', '/', undefined, BROWSER)
  expect(page).toMatchObject({ status: 200, headers: { vary: 'accept, accept-language', 'cache-control': 'no-store' } })
  expect(page.headers['content-security-policy']).toContain("default-src 'none'")
  expect(page.body).toContain('href="/auth/"')
  expect(page.body).toContain('href="/docs"')
  for (const accept of ['*/*', 'application/json, text/plain, */*', 'text/*']) {
    const text = await app.anonymous('GET', '/', undefined, { accept })
    expect(text).toMatchObject({ status: 200, headers: { vary: 'accept, accept-language' } })
    expect(text.headers['content-type']).toBe('text/plain; charset=utf-8')
    expect(text.body).toBe('Signalbox\nConsole: /console\nYour account: /auth/\nAPI reference: /docs\n')
  }
  for (const accept of ['application/json', 'image/*, application/*']) {
    const answer = await app.anonymous('GET', '/', undefined, { accept })
    expect(answer).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect(answer.headers['content-type']).toContain('application/problem+json')
  }
  // Nothing of development.
  for (const word of ['/auth/mail', 'First steps', 'admin@']) expect(page.body).not.toContain(word)
})

test('development adds mails and first steps, to this machine alone', async () => {
  await using app = await createTestApp({ env: { APP_ENV: 'development', SIGNALBOX_ADMIN_EMAIL: 'ada@example.test' } })
  const ask = async (headers: Record<string, string>) =>
    (await app.anonymous('GET', '/', undefined, { ...BROWSER, ...headers })).body
  const page = await ask({})
  for (const word of ['/auth/mail', 'First steps', 'ada@example.test', 'signalbox listen']) expect(page).toContain(word)
  const text = await ask({ accept: '*/*' })
  expect(text).toMatch(/^Mails: http:\S+\/auth\/mail$/m)
  expect(text).toContain('First steps: open this address in a browser.')
  expect(await ask({ accept: '*/*', host: 'evil.example' })).not.toContain('/auth/mail')
  // The usual port needs no word.
  await using usual = await createTestApp({ env: { APP_ENV: 'development', BASE_URL: 'http://localhost:3000' } })
  const commands = (await usual.anonymous('GET', '/', undefined, BROWSER)).body
  expect(commands).toContain('<code>npx signalbox listen</code>')
  for (const headers of [{ host: 'evil.example' }, { 'x-forwarded-for': '127.0.0.1' }]) {
    const shown = await ask(headers)
    expect(shown).toContain('href="/docs"')
    for (const word of ['/auth/mail', 'First steps', 'ada@example.test']) expect(shown).not.toContain(word)
  }
})

test('development shows the keys of its realtime server, to this machine alone, and to nobody in production', async () => {
  await using app = await createTestApp({ env: { APP_ENV: 'development' } })
  const { appId, key, secret } = app.app.realtime.findApp()!
  const page = (await app.anonymous('GET', '/', undefined, BROWSER)).body
  for (const value of [appId, key, secret]) expect(page).toContain(`<code>${value}</code>`)
  expect(page).toMatch(/<code>ws:\/\/[\w.]+:\d+<\/code>/)
  for (const headers of [{ host: 'evil.example' }, { 'x-forwarded-for': '127.0.0.1' }])
    expect((await app.anonymous('GET', '/', undefined, { ...BROWSER, ...headers })).body).not.toContain(secret)

  const given = {
    INTEGRATION_REALTIME_APP_ID: 'a1',
    INTEGRATION_REALTIME_KEY: 'key-of-one',
    INTEGRATION_REALTIME_SECRET: 'secret-of-one',
  }
  for (const env of [
    { APP_ENV: 'development', ...given, INTEGRATION_REALTIME_CLUSTER: 'embedded' },
    { APP_ENV: 'development', INTEGRATION_REALTIME_EMBEDDED: 'false' },
    { APP_ENV: 'production', ...given, INTEGRATION_REALTIME_CLUSTER: 'embedded' },
  ]) {
    await using other = await createTestApp({ env })
    const shown = (await other.anonymous('GET', '/', undefined, BROWSER)).body
    for (const word of ['Realtime', 'secret-of-one']) expect(shown).not.toContain(word)
  }
})

test('without kept mails the page of development does not lead to them', async () => {
  const env = { APP_ENV: 'development', SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'a@b.example' }
  await using app = await createTestApp({ env })
  expect((await app.anonymous('GET', '/', undefined, BROWSER)).body).not.toContain('/auth/mail')
})

test('a process without the role api has no start page', async () => {
  await using app = await createTestApp({ env: { SIGNALBOX_ROLES: 'maintenance' } })
  expect((await app.anonymous('GET', '/', undefined, BROWSER)).status).toBe(404)
})

test('the start page counts against the limit of its address, for any caller', async () => {
  await using app = await createTestApp({ env: { RATE_LIMIT_PER_MINUTE: '2' } })
  const ask = async (headers: Record<string, string>) => (await app.anonymous('GET', '/', undefined, headers)).status
  const json = { accept: 'application/json' }
  expect([await ask(BROWSER), await ask(json), await ask(BROWSER), await ask(json)]).toEqual([200, 404, 429, 429])
})
