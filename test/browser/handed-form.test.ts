import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  findViolationsInBothSchemes,
  NO_VIOLATIONS,
  type PageBrowser,
  signIn,
  startPageBrowser,
} from './page-browser.ts'

/** A client that takes answers by `form_post`. */
async function startClient() {
  const posts: { fields: URLSearchParams; origin: string | undefined }[] = []
  const server = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString()
    posts.push({ fields: new URLSearchParams(text), origin: request.headers.origin })
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>taken</title><h1>taken</h1>')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`
  return { posts, redirectUri, close: () => new Promise((resolve) => server.close(resolve)) }
}

let browser: PageBrowser
let client: Awaited<ReturnType<typeof startClient>>
let clientId: string

beforeAll(async () => {
  browser = await startPageBrowser({ APP_ENV: 'development' })
  client = await startClient()
  const made = await browser.app.admin('POST', '/api/v3/oauth/client', {
    name: 'Form app',
    type: 'public',
    redirect_uris: [client.redirectUri],
    scopes: ['openid'],
  })
  clientId = made.body.data.client_id
})
afterAll(async () => {
  await client.close()
  await browser[Symbol.asyncDispose]()
})

const authorize = () =>
  `/api/v3/oauth/authorize?${new URLSearchParams({
    client_id: clientId,
    redirect_uri: client.redirectUri,
    response_type: 'code',
    response_mode: 'form_post',
    scope: 'openid',
    state: '"><script>alert(1)</script>',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  })}`

/** The pages that the library of the provider would write with an inline script, and without a policy. */
const PAGES = [
  ['the answer by form_post', authorize],
  ['the code of a device that its link has', () => '/api/v3/oauth/device?user_code=ABCD-EFGH'],
  ['a sign-out without a session at the provider', () => '/api/v3/oauth/end-session'],
] as const

describe('a form that is handed on', () => {
  test('reaches the client by the script of a file, without a violated policy, and with what the client sent', async () => {
    const { page, complaints, close } = await browser.open()
    await signIn(page)
    await page.goto(authorize())
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.getByRole('heading', { name: 'taken' }).waitFor()
    const { fields, origin } = client.posts.at(-1) ?? {}
    expect(fields?.get('code')).toMatch(/^[\w-]{20,}$/)
    expect(fields?.get('state')).toBe('"><script>alert(1)</script>')
    expect(origin).toBe(browser.origin)
    expect(complaints).toEqual([])
    await close()
  })

  test.each(PAGES)('%s has the policy of a page, and no inline script', async (_name, path) => {
    const { page, close } = await browser.open({ javaScriptEnabled: false })
    await signIn(page)
    const answer = await page.goto(path())
    const allow = page.getByRole('button', { name: 'Allow', exact: true })
    const shown = (await allow.count()) > 0 ? await followAllow() : answer
    async function followAllow() {
      const answered = page.waitForResponse(
        (response) => response.url().includes('/oauth/authorize/') && response.status() === 200,
      )
      await allow.click()
      return answered
    }
    expect(shown?.headers()['content-security-policy']).toMatch(
      /^default-src 'none'; .*form-action 'self' http:[^;]*; .*frame-ancestors 'none'; script-src 'self'; connect-src 'self'$/,
    )
    const text = (await shown?.text()) ?? ''
    expect(text).not.toMatch(/<script(?![^>]* src=")/)
    expect(text).toContain('/auth/submit-form.js')
    await page.getByRole('button', { name: 'Continue' }).waitFor()
    await close()
  })

  test('is a page that axe finds nothing on, and a button sends it where scripts are off', async () => {
    const { page, close } = await browser.open()
    await signIn(page)
    // The script of the page is held back, so that axe can run on it.
    await page.route('**/auth/submit-form.js*', (route) => route.abort())
    await page.goto(authorize())
    const allow = page.getByRole('button', { name: 'Allow', exact: true })
    if ((await allow.count()) > 0) await allow.click()
    await page.getByRole('heading', { name: 'One moment' }).waitFor()
    expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'taken' }).waitFor()
    await close()
  })
})
