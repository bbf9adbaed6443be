import { expect, onTestFinished, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { TEST_SECRETS } from '../../../test/harness/app/test-secrets.ts'
import { buildVisitor } from '../../../test/harness/browser/visitor.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { systemRandom } from '../../base/random.ts'
import { buildBrowserKeys, KNOWN_MS } from '../pages/browser/browser-key.ts'
import { buildHashingSemaphore, type HashingSemaphore } from '../password/hashing-semaphore.ts'

const LOGIN = '/api/v3/auth/login/local'
const PAGE = '/auth/sign-in'
const COOKIE = 'signalbox_browser'
const PASSWORD = 'correct horse battery'
/** Networks that try at once. Of 21 places, 19 are for strangers. */
const ATTACKERS = 40
const FOR_STRANGERS = 19

/** Holds every hash while it is set. */
let hold: PromiseWithResolvers<void> | undefined
let networks = 0

/** A gate whose work waits for `hold`, on a clock that stands still. */
function buildHeldGate(): HashingSemaphore {
  const gate = buildHashingSemaphore({ atOnce: 1, queueLimit: 20, waitMs: 5_000, clock: buildManualClock() })
  const run = <Result>(work: () => Promise<Result>) =>
    gate(async () => {
      await hold?.promise
      return work()
    })
  return Object.assign(run, { admit: gate.admit, judgePlace: gate.judgePlace })
}

const app = await openForFile(
  createTestApp({
    env: { TRUST_PROXY: 'loopback', RATE_LIMIT_STRICT_PER_MINUTE: '100000' },
    hashingSemaphore: buildHeldGate(),
  }),
)
const origin = await app.app.server.listen({ host: '127.0.0.1', port: 0 })

/** An address of a network that has not tried yet. */
function newNetwork(): string {
  networks += 1
  return `10.${networks >> 8}.${networks & 255}.1`
}

const newUser = async () => {
  const email = `person-${systemRandom.bytes(4).toString('hex')}@example.com`
  const id = await createUserWithPassword(app, { email }, PASSWORD)
  return { email, id }
}

/** Signs in over HTTP, from a new network. Returns the status. */
async function logIn(email: string, { password = PASSWORD, browser = '' } = {}): Promise<number> {
  const answer = await fetch(`${origin}${LOGIN}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': newNetwork(),
      ...(browser !== '' && { cookie: `${COOKIE}=${browser}` }),
    },
    body: JSON.stringify({ email, password }),
  })
  await answer.body?.cancel()
  return answer.status
}

/** A browser with the form of the sign-in. */
function openBrowser() {
  const visitor = buildVisitor()
  const url = `${origin}${PAGE}`
  const submit = async (email: string) => {
    const { body } = await visitor.visit(url)
    const token = /name="form_token" value="([^"]+)"/.exec(body)?.[1] ?? ''
    const headers = { 'x-forwarded-for': newNetwork(), 'sec-fetch-site': 'same-origin' }
    const form = { form_token: token, email, password: PASSWORD, redirect_url: '', next: '' }
    return (await visitor.visit(url, { method: 'POST', form, headers })).status
  }
  const signOut = () => {
    for (const name of [...visitor.cookiesOf(url).keys()]) if (name !== COOKIE) visitor.cookiesOf(url).delete(name)
  }
  return { submit, signOut, id: () => visitor.cookiesOf(url).get(COOKIE) ?? '' }
}

/** The id of a browser in which this user signed in with the form. */
async function signIn(email: string) {
  const browser = openBrowser()
  expect(await browser.submit(email)).toBe(303)
  return browser
}

/** Fills the places of strangers with wrong passwords that wait, and returns what ends the attack. */
async function attack(): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>()
  hold = held
  const statuses: number[] = []
  const tries = Array.from({ length: ATTACKERS }, async (_, step) => {
    statuses.push(await logIn(`nobody-${step}@example.com`, { password: 'wrong horse battery' }))
  })
  const end = async () => {
    held.resolve()
    hold = undefined
    await Promise.all(tries)
  }
  onTestFinished(end)
  await waitFor('the refused ones', async () => statuses.length === ATTACKERS - FOR_STRANGERS)
  expect(new Set(statuses)).toEqual(new Set([503]))
  return end
}

test('a browser in which the user has signed in gets in while strangers hold every place, with form and API', async () => {
  const user = await newUser()
  const browser = await signIn(user.email)
  browser.signOut()
  const end = await attack()
  expect(await logIn(user.email)).toBe(503)
  const tries = [browser.submit(user.email), logIn(user.email.toUpperCase(), { browser: browser.id() })]
  expect(await logIn(user.email)).toBe(503)
  await end()
  expect(await Promise.all(tries)).toEqual([303, 200])
})

test.each([
  ['the sessions were revoked', (id: string) => app.admin('POST', `/api/v3/identity/user/${id}/revoke-sessions`)],
  [
    'the user was disabled and enabled',
    async (id: string) => {
      await app.admin('POST', `/api/v3/identity/user/${id}/disable`)
      return app.admin('POST', `/api/v3/identity/user/${id}/enable`)
    },
  ],
] as const)('a browser is a stranger after %s, until the next sign-in', async (_, endAccess) => {
  const user = await newUser()
  const browser = await signIn(user.email)
  app.clock.advance(1_000)
  expect((await endAccess(user.id)).status).toBe(200)
  const endFirst = await attack()
  expect(await logIn(user.email, { browser: browser.id() })).toBe(503)
  await endFirst()
  app.clock.advance(1_000)
  browser.signOut()
  expect(await browser.submit(user.email)).toBe(303)
  const endSecond = await attack()
  const again = logIn(user.email, { browser: browser.id() })
  await endSecond()
  expect(await again).toBe(200)
})

/** A copy with one character changed. */
const spoil = (id: string, at: number) => id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1)

// The last one: its sessions end while time passes.
test('the id of no other browser, user, time, service or secret has that place', async () => {
  const old = await signIn((await newUser()).email)
  const [ada, bob] = [await newUser(), await newUser()]
  const expired = (await signIn(ada.email)).id()
  app.clock.advance(KNOWN_MS)
  const [own, others] = [(await signIn(ada.email)).id(), (await signIn(bob.email)).id()]
  const make = (secrets: readonly string[], issuer: string) =>
    buildBrowserKeys({ secrets, random: systemRandom, issuer: () => issuer }).createKnownBrowserId({
      email: ada.email,
      now: new Date(app.clock.now()),
    })
  const ids = {
    'no cookie': '',
    'made up': systemRandom.bytes(32).toString('base64url'),
    'of a visit without a sign-in': await visitOnly(),
    'another time': spoil(own, 18),
    'another random half': spoil(own, 0),
    'another code': spoil(own, 30),
    'of another user': others,
    'of a third one, long ago': old.id(),
    expired,
    'of another service with the same secrets': make(TEST_SECRETS.sessionJwt, 'https://other.example'),
    'of another secret': make(['another secret of 32 bytes, for tests'], app.app.baseUrl()),
  }
  const end = await attack()
  const statuses: Record<string, number> = {}
  for (const [name, browser] of Object.entries(ids)) statuses[name] = await logIn(ada.email, { browser })
  expect(statuses).toEqual(Object.fromEntries(Object.keys(ids).map((name) => [name, 503])))
  const right = [logIn(ada.email, { browser: own }), logIn(bob.email, { browser: others })]
  await end()
  expect(await Promise.all(right)).toEqual([200, 200])
})

async function visitOnly(): Promise<string> {
  const visitor = buildVisitor()
  await visitor.visit(`${origin}${PAGE}`)
  return visitor.cookiesOf(origin).get(COOKIE) ?? ''
}
