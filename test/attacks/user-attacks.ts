import { openBrowser, readForm } from '../harness/browser/oauth-service.ts'
import type { Visited, Visitor } from '../harness/browser/visitor.ts'
import type { AttackFixture } from './attack-fixture.ts'
import type { AttackCase } from './breakage.ts'

type Case = AttackCase<AttackFixture>

const CONSENT = '/auth/oauth/consent'

/** A new user in a new browser, who stands before the question for consent. */
async function standBefore({
  fixture,
  flow,
}: AttackFixture): Promise<{ browser: Visitor; page: Visited; userId: string }> {
  const [browser, user] = [openBrowser(), await fixture.user()]
  const { url } = await flow.prepare({ scope: 'openid email' })
  const page = await fixture.walk(browser, url, { user, decision: 'stop' })
  return { browser, page, userId: user.userId }
}

/** Whether a form that approves is taken, with changed fields and headers. */
async function approves(
  attack: AttackFixture,
  { fields = {}, headers = {} }: { fields?: Record<string, string>; headers?: Record<string, string> },
): Promise<boolean> {
  const { browser, page, userId } = await standBefore(attack)
  const form = { ...readForm(page.body, CONSENT), decision: 'approve', ...fields }
  await browser.visit(`${attack.fixture.baseUrl}${CONSENT}`, { method: 'POST', form, headers })
  const grants = await attack.fixture.app.admin('GET', `/api/v3/oauth/grant?filters=user|eq|${userId}`)
  return grants.body.data.length > 0
}

const FORGED_ORIGINS: [name: string, headers: Record<string, string>][] = [
  ['another site', { origin: 'https://evil.example' }],
  ['another origin of this machine', { origin: 'http://localhost:1' }],
  ['a sandboxed frame', { origin: 'null' }],
  ['another site, as the browser tells it', { 'sec-fetch-site': 'cross-site' }],
  ['a sibling site, as the browser tells it', { 'sec-fetch-site': 'same-site' }],
]

const FORGERY: Case[] = [
  ...FORGED_ORIGINS.map(
    ([name, headers]): Case => ({
      name: `a form of ${name} decides for the user`,
      brokenBy: 'origins of forms are not checked',
      attack: (fixture) => approves(fixture, { headers }),
    }),
  ),
  {
    name: 'a form without its token decides for the user',
    brokenBy: 'tokens of forms are not checked',
    attack: (fixture) => approves(fixture, { fields: { form_token: '' } }),
  },
  {
    name: 'a form with a made-up token decides for the user',
    brokenBy: 'tokens of forms are not checked',
    attack: (fixture) => approves(fixture, { fields: { form_token: 'a.b' } }),
  },
  {
    name: 'a form with the token of another browser decides for the user',
    brokenBy: 'tokens of forms are not checked',
    attack: async (fixture) => {
      const { form_token: token = '' } = readForm((await standBefore(fixture)).page.body, CONSENT)
      return approves(fixture, { fields: { form_token: token } })
    },
  },
  {
    name: 'a form with a guessed token signs the user out',
    brokenBy: 'forms of the provider have no token',
    attack: async ({ fixture, flow, user }) => {
      const browser = openBrowser()
      await flow.signIn(browser, { user })
      await browser.visit(`${fixture.issuer}/end-session`)
      const form = { logout: 'yes', xsrf: 'guess' }
      await browser.visit(`${fixture.issuer}/end-session/confirm`, { method: 'POST', form })
      return (await browser.visit(`${fixture.baseUrl}/auth/devices`)).status !== 200
    },
  },
]

/** The pages where a user decides something. */
const PAGES: [name: string, open: (fixture: AttackFixture) => Promise<Visited>][] = [
  ['consent', async (fixture) => (await standBefore(fixture)).page],
  ['sign-out', ({ fixture, browser }) => browser.visit(`${fixture.issuer}/end-session`)],
  ['device', ({ fixture, browser }) => browser.visit(`${fixture.issuer}/device`)],
  ['error', ({ ask }) => ask({ redirect_uri: 'https://evil.example' })],
]

const FRAMES: Case[] = PAGES.flatMap(([name, open]): Case[] => [
  {
    name: `the ${name} page is shown in a frame`,
    brokenBy: 'pages can be framed',
    attack: async (fixture) => {
      const { headers } = await open(fixture)
      const isFramed = String(headers['content-security-policy']).includes("frame-ancestors 'none'")
      return !isFramed && headers['x-frame-options'] !== 'DENY'
    },
  },
  {
    name: `the ${name} page sends its address to other sites`,
    brokenBy: 'pages send their address on',
    attack: async (fixture) =>
      !['same-origin', 'no-referrer'].includes(String((await open(fixture)).headers['referrer-policy'])),
  },
])

const repeatsForm = ({ status }: Visited) => status === 307 || status === 308

/** A redirect that repeats the form hands it to the app (RFC 9700 section 4.12). */
const FORWARDING: Case[] = [
  {
    name: 'the password of a sign-in is posted on to the next address',
    brokenBy: 'redirects repeat the form',
    attack: async ({ fixture, flow }) => {
      const [browser, user] = [openBrowser(), await fixture.user()]
      const page = await fixture.walk(browser, (await flow.prepare()).url)
      const form = { ...readForm(page.body, '/auth/sign-in'), email: user.email, password: user.password }
      return repeatsForm(await browser.visit(`${fixture.baseUrl}/auth/sign-in`, { method: 'POST', form }))
    },
  },
  {
    name: 'the form of a decision is posted on to the app',
    brokenBy: 'redirects repeat the form',
    attack: async (attack) => {
      const { browser, page } = await standBefore(attack)
      const form = { ...readForm(page.body, CONSENT), decision: 'approve' }
      return repeatsForm(await browser.visit(`${attack.fixture.baseUrl}${CONSENT}`, { method: 'POST', form }))
    },
  },
  {
    name: 'an authorization request by POST is posted on',
    brokenBy: 'redirects repeat the form',
    attack: async ({ flow, browser }) => {
      const { origin, pathname, searchParams } = new URL((await flow.prepare()).url)
      const form = Object.fromEntries(searchParams)
      return repeatsForm(await browser.visit(`${origin}${pathname}`, { method: 'POST', form }))
    },
  },
]

/** The authorization endpoint answers no script of another origin (RFC 9700 section 2.6). */
const READERS: Case[] = PAGES.map(
  ([name, open]): Case => ({
    name: `scripts of another origin read the ${name} page`,
    brokenBy: 'every origin reads pages',
    attack: async (fixture) => (await open(fixture)).headers['access-control-allow-origin'] !== undefined,
  }),
)

/** Attacks on the user who decides. */
export const PERSON_ATTACKS: readonly Case[] = [...FORGERY, ...FRAMES, ...FORWARDING, ...READERS]
