import { beforeEach, expect, test } from 'vitest'
import type { TestAnswer, TestCall } from '../../../../test/harness/app/app.ts'
import { COMPANY_OIDC, createConnectionApp } from '../../../../test/harness/app/connection-app.ts'
import { pathOf, redirectUrlOf, WEB_APP } from '../../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../../base/id.ts'
import { FACTS_LIFETIME_MS } from '../../../operations/health/webhook-out.ts'
import { deleteOldActivity } from './connection-activity.store.ts'

const DAY_MS = 86_400_000
let account: AccountId
let connection: string
let count = 0
const t = await openForFile(createConnectionApp())

beforeEach(async () => {
  t.app.clock.advance(1_000)
  count += 1
  account = await t.makeAccount()
  connection = await t.connect(account)
  await t.prove(account, connection, domainOf())
})

const domainOf = () => `corp${count}.example`
const activityPath = (of: string = account) => `/api/v3/identity/account/${of}/connection/${connection}/activity`

async function signIn(sub: string, email = `${sub}@${domainOf()}`): Promise<TestAnswer> {
  t.fixture.fakes.company.user = { sub: `${sub}-${count}`, email, isEmailVerified: true, name: 'Ada' }
  const browser = t.browser()
  const started = await browser.get(`${pathOf(connection)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)
  const step = await t.fixture.fakes.company.authorize(String(started.headers.location))
  return browser.get(redirectUrlOf(step), 'application/json')
}

async function read(call: TestCall = t.app.admin) {
  const answer = await call('GET', activityPath())
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body.data
}

/** Lets what was counted be of earlier days. */
const age = (days: number) =>
  t.app.database.pool.query(`update connection_activity set day = day - $2 * interval '1 day' where connection = $1`, [
    connection,
    days,
  ])

const today = () => new Date(Math.floor(t.app.clock.now() / DAY_MS) * DAY_MS).toISOString()

test('a new connection has no activity', async () => {
  expect(await read()).toEqual({ connection, last_sign_in_at: null, days: [] })
})

test('sign-ins and refusals are counted by day and reason, also of attempts at once', async () => {
  const answers = await Promise.all([signIn('ada'), signIn('ada'), signIn('ada')])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  for (const email of ['eve@elsewhere.example', 'eve@elsewhere.example']) await signIn('eve', email)
  await t.app.admin('PATCH', `/api/v3/identity/account/${account}/connection/${connection}`, { is_jit: false })
  await signIn('bob')
  const at = new Date(t.app.clock.now()).toISOString()
  const refusals = [
    { reason: 'email_outside', count: 2 },
    { reason: 'jit_off', count: 1 },
  ]
  expect(await read()).toEqual({ connection, last_sign_in_at: at, days: [{ day: today(), sign_ins: 3, refusals }] })
  await age(1)
  const yesterday = new Date(Date.parse(today()) - DAY_MS).toISOString()
  await signIn('bob')
  expect(await read()).toMatchObject({
    last_sign_in_at: at,
    days: [
      { day: today(), sign_ins: 0, refusals: [{ reason: 'jit_off', count: 1 }] },
      { day: yesterday, sign_ins: 3, refusals },
    ],
  })
})

test('operators see the reasons of all connections together, which degrade nothing', async () => {
  const counted = async () => {
    const { body } = await t.app.scrape()
    const of = (reason: string) =>
      Number(new RegExp(`^connection_sign_ins_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(body as string)?.[1])
    return [of('none'), of('email_outside')]
  }
  const shown = async () => {
    t.app.clock.advance(FACTS_LIFETIME_MS)
    const { status, details } = (await t.app.anonymous('GET', '/api/v3/health/component/connections')).body.data
    return [status, details.refusals_today.email_outside ?? 0]
  }
  const [[signedIn, refused], [, refusedToday]] = [await counted(), await shown()]
  await signIn('ada')
  await signIn('eve', 'eve@elsewhere.example')
  connection = await t.connect(account)
  await signIn('eve', 'eve@elsewhere.example')
  expect(await shown()).toEqual(['operational', refusedToday + 2])
  expect(await counted()).toEqual([Number(signedIn) + 1, Number(refused) + 2])
})

test('a declined sign-in is a refusal of the connection, and an unknown state is nobody’s', async () => {
  const browser = t.browser()
  const started = await browser.get(`${pathOf(connection)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)
  const state = new URL(String(started.headers.location)).searchParams.get('state')
  const back = (query: Record<string, string>) =>
    browser.get(`${pathOf(connection, '/callback-redirect')}?${new URLSearchParams(query)}`, 'application/json')
  await back({ error: 'access_denied', state: 'unknown' })
  expect((await read()).days).toEqual([])
  const { body } = await back({ error: 'access_denied', state: String(state), iss: COMPANY_OIDC.issuer })
  expect(body.code).toBe('social_login_failed')
  expect((await read()).days).toMatchObject([{ sign_ins: 0, refusals: [{ reason: 'denied', count: 1 }] }])
})

test('an attempt that ends after its connection is refused, and so is the question for its activity', async () => {
  t.fixture.fakes.company.user = { sub: 'late', email: `late@${domainOf()}`, isEmailVerified: true, name: 'Ada' }
  const browser = t.browser()
  const started = await browser.get(`${pathOf(connection)}?${new URLSearchParams({ redirect_url: WEB_APP })}`)
  const step = await t.fixture.fakes.company.authorize(String(started.headers.location))
  await t.app.admin('DELETE', `/api/v3/identity/account/${account}/connection/${connection}`)
  expect((await browser.get(redirectUrlOf(step), 'application/json')).status).toBe(404)
  expect((await t.app.admin('GET', activityPath())).status).toBe(404)
})

test('is read by members who read the connection, and by nobody of another account', async () => {
  await signIn('ada')
  const other = await t.makeAccount('Other')
  const roles = [await t.findRole('account-viewer')]
  const member = async (of: AccountId) => {
    const { call, userId: user } = await t.app.signInMember([of])
    await t.app.admin('PATCH', `/api/v3/identity/account/${of}/member`, { user, roles })
    return call
  }
  expect((await read(await member(account))).days).toHaveLength(1)
  const foreign = await member(other)
  for (const place of [account, other]) expect((await foreign('GET', activityPath(place))).status).toBe(404)
  const { call } = await t.app.signInMember([account])
  expect((await call('GET', activityPath())).status).toBe(403)
})

test('days are shown for a month and then removed', async () => {
  await signIn('ada')
  await age(29)
  expect((await read()).days).toHaveLength(1)
  await age(1)
  expect((await read()).days).toEqual([])
  const { db } = t.app.database
  const ofConnection = () =>
    db.selectFrom('connection_activity').selectAll().where('connection', '=', connection).execute()
  const now = t.app.clock.now()
  await deleteOldActivity(db, new Date(now - 31 * DAY_MS), 1_000)
  expect(await ofConnection()).toHaveLength(1)
  await deleteOldActivity(db, new Date(now - 30 * DAY_MS), 1_000)
  expect(await ofConnection()).toEqual([])
})
