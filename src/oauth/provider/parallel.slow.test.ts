import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Begun, type Flow, openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import {
  type OauthFixture,
  type OauthUser,
  openBrowser,
  startOauthFixture,
} from '../../../test/harness/browser/oauth-service.ts'

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

/** Posts a form to the token endpoint, in turns to both processes. */
function postAtOnce({ fixture, other, client }: Fleet, form: Record<string, string>) {
  const authorization = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`
  return Promise.all(
    Array.from({ length: TIMES }, async (_, index) => {
      const port = (index % 2 === 0 ? fixture : other).port
      const answer = await fetch(`http://127.0.0.1:${port}/api/v3/oauth/token`, {
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

  test('a code gives tokens exactly once, and the family ends', async () => {
    const begun = await strict.flow.begin(openBrowser(), { user: strict.user, parameters: OFFLINE })
    const answers = await postAtOnce(strict, redeemForm(begun))
    const won = answers.filter(({ status }) => status === 200)
    expect(won).toHaveLength(1)
    expect(new Set(answers.filter(({ status }) => status !== 200).map(({ body }) => body.error))).toEqual(
      new Set(['invalid_grant']),
    )
    await expect(strict.flow.refresh(won[0]?.body.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
    expect((await strict.flow.userinfo(won[0]?.body.access_token)).status).toBe(401)
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
