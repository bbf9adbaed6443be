import { describe, expect, test } from 'vitest'
import { readPayload } from '../../../test/harness/app/sso-app.ts'
import { openFlow, type Tokens } from '../../../test/harness/browser/oauth-flow.ts'
import {
  type OauthUser,
  openBrowser,
  readForm,
  startOauthFixture,
} from '../../../test/harness/browser/oauth-service.ts'
import type { Visitor } from '../../../test/harness/browser/visitor.ts'
import { type Barrier, race } from '../../../test/harness/plan/race.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const fixture = await openForFile(startOauthFixture())
const flow = await openFlow(fixture, await fixture.client())

const revokeSessions = ({ userId }: OauthUser) =>
  fixture.app.admin('POST', `/api/v3/identity/user/${userId}/revoke-sessions`)

const countRows = async ({ userId }: OauthUser): Promise<number> => {
  const { rows } = await fixture.app.database.pool.query(
    `select count(*)::int as count from oauth_state
     where consent in (select document_id from oauth_grant where "user" = $1)`,
    [userId],
  )
  return rows[0].count
}

/** A browser whose user allowed the app its scopes. */
async function connect(): Promise<{ user: OauthUser; browser: Visitor; tokens: Tokens }> {
  const user = await fixture.user()
  const browser = openBrowser()
  const { tokens } = await flow.signIn(browser, { user, parameters: { prompt: 'consent' } })
  return { user, browser, tokens }
}

describe('an authorization under way', () => {
  test('gives no code for a sign-in that was ended before the browser goes on', async () => {
    const { user } = await connect()
    const browser = openBrowser()
    const asked = await fixture.walk(browser, (await flow.prepare()).url)
    expect(new URL(asked.url).pathname).toBe('/auth/sign-in')
    const form = { ...readForm(asked.body, '/auth/sign-in'), email: user.email, password: user.password }
    let answer = await browser.visit(`${fixture.baseUrl}/auth/sign-in`, { method: 'POST', form })
    while (answer.headers.location) answer = await browser.visit(new URL(answer.headers.location, answer.url).href)
    // The provider has its answer, and the browser is about to follow it.
    const resume = String(answer.headers.refresh).split('url=')[1] ?? ''
    expect((await revokeSessions(user)).status).toBe(200)
    const end = await fixture.walk(browser, resume)
    expect(end.location).toBeUndefined()
    expect(new URL(end.url).pathname).toBe('/auth/sign-in')
    expect(await countRows(user)).toBe(0)
  })

  /** A browser that is signed in, and in which the app has nothing yet. */
  async function connectAgain(user: OauthUser): Promise<Visitor> {
    const browser = openBrowser()
    await (await openFlow(fixture, await fixture.client())).signIn(browser, { user })
    return browser
  }

  const holdGrants = ({ userId }: OauthUser): Barrier => ({
    text: 'select from oauth_grant where "user" = $1 for update',
    values: [userId],
  })

  test.each(['before', 'after'])(
    'of a browser whose session ends at the same time, %s it, leaves nothing',
    async (when) => {
      const { user } = await connect()
      const browser = await connectAgain(user)
      const { url } = await flow.prepare({ parameters: { prompt: 'none' } })
      const revoke = async () => void (await revokeSessions(user))
      const authorize = async () => void (await browser.visit(url))
      await race(fixture.app.database, holdGrants(user), when === 'after' ? [revoke, authorize] : [authorize, revoke])
      expect(await countRows(user)).toBe(0)
    },
  )
})

describe('a refresh', () => {
  test.each(['before', 'after'])('at the same time as the end of all access, %s it, leaves nothing', async (when) => {
    const { user, tokens } = await connect()
    const barrier: Barrier = {
      text: `select from oauth_state where model = 'Grant' and payload ->> 'accountId' = $1 for update`,
      values: [user.userId],
    }
    const refresh = async () => void (await flow.refresh(tokens.refresh_token).catch(() => {}))
    const revoke = async () => void (await revokeSessions(user))
    await race(fixture.app.database, barrier, when === 'after' ? [revoke, refresh] : [refresh, revoke])
    expect(await countRows(user)).toBe(0)
    await expect(flow.refresh(tokens.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
  })
})

/** Exchanges an access token, which the provider dates by the clock of the machine. */
const exchange = ({ access_token: token }: Tokens) => {
  fixture.app.clock.set(Date.now())
  return fixture.app.anonymous('POST', '/api/v3/oauth/exchange', { token })
}
const open = async (tokens: Tokens) => fixture.app.callAs((await exchange(tokens)).body.jwt)

describe('an access token that is revoked', () => {
  test('ends the session of the app, with the refresh token of the same authorization', async () => {
    fixture.app.clock.set(Date.now())
    const { tokens } = await connect()
    const call = await open(tokens)
    expect((await call('GET', '/api/v3/contract/contract')).status).toBe(200)
    await flow.revoke(tokens.access_token)
    expect((await call('GET', '/api/v3/contract/contract')).status).toBe(401)
    await expect(flow.refresh(tokens.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect((await exchange(tokens)).status).toBe(401)
  })

  test('leaves the consent: the next authorization asks nothing', async () => {
    fixture.app.clock.set(Date.now())
    const { browser, tokens } = await connect()
    await flow.revoke(tokens.access_token)
    const begun = await flow.begin(browser, { parameters: { prompt: 'none' } })
    const again = await flow.redeem(begun)
    expect((await (await open(again))('GET', '/api/v3/contract/contract')).status).toBe(200)
  })
})

test('an access token opens no more than its grant still has', async () => {
  fixture.app.clock.set(Date.now())
  const { user, tokens } = await connect()
  const readScope = async () => readPayload((await exchange(tokens)).body.jwt).scope
  expect(await readScope()).toBe('openid email offline_access contract:read')
  const text = `update oauth_grant set scopes = '{email,contract:write,openid}' where "user" = $1`
  await fixture.app.database.pool.query(text, [user.userId])
  expect(await readScope()).toBe('openid email')
})

test('a client that is deleted ends the sessions of its apps, and their tokens', async () => {
  fixture.app.clock.set(Date.now())
  const client = await fixture.client()
  const own = await openFlow(fixture, client)
  const { tokens } = await own.signIn(openBrowser(), {
    user: await fixture.user(),
    parameters: { prompt: 'consent' },
  })
  const call = await open(tokens)
  expect((await call('GET', '/api/v3/contract/contract')).status).toBe(200)
  expect((await fixture.app.admin('DELETE', `/api/v3/oauth/client/${client.id}`)).status).toBe(200)
  expect((await call('GET', '/api/v3/contract/contract')).status).toBe(401)
  expect((await own.userinfo(tokens.access_token)).status).toBe(401)
})

test.each(['disable', 'delete'])('introspection of what a user had is inactive after %s', async (act) => {
  const { user, tokens } = await connect()
  expect(await flow.introspect(tokens.access_token)).toMatchObject({ active: true })
  expect(await flow.introspect(tokens.refresh_token)).toMatchObject({ active: true })
  const path = `/api/v3/identity/user/${user.userId}`
  const ended = act === 'delete' ? fixture.app.admin('DELETE', path) : fixture.app.admin('POST', `${path}/disable`)
  expect((await ended).status).toBe(200)
  for (const token of [tokens.access_token, tokens.refresh_token])
    expect(await flow.introspect(token)).toEqual({ active: false })
})
