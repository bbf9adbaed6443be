import { beforeEach, describe, expect, test } from 'vitest'
import { createExchangeApp, EXCHANGE, GRANT_TYPE, TOKEN_TYPE } from '../../../test/harness/app/exchange-app.ts'
import { readPayload } from '../../../test/harness/app/sso-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { endSessionsOfGrant } from './exchange.ts'

const CONTRACT = '/api/v3/contract/contract'

const fixture = await openForFile(createExchangeApp())
const { app, issuer } = fixture
/** Another process on the same database. */
const other = await openForFile(createExchangeApp({ issuer, database: app.database, clock: app.clock }))
// Equal refusals of a minute are one audit entry: each test has a minute of its own.
beforeEach(() => fixture.app.clock.advance(60_000))

const form = (token: string, more: Record<string, string> = {}) =>
  fixture.exchangeForm({ grant_type: GRANT_TYPE, subject_token: token, subject_token_type: TOKEN_TYPE, ...more })
const statusOf = async (jwt: string, from = fixture) => (await from.app.callAs(jwt)('GET', CONTRACT)).status
const endGrant = (grantId: string) =>
  inTransaction(fixture.app.database.db, (tx) =>
    endSessionsOfGrant(tx, { grantId, isFinal: true, now: new Date(fixture.app.clock.now()) }),
  )

describe('an exchange', () => {
  test('answers a bare object with a session JWT that acts for the user within the scopes', async () => {
    const { userId, account } = await fixture.signUp()
    const answer = await fixture.exchange(fixture.mint(userId))
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ jwt: expect.any(String), token_type: 'Bearer', expires_in: expect.any(Number) })
    expect(answer.headers['cache-control']).toBe('no-store')
    const call = fixture.app.callAs(answer.body.jwt)
    expect((await call('GET', CONTRACT)).status).toBe(200)
    expect((await call('POST', CONTRACT, { account, name: 'One' })).status).toBe(403)
  })

  test('carries client, scope and grant, and ends with the access token', async () => {
    const { userId } = await fixture.signUp()
    const claims = fixture.claims(userId)
    const { body } = await fixture.exchange(fixture.mint(userId, claims))
    const { client_id, scope, grant_id, exp } = readPayload(body.jwt)
    expect({ client_id, scope, grant_id }).toEqual({
      client_id: claims.client_id,
      scope: claims.scope,
      grant_id: claims.grant_id,
    })
    expect(exp).toBe((claims.exp as number) + 10)
    expect(body.expires_in).toBe(910)
  })

  test('tells when the user proved who it is, as the token does', async () => {
    const { userId } = await fixture.signUp()
    const proven = fixture.seconds() - 300
    const timeOf = async (claims: object) =>
      readPayload((await fixture.exchange(fixture.mint(userId, claims))).body.jwt).auth_time
    expect(await timeOf({ auth_time: proven })).toBe(proven)
    expect(await timeOf({ auth_time: undefined })).toBe(fixture.seconds())
  })

  test('gives no refresh token', async () => {
    const { userId } = await fixture.signUp()
    const { body } = await fixture.exchange(fixture.mint(userId))
    const { sid } = readPayload(body.jwt)
    const { rows } = await fixture.app.database.pool.query('select from session_refresh where session = $1', [sid])
    expect(rows).toHaveLength(0)
  })

  test('of one token again opens another session with the same ceiling', async () => {
    const { userId } = await fixture.signUp()
    const token = fixture.mint(userId)
    const [first, second] = [await fixture.exchange(token), await fixture.exchange(token)]
    expect(readPayload(first.body.jwt).sid).not.toBe(readPayload(second.body.jwt).sid)
    expect(readPayload(first.body.jwt).scope).toBe(readPayload(second.body.jwt).scope)
  })

  test('takes a token up to 5 s after its end, for a session of some seconds', async () => {
    const { userId } = await fixture.signUp()
    const seconds = fixture.seconds()
    const late = await fixture.exchange(fixture.mint(userId, { iat: seconds - 900, exp: seconds - 4 }))
    expect(late.status).toBe(200)
    expect(late.body.expires_in).toBeLessThanOrEqual(6)
    expect(await statusOf(late.body.jwt)).toBe(200)
  })

  test('is audited with the app, the user and the session', async () => {
    const { userId } = await fixture.signUp()
    const claims = fixture.claims(userId)
    const answer = await fixture.exchange(fixture.mint(userId, claims))
    const { sid } = readPayload(answer.body.jwt)
    expect(await fixture.entriesOf(answer)).toEqual([
      {
        action: 'oauth.exchange',
        outcome: 'success',
        user: userId,
        session: sid,
        client_id: claims.client_id,
        count: 1,
        target: sid,
        detail: { scope: claims.scope, grant_id: claims.grant_id },
      },
    ])
  })

  test('that is refused is audited with its reason, and with the app of a genuine token', async () => {
    const { userId } = await fixture.signUp()
    await fixture.app.admin('POST', `/api/v3/identity/user/${userId}/disable`)
    const answer = await fixture.exchange(fixture.mint(userId))
    expect(answer).toMatchObject({ status: 401, body: { code: 'oauth_exchange_failed' } })
    expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"')
    expect(await fixture.entriesOf(answer)).toMatchObject([
      { outcome: 'failure', user: userId, client_id: 'client-of-a-test', detail: { reason: 'user_inactive' } },
    ])
  })

  test.each([
    ['no body', undefined],
    ['a list', []],
    ['no token', {}],
    ['a number as token', { token: 1 }],
    ['another member', { token: 'a.b.c', scope: 'openid' }],
    ['the members of the form', { grant_type: GRANT_TYPE, subject_token: 'a.b.c' }],
  ])('with %s in JSON is a 422', async (_name, body) => {
    const answer = await fixture.app.anonymous('POST', EXCHANGE, body)
    expect(answer).toMatchObject({ status: 422, body: { code: 'validation_failed' } })
  })

  test('counts against the strict limit of the address', async () => {
    await using limited = await createExchangeApp({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '2' } })
    const statuses = []
    for (let at = 0; at < 3; at += 1) statuses.push((await limited.exchange('x')).status)
    expect(statuses).toEqual([401, 401, 429])
  })
})

describe('the form of RFC 8693', () => {
  test('answers by the RFC, with the scope', async () => {
    const { userId } = await fixture.signUp()
    const answer = await form(fixture.mint(userId))
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      access_token: expect.any(String),
      issued_token_type: TOKEN_TYPE,
      token_type: 'Bearer',
      expires_in: 910,
      scope: 'openid contract:read',
    })
    expect(await statusOf(answer.body.access_token)).toBe(200)
  })

  test('narrows the scope, and the session with it', async () => {
    const { userId } = await fixture.signUp()
    const answer = await form(fixture.mint(userId, { scope: 'openid contract:read contract:write' }), {
      scope: 'contract:write',
      resource: 'https://id.example.test/api/v3',
      client_id: 'client-of-a-test',
    })
    expect(answer.body.scope).toBe('contract:write')
    expect(await statusOf(answer.body.access_token)).toBe(403)
  })

  test.each([
    ['more scope than the token has', { scope: 'contract:read webhook:write' }, 'invalid_scope'],
    ['a scope that is no list of names', { scope: 'contract:read  "x"' }, 'invalid_scope'],
    ['another resource', { resource: 'https://other.example.test/' }, 'invalid_target'],
    ['another audience', { audience: 'https://other.example.test/' }, 'invalid_target'],
    ['another grant type', { grant_type: 'client_credentials' }, 'unsupported_grant_type'],
    ['no grant type', { grant_type: '' }, 'invalid_request'],
    ['an ID token as type', { subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }, 'invalid_request'],
    [
      'a refresh token as answer',
      { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
      'invalid_request',
    ],
    ['an actor', { actor_token: 'x', actor_token_type: TOKEN_TYPE }, 'invalid_request'],
    ['another client than the token', { client_id: 'another' }, 'invalid_request'],
    ['no token', { subject_token: '' }, 'invalid_request'],
  ])('with %s is refused by the standard error', async (_name, more, error) => {
    const { userId } = await fixture.signUp()
    const answer = await form(fixture.mint(userId), more)
    expect(answer).toMatchObject({ status: 400, body: { error, error_description: expect.any(String) } })
    expect(Object.keys(answer.body)).toEqual(['error', 'error_description'])
    expect(await fixture.entriesOf(answer)).toMatchObject([{ outcome: 'failure' }])
  })

  test('with a repeated parameter is refused', async () => {
    const { userId } = await fixture.signUp()
    const fields = new URLSearchParams({ grant_type: GRANT_TYPE, subject_token_type: TOKEN_TYPE })
    for (const token of [fixture.mint(userId), 'x']) fields.append('subject_token', token)
    expect(await fixture.exchangeForm(fields.toString())).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
  })

  test('answers every bad token alike', async () => {
    const { userId } = await fixture.signUp()
    const bad = [
      'x',
      fixture.mint(userId, { aud: 'x' }),
      fixture.mint(userId, { exp: 1 }),
      fixture.mint(userId, {}, { header: { kid: 'x' } }),
    ]
    const answers = await Promise.all(bad.map((token) => form(token)))
    expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1)
    expect(answers[0]).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })
})

describe('the end of a grant', () => {
  test('ends its sessions in every process, and no token of it opens another one', async () => {
    const { userId } = await fixture.signUp()
    const token = fixture.mint(userId, { grant_id: 'ended' })
    const { jwt } = (await fixture.exchange(token)).body
    expect(await statusOf(jwt, other)).toBe(200)
    expect(await endGrant('ended')).toEqual([readPayload(jwt).sid])
    expect(await statusOf(jwt)).toBe(401)
    expect(await statusOf(jwt, other)).toBe(401)
    const refused = await fixture.exchange(token)
    expect([refused.status, (await other.exchange(token)).status]).toEqual([401, 401])
    expect(await fixture.entriesOf(refused)).toMatchObject([
      { count: 2, detail: { reason: 'grant_ended', grant_id: 'ended' } },
    ])
  })

  test('leaves other grants of the user alone', async () => {
    const { userId } = await fixture.signUp()
    const { jwt } = (await fixture.exchange(fixture.mint(userId, { grant_id: 'kept' }))).body
    await endGrant('another')
    expect(await statusOf(jwt)).toBe(200)
  })

  test('of its tokens alone leaves the grant as it is', async () => {
    const { userId } = await fixture.signUp()
    const token = fixture.mint(userId, { grant_id: 'renewed' })
    const { jwt } = (await fixture.exchange(token)).body
    const now = new Date(fixture.app.clock.now())
    await inTransaction(fixture.app.database.db, (tx) =>
      endSessionsOfGrant(tx, { grantId: 'renewed', isFinal: false, now }),
    )
    expect(await statusOf(jwt)).toBe(401)
    expect((await fixture.exchange(token)).status).toBe(200)
  })

  test('is forgotten after two days, when every token of it has expired', async () => {
    await using later = await createExchangeApp()
    const { db, pool } = later.app.database
    const now = new Date(later.app.clock.now())
    await inTransaction(db, (tx) => endSessionsOfGrant(tx, { grantId: 'forgotten', isFinal: true, now }))
    const count = async () => (await pool.query('select from oauth_ended_grant')).rows.length
    await later.app.app.maintenance.sweep()
    expect(await count()).toBe(1)
    later.app.clock.advance(2 * 86_400_000 + 1_000)
    await later.app.app.maintenance.sweep()
    expect(await count()).toBe(0)
  })

  test('may be repeated', async () => {
    await endGrant('twice')
    expect(await endGrant('twice')).toEqual([])
  })

  test('beside exchanges under way leaves no session of them', async () => {
    const { userId } = await fixture.signUp()
    for (let round = 0; round < 10; round += 1) {
      const grantId = `raced-${round}`
      const token = fixture.mint(userId, { grant_id: grantId })
      const exchanges = [fixture, other, fixture, other, fixture].map((item) => item.exchange(token))
      const [answers] = await Promise.all([Promise.all(exchanges), endGrant(grantId)])
      for (const { status, body } of answers) if (status === 200) expect(await statusOf(body.jwt)).toBe(401)
      const text = 'select from session where grant_id = $1 and revoked_at is null'
      expect((await fixture.app.database.pool.query(text, [grantId])).rows).toHaveLength(0)
    }
  })
})

describe('a user who is disabled', () => {
  test('loses the sessions of its apps in every process, and gets no other', async () => {
    const { userId } = await fixture.signUp()
    const token = fixture.mint(userId)
    const { jwt } = (await fixture.exchange(token)).body
    expect(await statusOf(jwt, other)).toBe(200)
    await fixture.app.admin('POST', `/api/v3/identity/user/${userId}/disable`)
    expect([await statusOf(jwt), await statusOf(jwt, other)]).toEqual([401, 401])
    expect([(await fixture.exchange(token)).status, (await other.exchange(token)).status]).toEqual([401, 401])
  })

  test('beside exchanges under way keeps no session of them', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { userId } = await fixture.signUp()
      const token = fixture.mint(userId)
      const exchanges = [fixture, other, fixture, other].map((item) => item.exchange(token))
      await Promise.all([...exchanges, fixture.app.admin('POST', `/api/v3/identity/user/${userId}/disable`)])
      const text = 'select from session where "user" = $1 and revoked_at is null'
      expect((await fixture.app.database.pool.query(text, [userId])).rows).toHaveLength(0)
    }
  })
})
