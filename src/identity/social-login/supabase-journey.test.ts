import { beforeEach, describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import {
  buildTestBrowser,
  localOf,
  MOBILE_APP,
  pathOf,
  type TestBrowser,
  WEB_APP,
} from '../../../test/harness/app/social-app.ts'
import { startSupabaseSimulator } from '../../../test/harness/fakes/supabase-simulator/simulator.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

let users = 0

const clock = buildManualClock()
const simulator = await openForFile(startSupabaseSimulator(() => clock.now()))
const app = await openForFile(
  createTestApp({
    clock,
    env: {
      BASE_URL: 'https://service.test',
      AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.com,com.example.app:',
      RATE_LIMIT_STRICT_PER_MINUTE: '100000',
      IDENTITY_ENGINE: 'supabase',
      SUPABASE_URL: simulator.url,
      SUPABASE_ANON_KEY: 'anon-key',
      SOCIAL_GOOGLE_CLIENT_ID: 'on',
    },
  }),
)
beforeEach(() => {
  users += 1
  simulator.fault = undefined
  simulator.rules = { autoConfirms: false, takesMissingAddress: false, takesNobodyNew: false }
  simulator.off.clear()
  simulator.user = {
    sub: `s-${users}`,
    email: `s-${users}@example.com`,
    isEmailVerified: true,
    name: 'Ada Lovelace',
  }
})

async function reachCallback(browser: TestBrowser, redirectUrl = WEB_APP): Promise<string> {
  const started = await browser.get(`${pathOf('google')}?redirect_url=${encodeURIComponent(redirectUrl)}`)
  return simulator.browse(String(started.headers.location))
}

const finish = (browser: TestBrowser, callback: string) =>
  browser.get(localOf(callback).replace('/callback', '/callback-redirect'), 'application/json')

describe('social login with the supabase engine', () => {
  test('registers a user once, and finds the same user the next time', async () => {
    const [browser, other] = [buildTestBrowser(app), buildTestBrowser(app)]
    const first = await finish(browser, await reachCallback(browser))
    const second = await finish(other, await reachCallback(other))
    expect(first.body.data).toMatchObject({
      is_new_user: true,
      redirect_url: WEB_APP,
      account: { name: 'Ada Lovelace' },
    })
    expect(second.body.data).toMatchObject({ is_new_user: false, user: first.body.data.user })
    expect(browser.cookies.has('signalbox_session')).toBe(true)
  })

  test('shows the bridge page, leads deep links back with tokens, and a denial with an error', async () => {
    const browser = buildTestBrowser(app)
    const callback = await reachCallback(browser, MOBILE_APP)
    expect((await browser.get(callback)).body).toContain('data-mode="open"')
    expect(String((await finish(browser, callback)).headers.location)).toMatch(
      /^com\.example\.app:\/signed-in\?access_token=/,
    )
    simulator.user.denies = true
    const denied = await browser.get(await reachCallback(browser, MOBILE_APP))
    expect(String(denied.headers.location)).toMatch(/error=access_denied/)
  })

  test('takes a callback once, and only in the browser that began', async () => {
    const [browser, victim] = [buildTestBrowser(app), buildTestBrowser(app)]
    const callback = await reachCallback(browser)
    expect((await finish(victim, callback)).status).toBe(401)
    expect((await finish(browser, callback)).status).toBe(200)
    expect((await finish(browser, callback)).status).toBe(401)
  })

  test.each([
    ['refuses it', false],
    ['links by it', true],
  ])('believes no unverified address, where the server %s', async (_name, autoConfirms) => {
    simulator.rules.autoConfirms = autoConfirms
    simulator.user.isEmailVerified = false
    const browser = buildTestBrowser(app)
    expect((await finish(browser, await reachCallback(browser))).body.code).toBe('email_not_verified')
  })

  test.each([
    ['takes nobody without one', false],
    ['takes such users', true],
  ])('asks for the address that a provider does not share, where the server %s', async (_name, takesMissingAddress) => {
    simulator.rules.takesMissingAddress = takesMissingAddress
    simulator.user = { sub: `s-${users}`, name: 'No Address' }
    const browser = buildTestBrowser(app)
    expect((await finish(browser, await reachCallback(browser))).body.code).toBe('email_required')
  })

  test('says at the callback already, on a page with a way back, what the server refuses', async () => {
    simulator.user = { sub: `s-${users}`, name: 'No Address' }
    const browser = buildTestBrowser(app)
    const page = await browser.get(await reachCallback(browser))
    expect(page.body).toContain('An e-mail address is needed')
    expect(page.body).toContain(`href="${WEB_APP}"`)
  })

  test('says that a provider which is off at the server does not answer, in place of the error of the server', async () => {
    simulator.off.add('google')
    const path = `${pathOf('google')}?redirect_url=${encodeURIComponent(WEB_APP)}`
    const started = await buildTestBrowser(app).get(path, 'application/json')
    expect(started).toMatchObject({ status: 503, body: { code: 'dependency_unavailable' } })
  })

  test('refuses a user who is banned there', async () => {
    simulator.fault = 'bans after the callback'
    const browser = buildTestBrowser(app)
    expect((await finish(browser, await reachCallback(browser))).body.code).toBe('social_login_failed')
  })

  test('answers a failure while the server is down, and works again afterwards', async () => {
    const browser = buildTestBrowser(app)
    const callback = await reachCallback(browser)
    simulator.fault = 'down'
    expect((await finish(browser, callback)).status).toBe(401)
    simulator.fault = undefined
    expect((await finish(browser, await reachCallback(browser))).status).toBe(200)
  })
})
