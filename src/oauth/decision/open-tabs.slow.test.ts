import { beforeEach, describe, expect, test } from 'vitest'
import { type Flow, openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import { type OauthUser, openBrowser, startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import type { Visited, Visitor } from '../../../test/harness/browser/visitor.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { OPEN_FLOWS } from '../../identity/pages/browser/flow-cookie.ts'

const CONSENT = '/auth/oauth/consent'
const ANSWERED = 'You have already answered this question'
const FOREIGN = 'This question was opened in another browser'

const fixture = await openForFile(startOauthFixture())
const flows = [
  await openFlow(fixture, await fixture.client({ name: 'One' })),
  await openFlow(fixture, await fixture.client({ name: 'Two' })),
] as const

/** An authorization that stands on a page of the service. */
interface Tab {
  flow: Flow
  page: Visited
  state: string
  verifier: string
  redirectUri: string
}

let user: OauthUser
beforeEach(async () => {
  user = await fixture.user()
})

/** Opens an authorization as far as the first page that asks something. */
async function open(browser: Visitor, flow: Flow): Promise<Tab> {
  const { url, ...kept } = await flow.prepare()
  return { flow, ...kept, page: await fixture.walk(browser, url, { decision: 'stop' }) }
}

const jarOf = (browser: Visitor) => browser.cookiesOf(fixture.baseUrl)
const cookiesOf = (browser: Visitor) => [...jarOf(browser)].filter(([name]) => name.startsWith('signalbox_flow_'))

/** Answers the page that a tab stands on, and redeems the code that its app gets. */
async function finish(browser: Visitor, tab: Tab): Promise<Visited> {
  const { flow, page, ...kept } = tab
  const answered = page.body.includes(`action="${CONSENT}"`)
    ? await flow.submit(browser, { page, action: CONSENT, fields: { decision: 'approve' } })
    : await flow.submit(browser, {
        ...{ page, action: '/auth/sign-in' },
        fields: { email: user.email, password: user.password },
      })
  const location = new URL(String(answered.headers.location), page.url).href
  const end = await fixture.walk(browser, location, { user })
  const tokens = await flow.redeem({ ...kept, callback: String(end.location) })
  expect(tokens.access_token).toMatch(/./)
  return answered
}

/** A browser in which the user is signed in. */
async function openSignedIn(): Promise<Visitor> {
  const browser = openBrowser()
  await fixture.walk(browser, `${fixture.baseUrl}/auth/sign-in`, { user })
  return browser
}

const orders: [string, (tabs: Tab[]) => Tab[]][] = [
  ['that of their begin', (tabs) => tabs],
  ['the opposite one', (tabs) => tabs.toReversed()],
]

describe.each(orders)('two tabs of one browser finish, in the order: %s', (_order, sort) => {
  test.each([
    ['two apps', flows],
    ['one app twice', [flows[0], flows[0]]],
  ])('for %s, each with its code, and no cookie is left', async (_apps, [first, second]) => {
    const browser = await openSignedIn()
    const tabs = [await open(browser, first as Flow), await open(browser, second as Flow)]
    expect(cookiesOf(browser)).toHaveLength(2)
    for (const tab of sort(tabs)) {
      // A reload changes nothing.
      expect((await browser.visit(tab.page.url.href)).status).toBe(200)
      await finish(browser, tab)
    }
    expect(cookiesOf(browser)).toEqual([])
  })

  test('that begin at the same moment, without a session; the second form of the sign-in leads on', async () => {
    const browser = openBrowser()
    const tabs = await Promise.all(flows.map((flow) => open(browser, flow)))
    for (const { page } of tabs) expect(page.body).toContain('action="/auth/sign-in"')
    for (const [index, { page }] of tabs.entries()) expect(page.body).toContain(['One', 'Two'][index])
    const [first, second] = sort(tabs) as [Tab, Tab]
    await finish(browser, first)
    const session = jarOf(browser).get('signalbox_session')
    const led = await finish(browser, second)
    expect([led.status, new URL(String(led.headers.location), fixture.baseUrl).pathname]).toEqual([
      303,
      '/auth/sign-in',
    ])
    expect(jarOf(browser).get('signalbox_session')).toBe(session)
    expect(cookiesOf(browser)).toEqual([])
  })
})

test('the form of the sign-in of another user is asked for again, and signs that user in', async () => {
  const browser = openBrowser()
  const [one, two] = [await open(browser, flows[0]), await open(browser, flows[1])]
  await finish(browser, one)
  const other = await fixture.user()
  const fields = { email: other.email, password: other.password }
  const led = await flows[1].submit(browser, { page: two.page, action: '/auth/sign-in', fields })
  const again = new URL(String(led.headers.location), fixture.baseUrl)
  expect(again.searchParams.get('again')).toBe('1')
  const shown = await browser.visit(again.href)
  expect(shown.body).toContain('action="/auth/sign-in"')
  user = other
  await finish(browser, { ...two, page: shown })
})

describe('an authorization', () => {
  /** One at its consent page, its browser and its resume address. */
  async function stand() {
    const browser = await openSignedIn()
    const tab = await open(browser, flows[0])
    const id = String(tab.page.url.searchParams.get('id'))
    return { browser, tab, id, resume: `${fixture.issuer}/authorize/${id}` }
  }
  const show = (browser: Visitor, { page }: Tab) => browser.visit(page.url.href)

  test('that has ended is over: the button back, its form and its address', async () => {
    const { browser, tab, resume } = await stand()
    const before = new Map(jarOf(browser))
    await finish(browser, tab)
    // Also with the cookies of the time before.
    for (const [name, value] of [undefined, ...before].filter((pair) => pair !== undefined))
      if (name.startsWith('signalbox_flow_')) jarOf(browser).set(name, value)
    const back = await show(browser, tab)
    expect([back.status, back.body.includes(ANSWERED)]).toEqual([410, true])
    const again = await flows[0].submit(browser, { page: tab.page, action: CONSENT, fields: { decision: 'approve' } })
    expect([again.status, again.body.includes(ANSWERED)]).toEqual([410, true])
    expect((await browser.visit(resume)).status).toBe(400)
  })

  test('is refused in another browser: with its link, the cookie of another one, or a forged cookie', async () => {
    const { browser, tab, resume } = await stand()
    const thief = await openSignedIn()
    await open(thief, flows[0])
    const [[ownName = '', ownValue = ''] = []] = cookiesOf(browser)
    const [[, thiefValue = ''] = []] = cookiesOf(thief)
    const forged = [undefined, thiefValue, '', ownValue.replace(/\..*/, `.${'A'.repeat(22)}`), `${ownValue}A`]
    for (const value of forged) {
      if (value !== undefined) jarOf(thief).set(ownName, value)
      const shown = await show(thief, tab)
      expect([shown.status, shown.body.includes(FOREIGN)], value).toEqual([410, true])
      const posted = await flows[0].submit(thief, { page: tab.page, action: CONSENT, fields: { decision: 'approve' } })
      expect(posted.headers.location).toBeUndefined()
      const resumed = await thief.visit(resume)
      expect([resumed.status, resumed.headers.location]).toEqual([400, undefined])
    }
    await finish(browser, tab)
  })

  test('cannot be continued in a browser that a cookie of its earlier question was moved to', async () => {
    const { browser, tab, resume } = await stand()
    const answered = await flows[0].submit(browser, {
      page: tab.page,
      action: CONSENT,
      fields: { decision: 'approve' },
    })
    expect(String(answered.headers.location)).toBe(resume)
    // The session of the user is another one there.
    const thief = openBrowser()
    for (const [name, value] of cookiesOf(browser)) jarOf(thief).set(name, value)
    expect(String((await thief.visit(resume)).headers.location)).not.toContain('code=')
  })

  test('is dropped when its browser has too many, the oldest first, and its header stays small', async () => {
    const { browser, tab } = await stand()
    const second = await open(browser, flows[1])
    for (let count = 1; count < OPEN_FLOWS; count += 1) await open(browser, flows[1])
    expect(cookiesOf(browser)).toHaveLength(OPEN_FLOWS)
    const header = [...jarOf(browser)].map((pair) => pair.join('=')).join('; ')
    expect(Buffer.byteLength(header)).toBeLessThan(4_096)
    const shown = await show(browser, tab)
    expect([shown.status, shown.body.includes(FOREIGN)]).toEqual([410, true])
    await finish(browser, second)
  })
})
