import { expect, test } from 'vitest'
import { createSocialApp } from '../../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { countEntrances } from '../../../event/recording/entrance-count.ts'

const PATH = '/api/v3/identity/provider'
const DAY_MS = 24 * 60 * 60_000

const t = await openForFile(createSocialApp())
const body = { name: 'reader', permissions: ['sign-in-provider:find-all'] }
// A key outlives the session of the administrator.
const call = t.app.callAs((await t.app.admin('POST', '/api/v3/identity/api-key', body)).body.data.key)

const read = async () => (await call('GET', PATH)).body.data
const providerOf = async (name: string) =>
  (await read()).providers.find((provider: { name: string }) => provider.name === name)

test('a provider shows its state, what came of the sign-ins of a day, and no secret', async () => {
  t.seat('google', { sub: '601' })
  await t.signIn(t.browser(), 'google')
  t.seat('google', { sub: '602', denies: true })
  await t.signIn(t.browser(), 'google')
  expect(await providerOf('google')).toEqual({
    name: 'google',
    label: 'Google',
    is_enabled: true,
    is_managed: false,
    callback_url: 'https://service.test/api/v3/auth/login/oauth/google/callback',
    missing_settings: [],
    starts: 2,
    successes: 1,
    failures: [{ reason: 'denied', count: 1 }],
  })
  t.seat('google', { sub: '603', isEmailVerified: false })
  await t.signIn(t.browser(), 'google')
  expect((await providerOf('google')).failures).toEqual([
    { reason: 'denied', count: 1 },
    { reason: 'email_unverified', count: 1 },
  ])
  expect(await providerOf('github')).toMatchObject({ starts: 0, successes: 0, failures: [] })
  const text = JSON.stringify(await read())
  expect(text).not.toMatch(/client_secret|PRIVATE KEY/i)
  t.app.clock.advance(DAY_MS + 1)
  expect(await providerOf('google')).toMatchObject({ starts: 0, successes: 0, failures: [] })
})

test('the counts say from when on they hold, where there are more entries than are read', async () => {
  t.app.clock.advance(60_000)
  t.seat('google', { sub: '603' })
  for (let n = 0; n < 3; n += 1) {
    t.app.clock.advance(1_000)
    await t.signIn(t.browser(), 'google')
  }
  const now = t.app.clock.now()
  const count = (limit: number) =>
    countEntrances(t.app.database.db, { actions: ['login.oauth'], since: new Date(now - 60_000), limit })
  expect((await count(4)).since).toEqual(new Date(now - 60_000))
  const cut = await count(2)
  expect(cut.since).toEqual(new Date(now - 1_000))
  expect(cut.counts).toMatchObject([{ action: 'login.oauth', outcome: 'success', provider: 'google', count: 2 }])
})

test('the providers need a token with sign-in-provider:find-all', async () => {
  expect((await t.app.anonymous('GET', PATH)).status).toBe(401)
  const member = await t.app.signInMember()
  expect((await member.call('GET', PATH)).body.missing).toMatchObject({ permission: 'sign-in-provider:find-all' })
})
