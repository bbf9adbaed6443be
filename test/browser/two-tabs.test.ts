import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Flow, openFlow } from '../harness/browser/oauth-flow.ts'
import { type OauthFixture, type OauthUser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { fillFirst } from './page-browser.ts'

const APPS = ['Rail planner', 'Bus planner'] as const

let fixture: OauthFixture
let browser: SharedBrowser
let app: Server
let flows: Flow[]

beforeAll(async () => {
  app = createServer((_request, response) => response.end('the app'))
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
  const uri = `http://127.0.0.1:${(app.address() as AddressInfo).port}/callback`
  fixture = await startOauthFixture()
  const open = async (name: string) => openFlow(fixture, await fixture.client({ name, redirect_uris: [uri] }))
  flows = [await open(APPS[0]), await open(APPS[1])]
  browser = await shareChromium()
})
afterAll(async () => {
  await browser?.close()
  await fixture?.[Symbol.asyncDispose]()
  app?.close()
})

const allow = (page: Page, name: string) => page.getByRole('heading', { name: `Allow ${name}?` })

async function signIn(page: Page, { email, password }: OauthUser): Promise<void> {
  await fillFirst(page.getByLabel('E-mail address'), email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** A tab with an authorization of an app, on the sign-in page. */
async function openTab(context: BrowserContext, index: number) {
  const page = index === 0 ? (context.pages()[0] as Page) : await context.newPage()
  const flow = flows[index] as Flow
  const { url, ...kept } = await flow.prepare({ parameters: { prompt: 'consent' } })
  await page.goto(url)
  await page.getByText(String(APPS[index])).first().waitFor()
  return { page, flow, name: String(APPS[index]), ...kept }
}

describe.each([
  ['the first tab before the second', [0, 1]],
  ['the second tab before the first', [1, 0]],
])('%s', (_name, order) => {
  test('both tabs sign in, are reloaded, go back and forth, and finish at their apps', async () => {
    const { context, giveBack } = await browser.lend()
    const user = await fixture.user()
    const tabs = [await openTab(context, 0), await openTab(context, 1)]
    for (const index of order) {
      const { page, name } = tabs[index] as (typeof tabs)[number]
      await page.bringToFront()
      // The form of the second tab is from before the sign-in in the first one.
      await signIn(page, user)
      await allow(page, name).waitFor()
      await page.reload()
      await allow(page, name).waitFor()
      await page.goBack()
      await page.goForward()
      await allow(page, name).waitFor()
    }
    for (const index of order) {
      const { page, flow, name, ...kept } = tabs[index] as (typeof tabs)[number]
      await page.bringToFront()
      const question = page.url()
      await page.getByRole('button', { name: 'Allow', exact: true }).click()
      await page.getByText('the app').waitFor()
      expect((await flow.redeem({ ...kept, callback: page.url() })).token_type).toMatch(/^bearer$/i)
      await page.goto(question)
      await page.getByText('You have already answered this question').waitFor()
    }
    const left = (await context.cookies(fixture.baseUrl)).map(({ name }) => name)
    expect(left.filter((name) => name.includes('_flow_'))).toEqual([])
    for (const page of context.pages().slice(1)) await page.close()
    await giveBack()
  })
})
