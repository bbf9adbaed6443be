import { beforeEach, describe, expect, test } from 'vitest'
import { createConnectionApp } from '../../../../test/harness/app/connection-app.ts'
import { pathOf, redirectUrlOf, WEB_APP } from '../../../../test/harness/app/social-app.ts'
import { type Reply, SILENT } from '../../../../test/harness/fakes/provider/fake-provider.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

/** The provider of a hostile account: what it answers with in place of a discovery document and of keys. */

const DISCOVERY = '/realms/staff/.well-known/openid-configuration'
const KEYS = '/jwks'
const MEBIBYTE = 1_048_576
/** In place of 10 s. */
const LIMIT_MS = 2_000

let connection: string
let people = 0
const t = await openForFile(createConnectionApp({ providerTimeoutMs: LIMIT_MS }))

const company = () => t.fixture.fakes.company

beforeEach(async () => {
  t.app.clock.advance(60_000)
  people += 1
  company().replies.clear()
  company().fault = undefined
  company().calls.length = 0
  const account = await t.makeAccount()
  connection = await t.connect(account)
  await t.prove(account, connection, `hostile${people}.example`)
  const email = `eve@hostile${people}.example`
  company().user = { sub: `eve-${people}`, email, isEmailVerified: true, name: 'Eve' }
})

const start = () => t.browser().get(`${pathOf(connection)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)
const json = (body: string): Reply => ({ status: 200, body, headers: { 'content-type': 'application/json' } })
const redirect = (location: string): Reply => ({ status: 302, body: '', headers: { location } })
/** A genuine discovery document with other members. */
async function discoveryWith(members: object): Promise<Reply> {
  const genuine = await (await fetch(`${company().origin}${DISCOVERY}`)).json()
  return json(JSON.stringify({ ...(genuine as object), ...members }))
}

/** A sign-in from the consent page on, whose state is genuine. */
async function finish(arrange: () => Promise<void> | void) {
  const browser = t.browser()
  const started = await browser.get(`${pathOf(connection)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)
  expect(started.status).toBe(302)
  const step = await company().authorize(String(started.headers.location))
  await arrange()
  return browser.get(redirectUrlOf(step), 'application/json')
}

test('a genuine provider signs in', async () => {
  expect((await finish(() => {})).status).toBe(200)
})

describe('a discovery document', () => {
  const DOCUMENTS: readonly (readonly [string, () => Reply | Promise<Reply>])[] = [
    ['of 1 MiB', () => discoveryWith({ filler: 'x'.repeat(MEBIBYTE) })],
    ['of white space', () => json(' '.repeat(MEBIBYTE))],
    ['that never comes', () => SILENT],
    ['that is nested 100,000 times', () => json(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)],
    ['that is text', () => ({ status: 200, body: '<!doctype html>' })],
    ['that is null', () => json('null')],
    ['with an error', () => ({ status: 500, body: '' })],
    ['at the address of cloud metadata', () => redirect('http://169.254.169.254/latest/meta-data')],
    ['at another path', () => redirect(`${company().origin}/moved`)],
    ['of another issuer', () => discoveryWith({ issuer: 'https://attacker.example' })],
    ['of an issuer that is one in a list', () => discoveryWith({ issuer: [company().origin] })],
    ...['javascript:alert(1)', 'data:text/html,x', 'http://127.0.0.1/authorize', 'not a URL', 7, null, {}].map(
      (endpoint) =>
        [
          `that sends browsers to ${JSON.stringify(endpoint)}`,
          () => discoveryWith({ authorization_endpoint: endpoint }),
        ] as const,
    ),
  ]

  test.each(DOCUMENTS)('%s starts no sign-in', async (_name, build) => {
    company().replies.set(DISCOVERY, await build())
    company().calls.length = 0
    const answer = await start()
    expect(answer.status, JSON.stringify(answer.headers)).toBe(503)
    expect(company().calls).toEqual([DISCOVERY])
    // The next attempt asks again, and finds what was mended.
    company().replies.clear()
    expect((await start()).status).toBe(302)
  })
})

describe('the key set', () => {
  const none = { kty: 'RSA', alg: 'none', kid: 'current', n: 'AQAB', e: 'AQAB' }
  const secret = { kty: 'oct', alg: 'HS256', kid: 'current', k: 'c2VjcmV0' }
  const keys = (...list: unknown[]) => json(JSON.stringify({ keys: list }))
  const SETS: readonly (readonly [string, () => Reply])[] = [
    ['of 1 MiB', () => keys({ ...none, n: 'x'.repeat(MEBIBYTE) })],
    ['that never comes', () => SILENT],
    ['that is nested 100,000 times', () => json(`{"keys":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)],
    ['of keys without an algorithm', () => keys(none, none)],
    ['of a shared secret', () => keys(secret)],
    ['of no keys', () => keys()],
    ['that is no list', () => json('{"keys":{"length":1e9}}')],
    ['of nulls', () => json(`{"keys":[${'null,'.repeat(40_000)}null]}`)],
    ['of 3,000 keys of one id', () => keys(...Array.from({ length: 3_000 }, () => ({ kty: 'RSA', kid: 'current' })))],
    ['at the address of cloud metadata', () => redirect('http://169.254.169.254/latest/meta-data')],
    ['at another path', () => redirect(`${company().origin}/moved`)],
  ]

  test.each(SETS)('%s signs nobody in', async (_name, build) => {
    const answer = await finish(() => void company().replies.set(KEYS, build()))
    expect([answer.status, answer.body.code]).toEqual([401, 'social_login_failed'])
    expect(company().calls).not.toContain('/moved')
  })

  test.each(['unsigned token', 'symmetric token'] as const)(
    'that allows it signs nobody in by an %s',
    async (fault) => {
      const answer = await finish(() => {
        company().replies.set(KEYS, keys(none, secret))
        company().fault = fault
      })
      expect([answer.status, answer.body.code]).toEqual([401, 'social_login_failed'])
    },
  )
})
