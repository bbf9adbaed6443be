import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findTextFaults } from './layout.ts'
import {
  findViolationsInBothSchemes,
  measureOverflow,
  NO_VIOLATIONS,
  type PageBrowser,
  readHeadings,
  startPageBrowser,
} from './page-browser.ts'

let fixture: PageBrowser
let app: Server
let appUrl: string

beforeAll(async () => {
  app = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>App</title><h1>The app</h1>')
  })
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
  appUrl = `http://localhost:${(app.address() as AddressInfo).port}/welcome`
  const credentials = ['GOOGLE', 'MICROSOFT', 'GITHUB', 'FACEBOOK', 'LINKEDIN', 'GITLAB', 'DISCORD'].flatMap((name) => [
    [`SOCIAL_${name}_CLIENT_ID`, 'client'],
    [`SOCIAL_${name}_CLIENT_SECRET`, 'secret'],
  ])
  const env = { APP_ENV: 'development', AUTH_REDIRECT_ALLOW_LIST: 'com.example.app:' }
  fixture = await startPageBrowser({ ...env, ...Object.fromEntries(credentials) })
})
afterAll(async () => {
  app?.close()
  await fixture?.[Symbol.asyncDispose]()
})

const startOf = (redirectUrl = appUrl) => `/api/v3/auth/login/oauth/dev?redirect_url=${encodeURIComponent(redirectUrl)}`

/** Opens the page of the provider and chooses a sample user. */
async function choose(page: Page, name: string, redirectUrl?: string): Promise<void> {
  await page.goto(startOf(redirectUrl))
  await page.getByRole('link', { name: `Continue as ${name}` }).click()
}

/** Holds the requests to callback-redirect, so that the bridge page stays; returns what they were. */
async function holdBridge(page: Page): Promise<string[]> {
  const held: string[] = []
  await page.route('**/callback-redirect*', (route) => {
    held.push(route.request().url())
    return route.abort()
  })
  return held
}

describe('a sign-in with a provider in a browser', () => {
  test('begins at the sign-in page, ends at the account page, and leaves a session that scripts do not see', async () => {
    const { page, context, foreign, complaints, close } = await fixture.open()
    await page.goto('/auth/sign-in')
    await page.getByRole('link', { name: 'Continue with a sample user' }).click()
    await page.getByRole('link', { name: 'Continue as Nora New' }).click()
    await page.waitForURL('**/auth/')
    expect(await page.locator('h1').innerText()).toBe('Nora New')
    const cookies = await context.cookies(fixture.origin)
    const session = cookies.find(({ name }) => name === 'signalbox_session')
    expect(session).toMatchObject({ httpOnly: true, sameSite: 'Lax' })
    expect(await page.evaluate('document.cookie')).toBe('')
    expect([foreign, complaints]).toEqual([[], []])
    await close()
  })

  test('ends at the app with a clean address, and no code is left in the history', async () => {
    const { page, close } = await fixture.open()
    await choose(page, 'Nora New')
    await page.waitForURL(appUrl)
    expect(await page.locator('h1').innerText()).toBe('The app')
    await page.goBack()
    expect(page.url()).not.toMatch(/\/callback|[?&]code=/)
    await close()
  })

  test('ends at the app without scripts too', async () => {
    const { page, context, close } = await fixture.open({ javaScriptEnabled: false })
    await choose(page, 'Rita Returning')
    expect(await page.locator('h1').innerText()).toBe('Signing you in')
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.waitForURL(appUrl)
    expect((await context.cookies(fixture.origin)).map(({ name }) => name)).toContain('signalbox_session')
    await close()
  })

  test('lets two tabs finish', async () => {
    const { page, context, close } = await fixture.open()
    const other = await context.newPage()
    await page.goto(startOf())
    await other.goto(startOf())
    for (const tab of [page, other]) {
      await tab.getByRole('link', { name: 'Continue as Rita Returning' }).click()
      await tab.waitForURL(appUrl)
    }
    await close()
  })

  test('is refused in the browser of a victim, who stays signed out (login CSRF)', async () => {
    const attacker = await fixture.open()
    await holdBridge(attacker.page)
    const callbacks: string[] = []
    attacker.page.on('request', (request) => {
      if (request.url().includes('/callback?')) callbacks.push(request.url())
    })
    await choose(attacker.page, 'Nora New')
    await attacker.page.getByRole('heading', { name: 'Something went wrong' }).waitFor()
    const victim = await fixture.open()
    await victim.page.goto(String(callbacks[0]))
    expect(await victim.page.locator('h1').innerText()).toBe('You were not signed in')
    expect(await victim.context.cookies(fixture.origin)).toEqual([])
    await Promise.all([attacker.close(), victim.close()])
  })

  test('opens an app with its tokens', async () => {
    const { page, close } = await fixture.open()
    const locations: string[] = []
    await page.route('**/callback-redirect*', async (route) => {
      const answer = await route.fetch({ maxRedirects: 0 })
      locations.push(answer.headers().location ?? '')
      await route.fulfill({ status: 200, contentType: 'text/html', body: '<h1>The app opens</h1>' })
    })
    await choose(page, 'Nora New', 'com.example.app:/signed-in')
    await page.getByRole('heading', { name: 'The app opens' }).waitFor()
    expect(locations[0]).toMatch(/^com\.example\.app:\/signed-in\?access_token=/)
    await close()
  })
})

describe('the bridge page', () => {
  test('takes code and state out of the address bar before anything else', async () => {
    const { page, close } = await fixture.open()
    const held = await holdBridge(page)
    await choose(page, 'Nora New')
    await page.getByRole('heading', { name: 'Something went wrong' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/api/v3/auth/login/oauth/dev/callback')
    expect([new URL(page.url()).search, new URL(page.url()).hash]).toEqual(['', ''])
    expect(new URL(held[0] ?? '').searchParams.has('code')).toBe(true)
    expect(await page.evaluate('document.referrer')).not.toContain('code=')
    await close()
  })

  test.each([
    ['the state is in the query', (state: string) => `?state=${state}#access_token=at`],
    ['the state is in the fragment too', (state: string) => `#access_token=at&state=${state}`],
  ])('takes the tokens of the fragment out of the address bar, and hands them on: %s', async (_what, answer) => {
    const { page, close } = await fixture.open()
    const held = await holdBridge(page)
    await page.goto(startOf())
    const state = new URL(page.url()).searchParams.get('state') ?? ''
    const callback = `/api/v3/auth/login/oauth/dev/callback${answer(encodeURIComponent(state))}`
    await page.goto(`${callback}&refresh_token=rt&expires_in=3600`)
    await page.getByRole('heading', { name: 'Something went wrong' }).waitFor()
    expect([new URL(page.url()).search, new URL(page.url()).hash]).toEqual(['', ''])
    expect(Object.fromEntries(new URL(held[0] ?? '').searchParams)).toEqual({
      state,
      access_token: 'at',
      refresh_token: 'rt',
    })
    await close()
  })

  test('shows a failure for an address without any answer', async () => {
    const { page, close } = await fixture.open()
    await page.goto('/api/v3/auth/login/oauth/dev/callback')
    await page.getByRole('heading', { name: 'You were not signed in' }).waitFor()
    expect(await page.getByRole('link', { name: 'Go to sign-in' }).getAttribute('href')).toBe('/auth/sign-in')
    await close()
  })

  test('shows a failure with a way back to the app, and puts the focus on it', async () => {
    const { page, close } = await fixture.open()
    await choose(page, 'Umar Unverified')
    await page.getByRole('heading', { name: 'Confirm your e-mail address first' }).waitFor()
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1')
    expect(await page.getByRole('link', { name: 'Go back' }).getAttribute('href')).toBe(appUrl)
    expect(await page.title()).toBe('Confirm your e-mail address first · Signalbox')
    expect(await page.locator('#reference code').innerText()).toMatch(/^[\w-]{8,}$/)
    await close()
  })

  test('tells a disabled user the reason, and offers no way into a circle', async () => {
    const { page, close } = await fixture.open()
    await choose(page, 'Dora Disabled')
    await page.getByRole('heading', { name: 'Your account is disabled' }).waitFor()
    expect(await page.title()).toBe('Your account is disabled · Signalbox')
    expect(await page.getByRole('link', { name: /Go back|Go to sign-in|Continue/ }).count()).toBe(0)
    await close()
  })

  test('speaks German in a German browser, also in what its script shows', async () => {
    const { page, close } = await fixture.open({ locale: 'de-DE' })
    await page.goto(startOf())
    await page.getByRole('link', { name: 'Weiter als Umar Unverified' }).click()
    await page.getByRole('heading', { name: 'Bestätigen Sie zuerst Ihre E-Mail-Adresse' }).waitFor()
    await close()
  })
})

/** Every page of this part, and how a browser gets there. */
const PAGES: readonly { name: string; reach: (page: Page) => Promise<unknown>; heading: string }[] = [
  { name: 'the sign-in page with every provider', reach: (page) => page.goto('/auth/sign-in'), heading: 'Sign in' },
  { name: 'the page of sample users', reach: (page) => page.goto(startOf()), heading: 'Choose a sample user' },
  { name: 'a denial', reach: (page) => choose(page, 'Dan Denied'), heading: 'You were not signed in' },
  {
    name: 'a callback that this browser did not begin',
    reach: (page) => page.goto('/api/v3/auth/login/oauth/dev/callback?code=c&state=s'),
    heading: 'You were not signed in',
  },
  {
    name: 'an unknown provider at the callback',
    reach: (page) => page.goto('/api/v3/auth/login/oauth/nothing/callback'),
    heading: 'Unknown sign-in service',
  },
]

describe('an error page of the callback', () => {
  const held = '#access_token=at&refresh_token=rt'
  test.each([
    ['a denial of the provider', (page: Page) => choose(page, 'Dan Denied')],
    ['another browser', (page: Page) => page.goto(`/api/v3/auth/login/oauth/dev/callback?code=c&state=s${held}`)],
    ['an unknown provider', (page: Page) => page.goto(`/api/v3/auth/login/oauth/nothing/callback?code=c${held}`)],
    ['a damaged query', (page: Page) => page.goto(`/api/v3/auth/login/oauth/dev/callback?other=c${held}`)],
  ])('of %s takes query and fragment out of the address bar and the history', async (_what, reach) => {
    const { page, complaints, close } = await fixture.open()
    const errors: string[] = []
    page.on('pageerror', ({ message }) => errors.push(message))
    await reach(page)
    await page.waitForURL(({ search, hash }) => search === '' && hash === '')
    const { pathname } = new URL(page.url())
    expect([page.url(), pathname.endsWith('/callback')]).toEqual([`${fixture.origin}${pathname}`, true])
    await page.goto('/auth/sign-in')
    await page.goBack()
    expect(await page.evaluate('location.href')).toBe(`${fixture.origin}${pathname}`)
    expect(errors).toEqual([])
    expect(complaints.filter((complaint) => !complaint.includes('the server responded with a status'))).toEqual([])
    await close()
  })
})

describe.each(PAGES)('$name', ({ reach, heading }) => {
  test('has no accessibility fault that axe finds in light and dark, and fits 320 pixels', async () => {
    const { page, close } = await fixture.open({ reducedMotion: 'reduce' })
    await reach(page)
    expect(await readHeadings(page)).toEqual([heading])
    expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
    await page.setViewportSize({ width: 320, height: 640 })
    expect(await measureOverflow(page)).toBe(0)
    expect(await findTextFaults(page)).toEqual([])
    await close()
  })

  test('loads nothing external and is readable without scripts', async () => {
    const { page, foreign, close } = await fixture.open({ javaScriptEnabled: false })
    await reach(page)
    expect(await readHeadings(page)).toEqual([heading])
    expect(foreign).toEqual([])
    await close()
  })
})

test('the buttons of all providers are of one size, with marks of one height', async () => {
  const { page, close } = await fixture.open()
  await page.goto('/auth/sign-in')
  const measure = `[...document.querySelectorAll('.providers .button')].map((button) => {
    const mark = button.querySelector('svg')
    return [button.offsetWidth, button.offsetHeight, mark === null ? 20 : mark.getBoundingClientRect().height]
  })`
  const sizes = (await page.evaluate(measure)) as number[][]
  expect(sizes.length).toBe(8)
  expect(new Set(sizes.map((size) => JSON.stringify(size))).size).toBe(1)
  expect(sizes[0]?.slice(1)).toEqual([44, 20])
  await close()
})

describe('the bridge page while it waits', () => {
  test('has no accessibility fault that axe finds in light and dark', async () => {
    const { page, close } = await fixture.open({ viewport: { width: 320, height: 640 }, reducedMotion: 'reduce' })
    const release = Promise.withResolvers<void>()
    await page.route('**/callback-redirect*', async (route) => {
      await release.promise
      await route.abort()
    })
    await choose(page, 'Nora New')
    await page.getByRole('heading', { name: 'Signing you in' }).waitFor()
    expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
    expect(await measureOverflow(page)).toBe(0)
    release.resolve()
    await page.getByRole('heading', { name: 'Something went wrong' }).waitFor()
    expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
    expect(await findTextFaults(page)).toEqual([])
    await close()
  })
})
