import { beforeEach, describe, expect, test } from 'vitest'
import type { TestAnswer } from '../../../../test/harness/app/app.ts'
import { COMPANY_OIDC, createConnectionApp } from '../../../../test/harness/app/connection-app.ts'
import { pathOf, redirectUrlOf, type TestBrowser, WEB_APP } from '../../../../test/harness/app/social-app.ts'
import type { Fault } from '../../../../test/harness/fakes/provider/fake-provider.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../../base/id.ts'
import { readGroups } from './oidc-connection.ts'

let account: AccountId
let connection: string

const t = await openForFile(createConnectionApp())

let domains = 0
beforeEach(async () => {
  t.app.clock.advance(60_000)
  domains += 1
  account = await t.makeAccount()
  connection = await t.connect(account)
  await t.prove(account, connection, `attack${domains}.example`)
  t.fixture.fakes.company.fault = undefined
  t.fixture.fakes.company.extraClaims = {}
  const email = `eve@attack${domains}.example`
  t.fixture.fakes.company.user = { sub: `eve-${domains}`, email, isEmailVerified: true, name: 'Eve' }
})

const start = (browser: TestBrowser, by = connection) =>
  browser.get(`${pathOf(by)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)

async function reachCallback(browser: TestBrowser, by = connection) {
  const started = await start(browser, by)
  expect(started.status).toBe(302)
  return t.fixture.fakes.company.authorize(String(started.headers.location))
}

async function findReason(): Promise<string> {
  const { body } = await t.app.admin('GET', '/api/v3/audit/log?filters=action|eq|login.oauth&page_size=1')
  return body.data[0].detail.reason
}

async function expectRefused(answer: TestAnswer, reason: string): Promise<void> {
  expect([answer.status, answer.body.code]).toEqual([401, 'social_login_failed'])
  expect(answer.headers['set-cookie']).toBeUndefined()
  expect(await findReason()).toContain(reason)
}

const withParameter = (url: string, name: string, value: string) => {
  const changed = new URL(url, 'https://service.test')
  changed.searchParams.set(name, value)
  return `${changed.pathname}${changed.search}`
}

describe('the answer of an OpenID provider', () => {
  test.each<[Fault, string]>([
    ['wrong nonce', 'id_token_invalid'],
    ['wrong issuer', 'id_token_invalid'],
    ['wrong audience', 'id_token_invalid'],
    ['expired token', 'id_token_invalid'],
    ['unknown key', 'id_token_invalid'],
    ['unsigned token', 'id_token_invalid'],
    ['symmetric token', 'id_token_invalid'],
    ['no id token', 'id_token_invalid'],
    ['foreign iss', 'issuer_mismatch'],
    ['no iss', 'issuer_mismatch'],
    ['code refused', 'code_refused'],
    ['token endpoint answers megabytes', 'provider_fault'],
    ['token endpoint redirects', 'provider_fault'],
    ['userinfo of another', 'profile_invalid'],
  ])('is refused with the fault: %s', async (fault, reason) => {
    const browser = t.browser()
    const started = await start(browser)
    t.fixture.fakes.company.fault = fault
    const step = await t.fixture.fakes.company.authorize(String(started.headers.location))
    await expectRefused(await browser.get(redirectUrlOf(step), 'application/json'), reason)
  })

  test.each([
    ['issued an hour ago', { iat: -3_600 }],
    ['issued in an hour', { iat: 3_600 }],
    ['for another authorized party', { aud: ['company-client', 'another'], azp: 'another' }],
  ])('is refused with a token %s', async (_, claims) => {
    const now = Math.floor(t.app.clock.now() / 1000)
    const iat = 'iat' in claims ? { iat: now + (claims.iat as number) } : {}
    t.fixture.fakes.company.lastClaims = { ...claims, ...iat }
    const browser = t.browser()
    const step = await reachCallback(browser)
    const answer = await browser.get(redirectUrlOf(step), 'application/json')
    t.fixture.fakes.company.lastClaims = {}
    await expectRefused(answer, 'id_token_invalid')
  })

  test('serves once: neither its state nor its code can be repeated', async () => {
    const browser = t.browser()
    const step = await reachCallback(browser)
    const url = redirectUrlOf(step)
    const answers = await Promise.all([1, 2, 3].map(() => browser.get(url, 'application/json')))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    // The code under the state of another flow of the same browser.
    const code = new URL(step.url).searchParams.get('code') ?? ''
    const next = await reachCallback(browser)
    await expectRefused(
      await browser.get(withParameter(redirectUrlOf(next), 'code', code), 'application/json'),
      'code_refused',
    )
  })

  test('belongs to the browser that began, and to a state of this service', async () => {
    const step = await reachCallback(t.browser())
    await expectRefused(await t.browser().get(redirectUrlOf(step), 'application/json'), 'foreign_browser')
    const browser = t.browser()
    const own = await reachCallback(browser)
    const forged = withParameter(redirectUrlOf(own), 'state', 'x'.repeat(43))
    await expectRefused(await browser.get(forged, 'application/json'), 'state_forged')
  })

  test('is none for another connection, also of the same provider', async () => {
    const other = await t.makeAccount('Other')
    const foreign = await t.connect(other)
    await t.prove(other, foreign, `foreign${domains}.example`)
    const browser = t.browser()
    const url = redirectUrlOf(await reachCallback(browser))
    const moved = url.replace(connection, foreign)
    await expectRefused(await browser.get(moved, 'application/json'), 'state_forged')
  })
})

describe('a hostile provider', () => {
  test.each<[Fault]>([['foreign discovery issuer']])('starts nothing with the fault: %s', async (fault) => {
    t.fixture.fakes.company.fault = fault
    expect(await start(t.browser())).toMatchObject({ status: 503 })
  })

  test.each<[Fault]>([['private token endpoint'], ['plain token endpoint']])(
    'makes the service call no address that is not public: %s',
    async (fault) => {
      t.fixture.fakes.company.fault = fault
      const browser = t.browser()
      const step = await reachCallback(browser)
      const answer = await browser.get(redirectUrlOf(step), 'application/json')
      expect(answer.status).toBe(401)
      expect(await findReason()).toMatch(/provider_fault|id_token_invalid/)
    },
  )

  test.each(['https://127.0.0.1.nip.example', 'https://unreachable.example'])('of %s is 503', async (issuer) => {
    const id = await t.connect(account, { oidc: { ...COMPANY_OIDC, issuer } })
    expect(await start(t.browser(), id)).toMatchObject({ status: 503 })
  })

  test('a name of another kind or of nobody is no provider, and no id tells which exist', async () => {
    const unknown = '01990000-0000-7000-8000-000000000001'
    const disabled = await t.connect(account, { is_enabled: false })
    const answers = await Promise.all([unknown, disabled].map((id) => start(t.browser(), id)))
    expect(answers.map(({ status }) => status)).toEqual([404, 404])
  })
})

test('a flood of starts is counted for the connection, and ends after ten minutes', async () => {
  const insert = `insert into login_flow (state_hash, provider, connection, purpose, redirect_url, is_deep_link, is_bound,
      secret, expires_at, created_at)
    select decode(md5($1 || n::text), 'hex'), $1::text, $1::uuid, 'sign-in', 'https://app.example.com/', false, false, 'x', $2,
      $2
    from generate_series(1, 5000) n`
  await t.app.database.pool.query(insert, [connection, new Date(t.app.clock.now() + 600_000)])
  const refused = await t.app.anonymous('GET', `${pathOf(connection)}?redirect_url=${WEB_APP}`)
  expect(refused).toMatchObject({ status: 429, headers: { 'retry-after': '60' } })
  // Another connection is not touched.
  const other = await t.makeAccount('Other')
  expect((await start(t.browser(), await t.connect(other))).status).toBe(302)
  t.app.clock.advance(600_001)
  expect((await start(t.browser())).status).toBe(302)
})

test('groups of a hostile provider are read within limits', () => {
  const many = Array.from({ length: 100_000 }, (_, n) => `g${n}`)
  expect(readGroups({ groups: many }, 'groups')).toHaveLength(1_000)
  expect(readGroups({ groups: ['x'.repeat(1_048_576), 'a', '', 7, null, 'a'] }, 'groups')).toEqual(['a'])
  expect(readGroups({ groups: 'one' }, 'groups')).toEqual(['one'])
  expect(readGroups({ groups: { a: 1 } }, 'groups')).toEqual([])
  expect(readGroups({}, '__proto__')).toEqual([])
})
