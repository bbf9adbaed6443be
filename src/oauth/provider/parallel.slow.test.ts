import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Begun, type Flow, openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import {
  type OauthFixture,
  type OauthUser,
  openBrowser,
  REDIRECT_URI,
  readForm,
  startOauthFixture,
} from '../../../test/harness/browser/oauth-service.ts'
import { DEVICE_GRANT } from '../client/client.store.ts'

const TIMES = 50
const OFFLINE = { prompt: 'consent' }

/** Two services on one database and one base URL, as behind a load balancer. */
interface Fleet {
  fixture: OauthFixture
  other: OauthFixture
  user: OauthUser
  flow: Flow
  client: { id: string; secret: string | null }
}

async function startFleet(repeatSeconds: string): Promise<Fleet> {
  const env = { OAUTH_REFRESH_REPEAT_SECONDS: repeatSeconds }
  const fixture = await startOauthFixture({ env })
  const { database, clock } = fixture.app
  const other = await startOauthFixture({ env: { ...env, BASE_URL: fixture.baseUrl }, database, clock })
  const client = await fixture.client()
  return { fixture, other, user: await fixture.user(), flow: await openFlow(fixture, client), client }
}

/** Posts a form many times at once, to the token endpoint unless said, in turns to both processes. */
function postAtOnce(
  { fixture, other, client }: Pick<Fleet, 'fixture' | 'other' | 'client'>,
  form: Record<string, string>,
  { path = 'token', times = TIMES }: { path?: string; times?: number } = {},
) {
  const authorization = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`
  return Promise.all(
    Array.from({ length: times }, async (_, index) => {
      const port = (index % 2 === 0 ? fixture : other).port
      const answer = await fetch(`http://127.0.0.1:${port}/api/v3/oauth/${path}`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(form),
      })
      return { status: answer.status, body: await answer.json() }
    }),
  )
}

const redeemForm = ({ callback, verifier, redirectUri }: Begun) => ({
  grant_type: 'authorization_code',
  code: new URL(callback).searchParams.get('code') ?? '',
  redirect_uri: redirectUri,
  code_verifier: verifier,
})

describe('redeemed fifty times at once, over two processes', () => {
  let strict: Fleet
  let lenient: Fleet
  beforeAll(async () => {
    strict = await startFleet('0')
    lenient = await startFleet('10')
  })
  afterAll(async () => {
    for (const { fixture, other } of [strict, lenient]) {
      await other[Symbol.asyncDispose]()
      await fixture[Symbol.asyncDispose]()
    }
  })

  test('a code gives tokens exactly once, and the family ends, and no other one of the user and the client', async () => {
    const elsewhere = await strict.flow.signIn(openBrowser(), { user: strict.user, parameters: OFFLINE })
    const begun = await strict.flow.begin(openBrowser(), { user: strict.user, parameters: OFFLINE })
    const answers = await postAtOnce(strict, redeemForm(begun))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect(new Set(answers.filter(({ status }) => status !== 200).map(({ body }) => body.error))).toEqual(
      new Set(['invalid_grant']),
    )
    await expect(strict.flow.refresh(won[0]?.body.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect((await strict.flow.userinfo(won[0]?.body.access_token)).status).toBe(401)
    expect((await strict.flow.userinfo(elsewhere.tokens.access_token)).status).toBe(200)
    expect(await strict.flow.refresh(elsewhere.tokens.refresh_token)).toHaveProperty('refresh_token')
  })

  test('the code of a device gives tokens exactly once, and the family ends', async () => {
    const { fixture, user } = strict
    const client = await fixture.client({
      application_type: 'native',
      redirect_uris: [REDIRECT_URI],
      grant_types: ['authorization_code', DEVICE_GRANT, 'refresh_token'],
    })
    const fleet = { ...strict, client }
    const asked = { path: 'device-authorization', times: 1 }
    const { body: begun } = (await postAtOnce(fleet, { scope: 'openid offline_access' }, asked))[0]!
    const uri = begun.verification_uri
    const browser = openBrowser()
    let page = await browser.visit(uri)
    for (const entry of [{ user_code: begun.user_code }, {}])
      page = await browser.visit(uri, { method: 'POST', form: { ...readForm(page.body, uri), ...entry } })
    const end = await fixture.walk(browser, new URL(page.headers.location ?? '', uri).href, { user })
    expect(end.body).toContain('Device connected')
    const answers = await postAtOnce(fleet, { grant_type: DEVICE_GRANT, device_code: begun.device_code })
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    const form = { grant_type: 'refresh_token', refresh_token: won[0]?.body.refresh_token }
    expect((await postAtOnce(fleet, form, { times: 1 }))[0]?.body.error).toBe('invalid_grant')
  })

  test('a refresh token gives a successor exactly once, and without repeats the family ends', async () => {
    const { tokens } = await strict.flow.signIn(openBrowser(), { user: strict.user, parameters: OFFLINE })
    const form = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token }
    const answers = await postAtOnce(strict, form)
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    await expect(strict.flow.refresh(won[0]?.body.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
  })

  test('a refresh token gives one successor to a client that repeats, in every answer', async () => {
    const { tokens } = await lenient.flow.signIn(openBrowser(), { user: lenient.user, parameters: OFFLINE })
    const answers = await postAtOnce(lenient, { grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
    const won = answers.filter(({ status }) => status === 200)
    expect(won.length).toBeGreaterThan(0)
    expect(new Set(won.map(({ body }) => body.refresh_token)).size).toBe(1)
    expect(new Set(won.map(({ body }) => body.access_token)).size).toBe(1)
    const next = await lenient.flow.refresh(won[0]?.body.refresh_token)
    expect(next.refresh_token).toBeTypeOf('string')
  })
})
