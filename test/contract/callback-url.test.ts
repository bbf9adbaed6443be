import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { startReceiver } from '../harness/fakes/receiver.ts'
import { expectProblem } from './contract-fixture.ts'

const PATH = '/api/v3/webhook/webhook'
let database: TestDatabase
let app: TestApp
let development: TestApp

beforeAll(async () => {
  database = await createTestDatabase({ content: 'prepared' })
  app = await createTestApp({ database, env: { APP_ENV: 'production' } })
  development = await createTestApp({ database, env: { APP_ENV: 'development' } })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await development[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const create = (url: string, by = app) => by.admin('POST', PATH, { url, is_global: true })

async function expectRefused(url: string, by = app) {
  const problem = expectProblem(await create(url, by), 422, 'validation_failed')
  expect(problem.errors).toMatchObject([{ path: 'url' }])
  return problem.errors[0].code
}

test('webhooks#url-rules: https is required in every environment but development', async () => {
  for (const env of ['production', 'certification', 'test']) {
    await using other = await createTestApp({ database, env: { APP_ENV: env } })
    expect(await expectRefused('http://hooks.example.com/', other)).toBe('url_not_https')
    expect((await create('https://hooks.example.com/', other)).status).toBe(201)
  }
})

test('webhooks#url-rules: http:// is allowed in development, towards public hosts only', async () => {
  expect((await create('http://hooks.example.com/', development)).status).toBe(201)
  for (const host of ['127.0.0.1', '10.0.0.1', 'localhost', 'db.internal', '169.254.169.254'])
    expect(await expectRefused(`http://${host}/`, development)).toBe('url_host_not_public')
})

test('webhooks#url-rules: other schemes are refused everywhere', async () => {
  for (const url of [
    'ftp://hooks.example.com/',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'hooks.example.com',
    '//a.example/',
  ])
    for (const by of [app, development]) await expectRefused(url, by)
})

/** One or two of each kind; src/outbound/guard/callback-url.test.ts and address.test.ts test them all. */
const FORBIDDEN = {
  loopback: ['127.0.0.1', 'localhost'],
  private: ['10.0.0.1', '[fd00::1]'],
  'link-local': ['169.254.1.1', '[fe80::1]'],
  metadata: ['169.254.169.254', 'metadata.google.internal'],
  '*.internal': ['db.internal'],
  'odd spellings': ['2130706433'],
  'wrapped addresses': ['[::ffff:127.0.0.1]'],
  reserved: ['0.0.0.0', '[::]'],
} as const

for (const [kind, hosts] of Object.entries(FORBIDDEN)) {
  test(`webhooks#url-rules, webhooks#callback-guard: ${kind} hosts are refused`, async () => {
    for (const host of hosts) {
      for (const by of [app, development]) {
        const answer = await create(`https://${host}/hook`, by)
        expect(answer.status, host).toBe(422)
        expect(answer.body.errors[0].path).toBe('url')
      }
    }
  })
}

test('webhooks#callback-guard: user-info and the ports of other services are refused, public literal addresses and other ports are accepted', async () => {
  expect(await expectRefused('https://user:pass@hooks.example.com/')).toBe('url_has_user_info')
  for (const port of [22, 25, 5432, 6379])
    expect(await expectRefused(`https://hooks.example.com:${port}/`)).toBe('url_port_not_allowed')
  for (const url of ['https://8.8.8.8/', 'https://[2606:4700::1111]/', 'https://hooks.example.com:8443/'])
    expect((await create(url)).status, url).toBe(201)
})

test('webhooks#url-rules: 2048 characters are accepted, 2049 are refused', async () => {
  const start = 'https://hooks.example.com/'
  expect((await create(start + 'a'.repeat(2048 - start.length))).status).toBe(201)
  expect(await expectRefused(start + 'a'.repeat(2049 - start.length))).toBe('url_too_long')
})

test('webhooks#url-rules: every rule applies to an update', async () => {
  const { document_id: id } = (await create('https://hooks.example.com/')).body.data
  for (const url of [
    '',
    'http://hooks.example.com/',
    'https://127.0.0.1/',
    'https://db.internal/',
    `https://hooks.example.com/${'a'.repeat(2048)}`,
  ])
    expectProblem(await app.admin('PATCH', `${PATH}/${id}`, { url }), 422, 'validation_failed')
  expect((await app.admin('GET', `${PATH}/${id}`)).body.data.url).toBe('https://hooks.example.com/')
})

test('webhooks#url-rules: any update of a row that no longer passes the rules is refused', async () => {
  const { document_id: id } = (await create('http://hooks.example.com/', development)).body.data
  for (const body of [
    { name: 'renamed' },
    { description: 'd' },
    { is_global: true },
    { url: 'http://hooks.example.com/' },
  ]) {
    const problem = expectProblem(await app.admin('PATCH', `${PATH}/${id}`, body), 422, 'validation_failed')
    expect(problem.errors[0]).toMatchObject({ path: 'url', code: 'url_not_https' })
  }
  expect((await app.admin('GET', `${PATH}/${id}`)).body.data.name).toBeNull()
  const mended = await app.admin('PATCH', `${PATH}/${id}`, { url: 'https://hooks.example.com/', name: 'renamed' })
  expect(mended.status).toBe(200)
  expect(mended.body.data).toMatchObject({ url: 'https://hooks.example.com/', name: 'renamed' })
})

test('webhooks#callback-guard: a name with a private address among its addresses is refused', async () => {
  const answers: Record<string, string[]> = {
    'inside.example.com.': ['10.0.0.1'],
    'mixed.example.com.': ['93.184.216.34', '127.0.0.1'],
    'outside.example.com.': ['93.184.216.34'],
  }
  const lookup = async (name: string) => {
    const found = answers[name]
    if (!found) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
    return found
  }
  await using resolving = await createTestApp({ database, lookup })
  for (const name of ['inside.example.com', 'mixed.example.com']) {
    const problem = expectProblem(await create(`https://${name}/`, resolving), 422, 'validation_failed')
    expect(problem.errors[0].path).toBe('url')
    expect(JSON.stringify(problem)).not.toMatch(/10\.0\.0\.1|127\.0\.0\.1/)
  }
  expect((await create('https://outside.example.com/', resolving)).status).toBe(201)
  expect((await create('https://nowhere.example.com/', resolving)).status).toBe(201)
})

test('webhooks#callback-guard: each attempt checks the address again, and does not connect to a private one', async () => {
  let address = '93.184.216.34'
  await using receiver = await startReceiver()
  await using moving = await createTestApp({ database, lookup: async () => [address] })
  const webhook = (await create(`https://moving.example.com:${receiver.port}/`, moving)).body.data
  address = '127.0.0.1'
  const test = await moving.admin('POST', `${PATH}/${webhook.document_id}/test`)
  await moving.settle()
  const { body } = await moving.admin('GET', `/api/v3/webhook/dispatch/${test.body.data.dispatch_id}`)
  expect(body.data).toMatchObject({ status: 'retrying', last_error: 'blocked_address', attempts: 1 })
  expect(JSON.stringify(body)).not.toContain('127.0.0.1')
  expect(receiver.connectionCount()).toBe(0)
})

test('webhooks#callback-guard: WEBHOOK_ALLOWED_PRIVATE_TARGETS exempts exactly its targets, and production does not start with it', async () => {
  const env = { WEBHOOK_ALLOWED_PRIVATE_TARGETS: '10.1.0.0/16:8443,tools.internal' }
  await using listed = await createTestApp({ database, env })
  for (const url of ['https://10.1.2.3:8443/', 'https://tools.internal/'])
    expect((await create(url, listed)).status, url).toBe(201)
  for (const url of ['https://10.1.2.3/', 'https://10.2.0.1:8443/', 'https://other.internal/'])
    await expectRefused(url, listed)
  await expect(createTestApp({ database, env: { ...env, APP_ENV: 'production' } })).rejects.toThrow(
    /WEBHOOK_ALLOWED_PRIVATE_TARGETS/,
  )
})
