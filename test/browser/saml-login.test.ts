import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeIdp, startFakeIdp } from '../harness/fakes/saml-idp/fake-idp.ts'
import { type PageBrowser, startPageBrowser } from './page-browser.ts'

/*
 * The service is on localhost and the identity provider on 127.0.0.1: two sites for the browser, which sends no cookie with
 * the post of the one to the other.
 */

let fixture: PageBrowser
let idp: FakeIdp & AsyncDisposable
let connection: string

beforeAll(async () => {
  fixture = await startPageBrowser({ APP_ENV: 'development' })
  const { app } = fixture
  idp = await startFakeIdp(() => new Date(app.clock.now()))
  idp.person = { nameId: 'ada', attributes: { email: 'ada@corp.example', displayName: 'Ada of Corp' } }
  const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Corp' })).body.data.document_id
  const path = `/api/v3/identity/account/${account}/connection`
  const saml = { idp_entity_id: idp.entityId, sso_url: idp.ssoUrl, certificates: [idp.key.certificate] }
  const made = await app.admin('POST', path, { kind: 'saml', name: 'Corp login', is_jit: true, saml })
  connection = made.body.data.document_id
  const claimed = await app.admin('POST', `${path}/${connection}/domain`, { domain: 'corp.example' })
  const approved = await app.admin('POST', `${path}/${connection}/domain/${claimed.body.data.document_id}/approve`)
  expect(approved.status).toBe(200)
})
afterAll(async () => {
  await idp?.[Symbol.asyncDispose]()
  await fixture?.[Symbol.asyncDispose]()
})

const begin = (page: Page) =>
  page.goto(`/api/v3/auth/login/oauth/${connection}?redirect_url=${encodeURIComponent(`${fixture.origin}/auth/`)}`)
const answer = (page: Page) => page.getByRole('button', { name: 'Sign in as ada' }).click()

describe('a sign-in by SAML in a browser', () => {
  test('passes the post of another site, and ends in a session that scripts do not see', async () => {
    const { page, context, complaints, close } = await fixture.open()
    const posts: (string | undefined)[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST') void request.allHeaders().then(({ cookie }) => posts.push(cookie))
    })
    await begin(page)
    expect(new URL(page.url()).hostname).toBe('127.0.0.1')
    await answer(page)
    await page.waitForURL('**/auth/')
    expect(await page.locator('h1').innerText()).toBe('Ada of Corp')
    expect(posts).toEqual([undefined])
    const cookies = await context.cookies(fixture.origin)
    expect(cookies.find(({ name }) => name.startsWith('signalbox_flow'))).toMatchObject({ sameSite: 'Lax' })
    expect(cookies.find(({ name }) => name === 'signalbox_session')).toMatchObject({ httpOnly: true, sameSite: 'Lax' })
    expect(complaints).toEqual([])
    await page.goBack()
    expect(page.url()).not.toMatch(/[?&]code=/)
    await close()
  })

  test('works without scripts', async () => {
    const { page, close } = await fixture.open({ javaScriptEnabled: false })
    await begin(page)
    await answer(page)
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.waitForURL('**/auth/')
    await close()
  })

  test('that began in another browser shows a page with a way back, and opens no session', async () => {
    const [first, second] = [await fixture.open(), await fixture.open()]
    await begin(first.page)
    await second.page.goto(first.page.url())
    await answer(second.page)
    await second.page.waitForURL('**/callback*')
    expect(await second.page.locator('h1').innerText()).toBe('You were not signed in')
    const cookies = await second.context.cookies(fixture.origin)
    expect(cookies.find(({ name }) => name === 'signalbox_session')).toBeUndefined()
    await first.close()
    await second.close()
  })

  test('that the provider refuses shows a page without its words', async () => {
    const { page, close } = await fixture.open()
    idp.person = { nameId: 'ada', attributes: { email: 'a@corp.example, <b>x</b>' } }
    await begin(page)
    const refused = idp.answer(idp.readRequest(page.url()), { response: { status: 'Responder' } })
    await page.setContent(
      `<form method="post" action="${fixture.origin}/api/v3/auth/login/saml/${connection}/acs"><input name="SAMLResponse" value="${refused}"><button>Post</button></form>`,
    )
    await page.getByRole('button', { name: 'Post' }).click()
    await page.waitForURL('**/acs')
    expect(await page.locator('h1').innerText()).toBe('You were not signed in')
    await close()
  })
})
