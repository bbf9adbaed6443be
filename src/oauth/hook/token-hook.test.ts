import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { createTestApp, type TestAnswer } from '../../../test/harness/app/app.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { hookSecrets } from '../../app/config/config-parsers.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import { findHookFault, readHookKeys } from './hook-signature.ts'
import { decideTokenClaims } from './token-hook.ts'

const HOOK = '/api/v3/oauth/hook/access-token'
const NEW_SECRET = `v1,whsec_${Buffer.alloc(32, 1).toString('base64')}`
const OLD_SECRET = `v1,whsec_${Buffer.alloc(32, 2).toString('base64')}`
const FOREIGN_SECRET = `v1,whsec_${Buffer.alloc(32, 3).toString('base64')}`

/** The secret as the official library takes it: it refuses the prefix of the version. */
const asLibrarySecret = (secret: string) => secret.replace('v1,', '')

const app = await openForFile(
  createTestApp({
    env: { BASE_URL: 'https://id.example.test' },
    oauthHook: hookSecrets(`${NEW_SECRET}|${OLD_SECRET}`),
  }),
)

interface Sent {
  secrets?: readonly string[]
  /** Seconds that the sender's clock is ahead. */
  ahead?: number
  headers?: Record<string, string>
  /** Changes the body after it was signed. */
  change?: (text: string) => string
}

/** Sends the hook as Supabase Auth does: signatures of several secrets with a comma and a space between. */
async function send(body: unknown, sent: Sent = {}): Promise<TestAnswer> {
  const { secrets = [NEW_SECRET], ahead = 0, change = (text) => text } = sent
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const id = randomUUID()
  const at = new Date(app.clock.now() + ahead * 1000)
  const signatures = secrets.map((secret) => new Webhook(asLibrarySecret(secret)).sign(id, at, text))
  return app.anonymous('POST', HOOK, change(text), {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': signatures.join(', '),
    ...sent.headers,
  })
}

/** The body for a user, as Supabase Auth sends it. */
function callFor(subject: string, claims: object = {}) {
  return {
    metadata: { uuid: randomUUID(), time: new Date().toISOString(), name: 'customize-access-token', ip_address: '' },
    user_id: subject,
    claims: {
      aud: 'authenticated',
      exp: 2_000_000_000,
      iat: 1_999_996_400,
      sub: subject,
      email: 'ada@example.com',
      phone: '',
      app_metadata: { provider: 'google', providers: ['google'] },
      user_metadata: { name: 'Ada' },
      role: 'authenticated',
      aal: 'aal1',
      amr: [{ method: 'oauth', timestamp: 1_999_996_400 }],
      session_id: randomUUID(),
      is_anonymous: false,
      ...claims,
    },
    authentication_method: 'oauth_provider/authorization_code',
  }
}

/** A user who is known by a subject of the engine. */
async function makeUser(): Promise<{ userId: UserId; subject: string; account: AccountId }> {
  const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  const { userId } = await app.signInMember([account])
  return { userId, subject: await addIdentity(userId, randomUUID()), account }
}

async function addIdentity(userId: UserId, subject: string): Promise<string> {
  const at = new Date(app.clock.now())
  const row = { document_id: randomUUID(), user: userId, provider: 'google', subject: randomUUID() }
  await app.database.db
    .insertInto('identity')
    .values({ ...row, is_email_verified: true, engine_subject: subject, created_at: at, updated_at: at })
    .execute()
  return subject
}

const CLIENT = { client_id: 'app-1', scope: 'openid account:read' }

describe('the decision about a token', () => {
  const subject = { userId: 'user' as UserId, isActive: true, accountId: 'account' as AccountId }
  const client = { id: 'app', scope: 'openid account:read' }

  test('gives a disabled user nothing, with an app and without', () => {
    for (const app of [client, null])
      expect(decideTokenClaims({ subject: { ...subject, isActive: false }, client: app })).toEqual({
        kind: 'refuse',
        reason: 'user_disabled',
      })
  })

  test('gives an unknown user a token of its own, and an app none for it', () => {
    expect(decideTokenClaims({ subject: undefined, client: null })).toEqual({ kind: 'issue', claims: {} })
    expect(decideTokenClaims({ subject: undefined, client })).toEqual({ kind: 'refuse', reason: 'user_unknown' })
  })

  test('names the account only for an app that may see accounts', () => {
    expect(decideTokenClaims({ subject, client })).toEqual({ kind: 'issue', claims: { account: 'account' } })
    expect(decideTokenClaims({ subject, client: { ...client, scope: 'openid' } })).toEqual({
      kind: 'issue',
      claims: {},
    })
  })

  test('names the account for an app that may see accounts by a grant here, and the scopes of that grant', () => {
    const given = { client: { ...client, scope: 'openid' }, apiScope: 'contract:read account:read' }
    const { apiScope: api_scope } = given
    expect(decideTokenClaims({ subject, ...given })).toEqual({
      kind: 'issue',
      claims: { account: 'account', api_scope },
    })
    const homeless = { ...subject, accountId: null }
    expect(decideTokenClaims({ subject: homeless, ...given })).toEqual({ kind: 'issue', claims: { api_scope } })
    for (const apiScope of ['', null])
      expect(decideTokenClaims({ subject, ...given, apiScope })).toEqual({ kind: 'issue', claims: {} })
  })

  test('gives an app nothing by a grant that was revoked, nor where the account admits by its connection alone', () => {
    for (const [more, reason] of [
      [{ isRevoked: true }, 'grant_revoked'],
      [{ isClosed: true }, 'connection_required'],
    ] as const) {
      expect(decideTokenClaims({ subject, client, ...more })).toEqual({ kind: 'refuse', reason })
      expect(decideTokenClaims({ subject, client: null, ...more })).toEqual({ kind: 'issue', claims: {} })
    }
  })

  test('gives an app nothing for a session of the second in which the access of apps ended, or before', () => {
    const appsEndedAt = new Date('2026-09-11T12:00:00.999Z')
    const decide = (beganAtSeconds: number | undefined) =>
      decideTokenClaims({ subject, client, appsEndedAt, beganAtSeconds })
    const ended = { kind: 'refuse', reason: 'access_ended' }
    const second = Date.parse('2026-09-11T12:00:00Z') / 1000
    expect([decide(second - 1), decide(second)]).toEqual([ended, ended])
    for (const began of [second + 1, undefined]) expect(decide(began)).toMatchObject({ kind: 'issue' })
  })
})

describe('the hook', () => {
  test('returns the claims with the API as audience for an app, and all others as they were', async () => {
    const { subject, account } = await makeUser()
    const call = callFor(subject, CLIENT)
    const answer = await send(call)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toMatch(/^application\/json/)
    expect(answer.body).toEqual({ claims: { ...call.claims, aud: 'https://id.example.test/api/v3', account } })
  })

  test('returns the claims of a user without an app as they were', async () => {
    const call = callFor((await makeUser()).subject)
    expect((await send(call)).body).toEqual({ claims: call.claims })
  })

  test('lets somebody sign up who is not known yet', async () => {
    const call = callFor(randomUUID())
    expect((await send(call)).body).toEqual({ claims: call.claims })
  })

  test.each([
    ['an app for an unknown user', async () => randomUUID(), CLIENT, 'user_unknown'],
    ['an app for a disabled user', disableUser, CLIENT, 'user_disabled'],
    ['a disabled user', disableUser, {}, 'user_disabled'],
    ['a subject that stands for two users', makeAmbiguous, CLIENT, 'user_unknown'],
  ])('refuses %s by an error with status 200, and audits it', async (_name, find, claims, message) => {
    // Equal refusals of one minute are one entry: each of these has a minute of its own.
    app.clock.advance(60_000)
    const answer = await send(callFor(await find(), claims))
    expect(answer).toMatchObject({ status: 200, body: { error: { http_code: 403, message } } })
    const text = 'select action, outcome, client_id, detail from audit_log where request_id = $1'
    const { rows } = await app.database.pool.query(text, [answer.headers['x-request-id']])
    expect(rows).toMatchObject([{ action: 'oauth-hook.access-token', outcome: 'failure', detail: { reason: message } }])
  })

  test('judges the signature before the body, and of a repeat with the same Idempotency-Key again', async () => {
    const foreign = { secrets: [FOREIGN_SECRET] }
    expect((await send('{"user_id":1}', foreign)).status).toBe(401)
    expect((await send('{"user_id":1}')).status).toBe(422)
    const call = JSON.stringify(callFor((await makeUser()).subject))
    const headers = { 'idempotency-key': 'again' }
    expect((await send(call, { headers })).status).toBe(200)
    expect((await send(call, { ...foreign, headers })).status).toBe(401)
  })

  test('gives a user a token again once it is enabled', async () => {
    const { userId, subject } = await makeUser()
    await app.admin('POST', `/api/v3/identity/user/${userId}/disable`)
    expect((await send(callFor(subject, CLIENT))).body.error.message).toBe('user_disabled')
    await app.admin('POST', `/api/v3/identity/user/${userId}/enable`)
    expect((await send(callFor(subject, CLIENT))).body.claims.sub).toBe(subject)
  })

  test('takes an audience that is a list, as the first call after a start sends it', async () => {
    const call = callFor((await makeUser()).subject, { aud: ['authenticated'] })
    expect((await send(call)).body.claims.aud).toEqual(['authenticated'])
  })

  test('answers a hundred calls at once', async () => {
    const { subject } = await makeUser()
    const answers = await Promise.all(Array.from({ length: 100 }, () => send(callFor(subject, CLIENT))))
    expect(new Set(answers.map(({ status, body }) => `${status} ${body.claims.sub}`))).toEqual(
      new Set([`200 ${subject}`]),
    )
  })

  test('costs two round trips, and asks nobody', async () => {
    const call = callFor((await makeUser()).subject, CLIENT)
    const count = countTraffic(app.database.pool)
    expect((await send(call)).status).toBe(200)
    expect(count.stop().roundTrips).toBe(2)
  })

  test('takes a hundred kilobytes of metadata', async () => {
    const call = callFor((await makeUser()).subject, { user_metadata: { text: 'a'.repeat(100_000) } })
    expect((await send(call)).status).toBe(200)
  })

  async function disableUser() {
    const { userId, subject } = await makeUser()
    await app.admin('POST', `/api/v3/identity/user/${userId}/disable`)
    return subject
  }

  async function makeAmbiguous() {
    const { subject } = await makeUser()
    await addIdentity((await makeUser()).userId, subject)
    return subject
  }
})

describe('the signature of the hook', () => {
  const genuine = () => callFor(randomUUID())

  test.each([
    ['the new secret', [NEW_SECRET]],
    ['the old secret, while it is listed', [OLD_SECRET]],
    ['both secrets, with a comma between', [OLD_SECRET, NEW_SECRET]],
    ['a foreign and a listed secret', [FOREIGN_SECRET, OLD_SECRET]],
  ])('is taken under %s', async (_name, secrets) => {
    expect((await send(genuine(), { secrets })).status).toBe(200)
  })

  test.each<[string, Sent, string]>([
    ['a foreign secret', { secrets: [FOREIGN_SECRET] }, 'mismatch'],
    ['no secret, as an engine without one signs', { headers: { 'webhook-signature': '' } }, 'header_missing'],
    [
      'a signature without its version',
      { headers: { 'webhook-signature': Buffer.alloc(32).toString('base64') } },
      'header_malformed',
    ],
    [
      'an asymmetric version',
      { headers: { 'webhook-signature': `v1a,${Buffer.alloc(64).toString('base64')}` } },
      'header_malformed',
    ],
    ['a short signature', { headers: { 'webhook-signature': 'v1,AAAA' } }, 'header_malformed'],
    [
      'a header of ten thousand letters',
      { headers: { 'webhook-signature': `v1,${'A'.repeat(10_000)}` } },
      'header_malformed',
    ],
    ['no id', { headers: { 'webhook-id': '' } }, 'header_missing'],
    ['another id', { headers: { 'webhook-id': 'another' } }, 'mismatch'],
    ['no time', { headers: { 'webhook-timestamp': '' } }, 'header_missing'],
    ['a time that is no number', { headers: { 'webhook-timestamp': '1e9' } }, 'header_malformed'],
    ['a time of six minutes ago', { ahead: -360 }, 'stale'],
    ['a time in six minutes', { ahead: 360 }, 'stale'],
    ['a body that was changed', { change: (text) => text.replace('aal1', 'aal2') }, 'mismatch'],
    ['a body with a space more', { change: (text) => `${text} ` }, 'mismatch'],
  ])('is refused with %s', async (_name, sent, reason) => {
    const answer = await send(genuine(), sent)
    expect(answer).toMatchObject({ status: 401, body: { code: 'signature_invalid' } })
    expect(JSON.stringify(answer.body)).not.toContain(reason)
  })

  test('is judged before the content of the body', async () => {
    const answer = await send({ user_id: 'x', claims: {} }, { secrets: [FOREIGN_SECRET] })
    expect(answer.status).toBe(401)
  })

  test.each([
    ['a subject that is not the one of the claims', { user_id: randomUUID(), claims: { sub: randomUUID() } }],
    ['a subject that is no UUID', { user_id: 'admin', claims: { sub: 'admin' } }],
    ['no claims', { user_id: randomUUID() }],
    ['an app that is a number', { ...callFor('00000000-0000-7000-8000-000000000000', { client_id: 1 }) }],
  ])('does not make up for %s', async (_name, body) => {
    expect((await send(body)).status).toBe(422)
  })

  test('says in the log which rule is broken', () => {
    const keys = readHookKeys(hookSecrets(NEW_SECRET))
    const now = new Date(app.clock.now())
    const timestamp = String(Math.floor(now.getTime() / 1000))
    const body = Buffer.from('{}')
    const at = new Date(Number(timestamp) * 1000)
    const signature = new Webhook(asLibrarySecret(NEW_SECRET)).sign('id', at, '{}')
    const message = { id: 'id', timestamp, signature, body, now }
    expect(findHookFault(keys, message)).toBeUndefined()
    expect(findHookFault(keys, { ...message, signature: null })).toBe('header_missing')
    expect(findHookFault(keys, { ...message, signature: 'v2,x' })).toBe('header_malformed')
    expect(findHookFault(keys, { ...message, body: Buffer.from('[]') })).toBe('mismatch')
    expect(findHookFault(keys, { ...message, now: new Date(now.getTime() + 301_000) })).toBe('stale')
    expect(findHookFault([], message)).toBe('mismatch')
  })

  test('is that of the official library for every listed secret', () => {
    const [first, second] = readHookKeys(hookSecrets(`${NEW_SECRET},${OLD_SECRET}`))
    expect([first, second]).toEqual([Buffer.alloc(32, 1), Buffer.alloc(32, 2)])
    expect(hookSecrets(`${NEW_SECRET}|${OLD_SECRET}`)).toEqual([NEW_SECRET, OLD_SECRET].map(asLibrarySecret))
    expect(readHookKeys(['a secret that is no base64 of 32 bytes'])[0]?.toString()).toMatch(/^a secret/)
  })
})
