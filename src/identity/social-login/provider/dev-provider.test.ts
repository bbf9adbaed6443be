import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { buildTestBrowser, localOf, pathOf, type TestBrowser } from '../../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const APP = 'http://localhost:5173/'

const app = await openForFile(createTestApp({ env: { APP_ENV: 'development', BASE_URL: 'http://localhost:3000' } }))

/** Opens the page of the provider: its address, and its text. */
async function openPage(browser: TestBrowser) {
  const started = await browser.get(`${pathOf('dev')}?redirect_url=${encodeURIComponent(APP)}`)
  const url = String(started.headers.location)
  return { url, page: await browser.get(url) }
}

/** Signs in as a sample user, up to the callback. */
async function choose(browser: TestBrowser, user: string): Promise<string> {
  const { page } = await openPage(browser)
  const href = new RegExp(`href="([^"]*user=${user})"`).exec(page.body)?.[1]?.replaceAll('&amp;', '&')
  return String((await browser.get(String(href))).headers.location)
}

const finish = (browser: TestBrowser, callback: string) =>
  browser.get(localOf(callback).replace('/callback', '/callback-redirect'), 'application/json')

describe('the development provider', () => {
  test('shows the sample users on a page of the service, without scripts and forms', async () => {
    const { url, page } = await openPage(buildTestBrowser(app))
    expect(url).toMatch(/^http:\/\/localhost:3000\/auth\/dev\/authorize\?/)
    expect(page.status).toBe(200)
    for (const name of ['Nora New', 'Rita Returning', 'Umar Unverified', 'Mia Missing', 'Dan Denied', 'Dora Disabled'])
      expect(page.body).toContain(name)
    expect(page.body).not.toMatch(/<script|<form/)
  })

  test('registers the new user each time as another one', async () => {
    const [browser, other] = [buildTestBrowser(app), buildTestBrowser(app)]
    const first = await finish(browser, await choose(browser, 'new'))
    const second = await finish(other, await choose(other, 'new'))
    expect([first.status, first.body.data.is_new_user, second.body.data.is_new_user]).toEqual([200, true, true])
    expect(first.body.data.user.document_id).not.toBe(second.body.data.user.document_id)
    expect(first.body.data.redirect_url).toBe(APP)
  })

  test('leaves the session in the browser that began, and in no other answer', async () => {
    const browser = buildTestBrowser(app)
    const answer = await finish(browser, await choose(browser, 'new'))
    expect([...browser.cookies.keys()].sort()).toEqual([
      'signalbox_browser',
      expect.stringMatching(/^signalbox_flow_/),
      'signalbox_refresh',
      'signalbox_session',
    ])
    expect(browser.cookies.get('signalbox_session')).toBe(answer.body.data.jwt)
    expect((await browser.get('/auth/')).body).toContain('Nora New')
  })

  test('recognizes the returning user', async () => {
    const browser = buildTestBrowser(app)
    const answer = await finish(browser, await choose(browser, 'returning'))
    expect(answer.body.data).toMatchObject({ is_new_user: false, user: { name: 'Rita Returning' } })
  })

  test.each([
    ['unverified', 403, 'email_not_verified'],
    ['missing', 403, 'email_required'],
    ['disabled', 401, 'social_login_failed'],
  ])('refuses the %s user with %i %s', async (user, status, code) => {
    const browser = buildTestBrowser(app)
    const answer = await finish(browser, await choose(browser, user))
    expect([answer.status, answer.body.code]).toEqual([status, code])
  })

  test('leads the user who declines to a page with a way back', async () => {
    const browser = buildTestBrowser(app)
    const page = await browser.get(await choose(browser, 'denied'))
    expect(page.status).toBe(401)
    expect(page.body).toContain(`href="${APP}"`)
  })

  test.each([
    ['client_id', 'another'],
    ['redirect_uri', 'https://evil.example/callback'],
    ['redirect_uri', 'http://localhost:3000/api/v3/auth/login/oauth/google/callback'],
    ['response_type', 'token'],
    ['code_challenge_method', 'plain'],
    ['code_challenge', ''],
    ['state', ''],
    ['nonce', ''],
  ])('refuses a request with another %s (%s)', async (name, value) => {
    const browser = buildTestBrowser(app)
    const { url } = await openPage(browser)
    const changed = new URL(url)
    changed.searchParams.set(name, value)
    expect((await browser.get(changed.href)).status).toBe(400)
    changed.pathname += '/user'
    changed.searchParams.set('user', 'new')
    expect((await browser.get(changed.href)).status).toBe(400)
  })

  test('is offered on the sign-in page', async () => {
    expect((await buildTestBrowser(app).get('/auth/sign-in')).body).toContain(
      '/api/v3/auth/login/oauth/dev?redirect_url=',
    )
  })

  test.each(['test', 'certification', 'production'])('does not exist in %s', async (env) => {
    await using other = await createTestApp({ env: { APP_ENV: env, BASE_URL: 'https://service.test' } })
    const browser = buildTestBrowser(other)
    const start = await browser.get(`${pathOf('dev')}?redirect_url=https%3A%2F%2Fservice.test%2Fauth%2F`, '*/*')
    expect([start.status, start.body.code]).toEqual([404, 'provider_unknown'])
    expect((await browser.get('/auth/dev/authorize')).status).toBe(404)
    expect((await browser.get('/auth/sign-in')).body).not.toContain('sample user')
  })
})
