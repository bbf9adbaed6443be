import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { buildUnsubscribeToken } from '../../src/webhook/mail/unsubscribe-token.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import { findFreePort } from '../harness/process/port.ts'
import { findTextFaults } from './layout.ts'
import {
  bringSession,
  fillFirst,
  findViolationsInBothSchemes,
  measureOverflow,
  NO_VIOLATIONS,
  type OpenBrowser,
  type PageBrowser,
  PERSON,
  readHeadings,
  signIn,
  startPageBrowser,
} from './page-browser.ts'

let fixture: PageBrowser
/** An app on another origin, which the service may send a browser back to. */
let app: Server
let appOrigin: string

beforeAll(async () => {
  app = createServer((_request, response) => response.setHeader('content-type', 'text/html').end('<h1>App</h1>'))
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve))
  appOrigin = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  const more = { SIGN_UP: 'open', SIGN_IN_BY_MAIL: 'true', AUTH_REDIRECT_ALLOW_LIST: `${appOrigin}/welcome` }
  fixture = await startPageBrowser(more)
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  app?.close()
})

/** The link of a mail about webhooks to the administrator. */
function buildStopLink(): string {
  const keyring = buildKeyring(TEST_SECRETS.secretKey, systemRandom)
  return `/auth/webhook-mail?token=${buildUnsubscribeToken(keyring, fixture.app.adminId)}`
}

/** A further user. Returns its address. */
async function createUser(): Promise<string> {
  const email = `person-${systemRandom.bytes(4).toString('hex')}@example.test`
  await createUserWithPassword(fixture.app, { email }, PERSON.password)
  return email
}

/** The token in the newest mail to an address. */
async function readToken(email: string): Promise<string> {
  return (await readMails(fixture.app, email))[0]!.token
}

/** Invites an address to a new account. Returns the link of the mail. */
async function invite(email: string): Promise<string> {
  const account = await fixture.app.admin('POST', '/api/v3/identity/account', { name: 'Northwind Rail' })
  await fixture.app.admin('POST', `/api/v3/identity/account/${account.body.data.document_id}/invitation`, { email })
  return `/auth/invitation?token=${await readToken(email)}`
}

/** Every page, and how a browser gets there. */
const PAGES: readonly { name: string; reach: (page: Page) => Promise<unknown>; heading: string }[] = [
  { name: 'the sign-in page', reach: (page) => page.goto('/auth/sign-in'), heading: 'Sign in' },
  {
    name: 'the sign-in page after a wrong password',
    reach: async (page) => {
      await page.goto('/auth/sign-in')
      await fillFirst(page.getByLabel('E-mail address'), PERSON.email)
      await page.getByLabel('Password', { exact: true }).fill('not the password')
      await page.keyboard.press('Enter')
      await page.getByText('The e-mail address or the password is wrong.').waitFor()
    },
    heading: 'Sign in',
  },
  {
    name: 'the sign-in page after an empty form',
    reach: async (page) => {
      await page.goto('/auth/sign-in')
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByText('Please check the form').waitFor()
    },
    heading: 'Sign in',
  },
  {
    name: 'the sign-in page after signing out',
    reach: (page) => page.goto('/auth/sign-in?notice=signed-out'),
    heading: 'Sign in',
  },
  {
    name: 'the account page',
    reach: async (page) => {
      await signIn(page)
      await page.waitForURL('**/auth/')
    },
    heading: PERSON.name,
  },
  {
    name: 'the devices',
    reach: async (page) => {
      await bringSession(fixture, page)
      await page.goto('/auth/devices')
    },
    heading: 'Your devices',
  },
  {
    name: 'the question whether to sign out',
    reach: async (page) => {
      await bringSession(fixture, page)
      await page.goto('/auth/sign-out')
    },
    heading: 'Sign out?',
  },
  {
    name: 'the form to change the password, refused',
    reach: async (page) => {
      await bringSession(fixture, page)
      await page.goto('/auth/password')
      await fillFirst(page.getByLabel('Current password', { exact: true }), PERSON.password)
      await page.getByRole('button', { name: 'Change the password' }).click()
      await page.getByText('Please check the form').waitFor()
    },
    heading: 'Change your password',
  },
  { name: 'the form to ask for a link', reach: (page) => page.goto('/auth/forgot'), heading: 'Set a new password' },
  { name: 'the answer to that form', reach: (page) => page.goto('/auth/forgot?sent=1'), heading: 'Check your mail' },
  { name: 'an old link', reach: (page) => page.goto('/auth/reset?token=old'), heading: 'This link no longer works' },
  {
    name: 'the form of a reset link',
    reach: async (page) => {
      const email = await createUser()
      await fixture.app.anonymous('POST', '/api/v3/auth/password/forgot', { email })
      await page.goto(`/auth/reset?token=${await readToken(email)}`)
    },
    heading: 'Choose a new password',
  },
  {
    name: 'a verification link',
    reach: (page) => page.goto('/auth/verify?token=x'),
    heading: 'Confirm your e-mail address',
  },
  {
    name: 'the link that stops mails about webhooks',
    reach: (page) => page.goto(buildStopLink()),
    heading: 'Stop mails about webhooks?',
  },
  {
    name: 'an invitation of a user who signs in first',
    reach: async (page) => page.goto(await invite(await createUser())),
    heading: 'Join Northwind Rail',
  },
  {
    name: 'an invitation of the user who is signed in',
    reach: async (page) => {
      const link = await invite(PERSON.email)
      await bringSession(fixture, page)
      await page.goto(link)
      await page.getByRole('button', { name: 'Join' }).waitFor()
    },
    heading: 'Join Northwind Rail',
  },
  { name: 'the form to sign up', reach: (page) => page.goto('/auth/sign-up'), heading: 'Sign up' },
  {
    name: 'the form to sign up, refused',
    reach: async (page) => {
      await page.goto('/auth/sign-up')
      await fillFirst(page.getByLabel('E-mail address'), 'nobody')
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByText('Please check the form').waitFor()
    },
    heading: 'Sign up',
  },
  {
    name: 'the link of a sign-up',
    reach: async (page) => {
      const email = `new-${systemRandom.bytes(4).toString('hex')}@example.test`
      await page.goto('/auth/sign-up')
      await fillFirst(page.getByLabel('E-mail address'), email)
      await page.getByRole('button', { name: 'Continue' }).click()
      await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
      await page.goto(`/auth/sign-up/confirm?token=${await readToken(email)}`)
    },
    heading: 'Sign up',
  },
  { name: 'the form to sign in by mail', reach: (page) => page.goto('/auth/sign-in/mail'), heading: 'Sign in by mail' },
  {
    name: 'the form of the code of a mail, refused',
    reach: async (page) => {
      await page.goto('/auth/sign-in/mail')
      await fillFirst(page.getByLabel('E-mail address'), PERSON.email)
      await page.getByRole('button', { name: 'Send the mail' }).click()
      await fillFirst(page.getByLabel('Code of the mail'), '0000')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('The code is wrong, was used, or has expired.').waitFor()
    },
    heading: 'Check your mail',
  },
  { name: 'the link of a mail', reach: (page) => page.goto('/auth/sign-in/mail/link?token=x'), heading: 'Sign in' },
  { name: 'the kept mails', reach: (page) => page.goto('/auth/mail'), heading: 'Mails' },
  { name: 'an error', reach: (page) => page.goto('/auth/error?code=rate_limited'), heading: 'Too many attempts' },
  { name: 'an unknown path', reach: (page) => page.goto('/auth/nothing'), heading: 'Page not found' },
]

describe('every page', () => {
  /** Where they are opened in turn. */
  let withScripts: OpenBrowser
  let withoutScripts: OpenBrowser
  beforeAll(async () => {
    withScripts = await fixture.open({ colorScheme: 'light', reducedMotion: 'reduce' })
    withoutScripts = await fixture.open({ javaScriptEnabled: false })
  })
  afterAll(async () => {
    await withScripts?.close()
    await withoutScripts?.close()
  })

  describe.each(PAGES)('$name', ({ reach, heading }) => {
    test('has no fault that axe finds in light and dark, fits 320 pixels, loads nothing external and violates no policy', async () => {
      const { page, foreign, complaints } = withScripts
      await withScripts.beginAnew()
      await reach(page)
      expect(await readHeadings(page)).toEqual([heading])
      expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
      await page.setViewportSize({ width: 320, height: 640 })
      expect(await measureOverflow(page)).toBe(0)
      expect(await findTextFaults(page)).toEqual([])
      expect(foreign).toEqual([])
      expect(complaints.filter((text) => !/the server responded with a status of 4\d\d/.test(text))).toEqual([])
    })

    test('is the same page without scripts', async () => {
      await withoutScripts.beginAnew()
      await reach(withoutScripts.page)
      expect(await readHeadings(withoutScripts.page)).toEqual([heading])
    })
  })
})

describe('the look', () => {
  test('follows the colour scheme of the system', async () => {
    const { page, close } = await fixture.open()
    await page.goto('/auth/sign-in')
    const fixtures: unknown[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      fixtures.push(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
    }
    await close()
    expect(fixtures).toEqual(['rgb(245, 246, 248)', 'rgb(13, 15, 20)'])
  })

  test('has each box beside its words', async () => {
    const { page, close } = await fixture.open()
    await bringSession(fixture, page)
    await page.goto('/auth/password')
    const box = await page.getByRole('checkbox', { name: 'Keep my apps connected' }).boundingBox()
    const words = await page.getByText('Keep my apps connected').boundingBox()
    await close()
    expect(words!.x).toBeGreaterThan(box!.x + box!.width)
    expect(words!.y).toBeLessThan(box!.y + box!.height)
  })

  test('has contrast AA also under the pointer, in light and dark', async () => {
    const { page, close } = await fixture.open({ reducedMotion: 'reduce' })
    const findContrastFaults = async () => {
      expect(await page.locator('button:hover').count()).toBe(1)
      return findViolationsInBothSchemes(page, { rules: ['color-contrast'], within: 'button:hover' })
    }
    // A user of few devices: each of them has the same buttons.
    const user = { email: await createUser(), password: PERSON.password }
    await fixture.app.anonymous('POST', '/api/v3/auth/login/local', user)
    await bringSession(fixture, page, user)
    await page.goto('/auth/devices')
    const buttons = await page.getByRole('button').all()
    expect(buttons).toHaveLength(3)
    for (const button of buttons) {
      await button.hover()
      expect(await findContrastFaults()).toEqual(NO_VIOLATIONS)
    }
    await page.goto('/auth/sign-out')
    await page.getByRole('button', { name: 'Sign out' }).hover()
    expect(await findContrastFaults()).toEqual(NO_VIOLATIONS)
    await close()
  })

  test('does not move for users who ask for that', async () => {
    const { page, close } = await fixture.open({ reducedMotion: 'reduce' })
    await page.goto('/auth/sign-in')
    const durations = await page.evaluate(
      "[...document.querySelectorAll('*')].map((one) => getComputedStyle(one).transitionDuration).filter((one) => one !== '0s')",
    )
    expect(durations).toEqual([])
    await close()
  })

  test('grows with the text of the reader: at 200 percent nothing is cut', async () => {
    const { page, close } = await fixture.open({ viewport: { width: 640, height: 900 } })
    await page.goto('/auth/sign-in')
    await page.evaluate("document.documentElement.style.fontSize = '200%'")
    expect(await measureOverflow(page)).toBe(0)
    await close()
  })
})

describe('by keyboard alone', () => {
  const isOutlined = "getComputedStyle(document.activeElement).outlineStyle !== 'none'"

  test('a user signs in, ends another device and signs out', async () => {
    const { email, password } = PERSON
    expect((await fixture.app.anonymous('POST', '/api/v3/auth/login/local', { email, password })).status).toBe(200)
    const { page, close } = await fixture.open()
    const press = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key)
    }
    const pressUntil = async (name: string) => {
      for (let count = 0; count < 30; count += 1) {
        await press('Tab')
        const text = await page.evaluate('document.activeElement.innerText')
        expect(await page.evaluate(isOutlined), `the focus on ${text} is visible`).toBe(true)
        if (text === name) return
      }
      throw new Error(`no way by keyboard to ${name}`)
    }
    await page.goto('/auth/sign-in?next=%2Fauth%2Fdevices')
    await page.locator('#email:focus').waitFor()
    // The address has the focus; the next stops are the password and the button that shows it.
    await page.keyboard.type(PERSON.email)
    await press('Tab')
    await page.keyboard.type(PERSON.password)
    await press('Enter')
    await page.waitForURL('**/auth/devices')
    await pressUntil('Skip to the content')
    await press('Enter')
    await pressUntil('Sign out')
    await press('Enter')
    await page.getByText('The device is signed out.').waitFor()
    await pressUntil('Sign out')
    await press('Enter')
    await page.getByText('You are signed out.').waitFor()
    await close()
  })

  test('the errors of a form have the focus, and lead to their fields', async () => {
    const { page, close } = await fixture.open()
    await page.goto('/auth/sign-in')
    await page.locator('#email:focus').waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('Please check the form').waitFor()
    // The script of the page moves the focus when the page is loaded, which is after its text is there.
    await page.locator('[role=alert]:focus').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('#password:focus').waitFor()
    await close()
  })
})

describe('the sign-in form', () => {
  test('is known to password managers by its fields', async () => {
    const { page, close } = await fixture.open()
    await page.goto('/auth/sign-in')
    expect(await page.getByLabel('E-mail address').getAttribute('autocomplete')).toBe('username webauthn')
    expect(await page.getByLabel('Password', { exact: true }).getAttribute('autocomplete')).toBe('current-password')
    await close()
  })

  test('shows the password on demand, and sends it as a password', async () => {
    const { page, close } = await fixture.open()
    await page.goto('/auth/sign-in')
    const password = page.locator('#password')
    await password.fill('something')
    await page.getByRole('button', { name: 'Show password' }).click()
    expect(await password.getAttribute('type')).toBe('text')
    await page.getByRole('button', { name: 'Hide password' }).click()
    expect(await password.getAttribute('type')).toBe('password')
    await close()
  })

  test('from another origin is refused by the service, and signs nobody in', async () => {
    const { page, context, close } = await fixture.open()
    await page.goto('/auth/sign-in')
    // The same service under another name is another site for the browser.
    const foreign = fixture.origin.replace('localhost', '127.0.0.1')
    await page.goto(`${foreign}/docs`)
    const action = `${fixture.origin}/auth/sign-in`
    await page.route('**/evil', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<form method="post" action="${action}"><input name="email" value="${PERSON.email}"><input name="password" value="${PERSON.password}"><button>Go</button></form>`,
      }),
    )
    await page.goto(`${foreign}/evil`)
    await page.getByRole('button', { name: 'Go' }).click()
    await page.getByText('Open the page again').first().waitFor()
    const names = (await context.cookies(fixture.origin)).map(({ name }) => name)
    expect(names).not.toContain('signalbox_session')
    await close()
  })

  test('leaves cookies that scripts do not read', async () => {
    const { page, context, close } = await fixture.open()
    await signIn(page)
    await page.waitForURL('**/auth/')
    expect(await page.evaluate('document.cookie')).toBe('')
    const cookies = await context.cookies(`${fixture.origin}/auth/`)
    expect(cookies.map(({ name, httpOnly, secure, sameSite }) => [name, httpOnly, secure, sameSite]).sort()).toEqual(
      ['signalbox_browser', 'signalbox_refresh', 'signalbox_session'].map((name) => [name, true, true, 'Lax']),
    )
    await close()
  })

  test('in a second tab after the session expired goes through the refresh unseen', async () => {
    const { page, context, close } = await fixture.open()
    await signIn(page)
    await page.waitForURL('**/auth/')
    await context.clearCookies({ name: 'signalbox_session' })
    const tab = await context.newPage()
    await tab.goto('/auth/devices')
    expect(await tab.locator('h1').innerText()).toBe('Your devices')
    expect(tab.url()).toBe(`${fixture.origin}/auth/devices`)
    await close()
  })
})

test('the link of a mail about webhooks stops them with one button, without a sign-in', async () => {
  const { page, close } = await fixture.open()
  await page.goto(buildStopLink())
  await page.getByRole('button', { name: 'Stop these mails' }).click()
  await page.getByRole('heading', { name: 'The mails are stopped' }).waitFor()
  const { rows } = await fixture.app.database.pool.query('select "user", is_stopped from webhook_mail_setting')
  expect(rows).toEqual([{ user: fixture.app.adminId, is_stopped: true }])
  await close()
})

test('a user who forgot the password sets a new one by the link of the mail, and is signed in', async () => {
  const { page, close } = await fixture.open()
  const email = 'forgetful@example.test'
  await createUserWithPassword(fixture.app, { email }, PERSON.password)
  await page.goto('/auth/sign-in')
  await page.getByRole('link', { name: 'Forgot your password?' }).click()
  await fillFirst(page.getByLabel('E-mail address'), email)
  await page.keyboard.press('Enter')
  await page.getByText('Check your mail').first().waitFor()
  await fixture.app.app.mailWorker.drain()
  await page.goto('/auth/mail')
  await page.getByRole('article').filter({ hasText: email }).getByRole('link').click()
  await fillFirst(page.getByLabel('New password', { exact: true }), 'staple of another stable')
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.getByText('Your new password is set, and you are signed in.').waitFor()
  await close()
})

test('in production a planted cookie without the prefix of its host counts for nothing', async () => {
  const port = String(await findFreePort())
  // Production needs its URL before it starts, and the browser follows its redirects there.
  await using production = await startPageBrowser({
    ...{ APP_ENV: 'production', PORT: port, BASE_URL: `http://127.0.0.1:${port}` },
  })
  const { page, context, close } = await production.open()
  await signIn(page)
  await page.waitForURL('**/auth/')
  const cookies = await context.cookies()
  const session = cookies.find(({ name }) => name === '__Host-signalbox_session')
  expect(cookies.map(({ name }) => name).sort()).toEqual([
    '__Host-signalbox_browser',
    '__Host-signalbox_session',
    'signalbox_refresh',
  ])
  await context.clearCookies()
  const planted = { name: 'signalbox_session', value: session!.value, url: production.origin }
  await context.addCookies([planted])
  await page.goto('/auth/')
  expect(await page.locator('h1').innerText()).toBe('Sign in')
  await close()
})

describe('a redirect to an app', () => {
  test('is followed by the browser, which applies the policy of the form to it', async () => {
    const { page, complaints, close } = await fixture.open()
    await signIn(page, `/auth/sign-in?redirect_url=${encodeURIComponent(`${appOrigin}/welcome?a=1`)}`)
    await page.waitForURL(`${appOrigin}/welcome?a=1`)
    expect(await page.locator('h1').innerText()).toBe('App')
    expect(complaints.filter((text) => !text.includes('favicon'))).toEqual([])
    await close()
  })
})
