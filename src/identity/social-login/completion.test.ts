import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildIdMaker, type ConnectionId, type SessionId, type UserId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { ensureSystemRoles } from '../access/system-roles.ts'
import { findSession } from '../session/session.store.ts'
import { completeFlow, exchangeLoginCode } from './completion.ts'
import { findEngineToken } from './flow/engine-session.ts'
import { createLoginCode, redeemLoginCode } from './flow/login-code.ts'
import type { LoginFlow } from './flow/login-flow.store.ts'
import type { Refusal } from './refusal-problem.ts'
import type { FinishedFlow } from './social-login.ts'

const DOMAIN = 'corp.example'
const HOUR_MS = 3_600_000
const VERIFIER = 'v'.repeat(43)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')

/** What operators count: the reasons of ended sign-ins by connections. */
let counted: (Refusal | null)[]

const ids = buildIdMaker(buildManualClock(), systemRandom)
const keyring = buildKeyring(['a secret of at least thirty-two characters'], systemRandom)
const deps = {
  ...{ ids, random: systemRandom, keyring, enableApiEventQueue: true },
  keys: { secrets: ['the secret that signs sessions in tests'], issuer: () => 'https://service.test' },
  countConnectionSignIn: (reason: Refusal | null) => {
    counted.push(reason)
  },
}

const database = await openForFile(createTestDatabase())
const { db } = database
const rows = buildIdentityRows(db)
await ensureSystemRoles(db, { ids, now: MADE_AT })
/** A company, with a connection that opens sessions of two hours. */
const [account, connection] = [await rows.account(), newId<ConnectionId>()]
const times = { created_at: MADE_AT, updated_at: MADE_AT }
const oidc = { issuer: 'https://a.example', client_id: 'a', scopes: ['openid'], is_email_trusted: false }
const row = { document_id: connection, account, kind: 'oidc', name: 'Corp', is_jit: true, session_hours: 2 }
await db
  .insertInto('connection')
  .values({ ...row, ...oidc, secret_encrypted: 'sealed', ...times })
  .execute()
const proof = { verified_at: MADE_AT, verified_by: 'dns' }
await db
  .insertInto('connection_domain')
  .values({ document_id: newId(), connection, account, domain: DOMAIN, token: 'a', ...proof, ...times })
  .execute()
beforeEach(() => {
  counted = []
})

let people = 0
const someone = (domain = 'example.com') => {
  people += 1
  return {
    ...{ provider: 'google', subject: `subject-${people}`, email: `person-${people}@${domain}` },
    ...{ isEmailVerified: true, name: 'Ada', avatarUrl: null },
  }
}

const flowOf = (change: Partial<LoginFlow> = {}): LoginFlow => ({
  ...{
    stateHash: Buffer.alloc(32),
    provider: 'google',
    connection: null,
    linkTo: null,
    isDeepLink: false,
    proves: null,
  },
  ...{ redirectUrl: 'https://app.example.com/welcome', isBound: false, secret: '', codeChallenge: null },
  ...{ postedName: null, postedAnswer: null, expiresAt: madeAfter(60_000), consumedAt: MADE_AT, ...change },
})
const origin = { address: '10.0.0.1', userAgent: 'test' }
const complete = (finished: FinishedFlow) =>
  inTransaction(db, (tx) => completeFlow(deps, tx, { finished, origin, trace: null, now: MADE_AT }))
const proven = (change: Partial<LoginFlow> = {}, identity = someone(), engineToken?: string) =>
  complete({ kind: 'proven', flow: flowOf(change), identity, groups: [], engineToken })
const byCompany = (change: Partial<LoginFlow> = {}, identity = someone(DOMAIN)) =>
  proven({ connection, provider: connection, ...change }, identity)
const set = (id: UserId, columns: object) => rows.set('user', id, columns)
const activity = async () => {
  const found = await db.selectFrom('connection_activity').select(['reason', 'count']).execute()
  return Object.fromEntries(found.map(({ reason, count }) => [reason, count]))
}

describe('a flow that is proven', () => {
  test('opens the session of its user, as its first method', async () => {
    const identity = someone()
    const first = await proven({}, identity)
    expect(first).toMatchObject({
      kind: 'signed-in',
      signIn: { user: { email: identity.email }, isNewUser: true, redirectUrl: 'https://app.example.com/welcome' },
    })
    if (first.kind !== 'signed-in') return
    const session = await findSession(db, { id: first.signIn.issued.sessionId })
    expect(session).toMatchObject({ userId: first.signIn.user.id, amr: ['fed'], address: '10.0.0.1' })
    expect(session!.expiresAt.getTime()).toBeGreaterThan(MADE_AT.getTime() + 24 * HOUR_MS)
    expect(await proven({}, identity)).toMatchObject({ kind: 'signed-in', signIn: { isNewUser: false } })
    expect(counted).toEqual([])
  })

  test('of an app answers a code, and of a user who connects a provider another one', async () => {
    const app = await proven({ codeChallenge: CHALLENGE })
    expect(app).toMatchObject({ kind: 'code', parameter: 'code' })
    const [linkTo, identity] = [await rows.user(), someone()]
    const link = await proven({ linkTo }, identity)
    expect(link).toMatchObject({ kind: 'code', parameter: 'link_code', userId: linkTo })
    if (link.kind !== 'code') return
    const taken = await inTransaction(db, (tx) =>
      redeemLoginCode(tx, { code: link.code, purpose: 'link', now: MADE_AT }),
    )
    expect(taken).toMatchObject({ kind: 'taken', code: { userId: linkTo, identity: { subject: identity.subject } } })
    expect(await db.selectFrom('user').where('email', '=', identity.email).selectAll().execute()).toEqual([])
  })

  test('keeps the token of a managed engine for its session alone', async () => {
    const kept = await proven({}, someone(), 'engine token')
    const none = await proven()
    if (kept.kind !== 'signed-in' || none.kind !== 'signed-in') throw new Error('not signed in')
    const find = (sessionId: typeof kept.signIn.issued.sessionId, now = MADE_AT) =>
      findEngineToken(deps, db, { sessionId, now })
    expect(await find(kept.signIn.issued.sessionId)).toBe('engine token')
    expect(await find(kept.signIn.issued.sessionId, madeAfter(600_000))).toBeUndefined()
    expect(await find(none.signIn.issued.sessionId)).toBeUndefined()
  })

  test('opens nothing for a user who is disabled', async () => {
    const identity = someone()
    const first = await proven({}, identity)
    if (first.kind !== 'signed-in') throw new Error('not signed in')
    await set(first.signIn.user.id, { is_actived: false })
    const refused = { kind: 'refused', reason: 'disabled', userId: first.signIn.user.id }
    expect(await proven({}, identity)).toMatchObject(refused)
    expect(await proven({ codeChallenge: CHALLENGE }, identity)).toMatchObject(refused)
  })

  test('opens nothing for a user who is disabled at the same time', async () => {
    const identity = someone()
    const first = await proven({}, identity)
    if (first.kind !== 'signed-in') throw new Error('not signed in')
    const { id: userId } = first.signIn.user
    const disable = (tx: Database) => buildIdentityRows(tx).set('user', userId, { is_actived: false })
    const answer = await whileHeld(db, disable, () => proven({}, identity))
    expect(answer).toEqual({ kind: 'refused', flow: flowOf(), reason: 'disabled', detail: null, userId })
  })
})

describe('a flow that is refused', () => {
  test('names who wanted to connect a provider', async () => {
    const linkTo = await rows.user()
    const refused = { kind: 'refused', reason: 'state_replayed', detail: 'a detail' } as const
    expect(await complete({ ...refused, flow: flowOf({ linkTo }) })).toMatchObject({ ...refused, userId: linkTo })
    expect(await complete({ ...refused, flow: flowOf() })).toMatchObject({ ...refused, userId: null })
    expect(await complete({ ...refused, flow: undefined })).toEqual({ ...refused, flow: undefined, userId: null })
    expect(counted).toEqual([])
  })
})

describe('a flow of a connection', () => {
  test('opens a session of its account, for its hours', async () => {
    const answer = await byCompany()
    if (answer.kind !== 'signed-in') throw new Error(JSON.stringify(answer))
    expect(await findSession(db, { id: answer.signIn.issued.sessionId })).toMatchObject({
      accountId: account,
      expiresAt: madeAfter(2 * HOUR_MS),
    })
  })

  test('is the only way in where its account demands it, for a code too that was obtained before', async () => {
    const identity = someone(DOMAIN)
    const first = await proven({}, identity)
    const coded = await proven({ codeChallenge: CHALLENGE }, identity)
    if (first.kind !== 'signed-in' || coded.kind !== 'code') throw new Error('not signed in')
    await db.deleteFrom('account_member').where('user', '=', first.signIn.user.id).execute()
    await rows.member(account, first.signIn.user.id)
    await db.updateTable('connection').set({ is_enforced: true }).execute()
    const required = { code: 'connection_required' }
    await expect(proven({}, identity)).rejects.toMatchObject(required)
    const exchange = { code: coded.code, codeVerifier: VERIFIER, origin, now: madeAfter(1) }
    await expect(inTransaction(db, (tx) => exchangeLoginCode(deps, tx, exchange))).rejects.toMatchObject(required)
    await db.updateTable('connection').set({ is_enforced: false }).execute()
    expect(await proven({}, identity)).toMatchObject({ kind: 'signed-in' })
  })

  test('proves a session of a member of another account too, and opens none', async () => {
    const identity = someone(DOMAIN)
    const user = await rows.user({ email: identity.email, email_verified_at: MADE_AT })
    await rows.member(account, user)
    await rows.member(await rows.account(), user)
    const proves = await rows.session(user)
    await db.updateTable('connection').set({ is_enforced: true }).execute()
    const flow = flowOf({ connection, provider: connection, proves })
    const answer = await byCompany({ proves }, identity)
    expect(answer).toEqual({ kind: 'proven', flow, userId: user, sessionId: proves, account })
    const sessions = await db.selectFrom('session').select('document_id').where('user', '=', user).execute()
    expect(sessions).toEqual([{ document_id: proves }])
    const gone = { proves: newId<SessionId>() }
    const refused = { kind: 'refused', reason: 'session_ended', detail: null, userId: null }
    expect(await byCompany(gone, identity)).toEqual({ ...refused, flow: { ...flow, ...gone } })
    await db.updateTable('connection').set({ is_enforced: false }).execute()
  })

  test('is counted by its end, once, for the account and for operators', async () => {
    await db.deleteFrom('connection_activity').execute()
    await byCompany()
    expect(await activity()).toEqual({ '': 1 })
    const refused = { kind: 'refused', reason: 'state_replayed', detail: null } as const
    await complete({ ...refused, flow: flowOf({ connection }) })
    await byCompany({}, someone('other.example'))
    await proven()
    expect(counted).toEqual([null, 'state_replayed', 'email_outside'])
    expect(await activity()).toEqual({ '': 1, state_replayed: 1, email_outside: 1 })
  })
})

describe('an exchange of a code', () => {
  const exchange = (code: string, codeVerifier = VERIFIER, now = madeAfter(1)) =>
    inTransaction(db, (tx) => exchangeLoginCode(deps, tx, { code, codeVerifier, origin, now }))
  async function obtain(by = proven) {
    const answer = await by({ codeChallenge: CHALLENGE })
    if (answer.kind !== 'code') throw new Error(JSON.stringify(answer))
    return answer
  }
  const sessionOf = async (answer: Awaited<ReturnType<typeof exchange>>) =>
    answer.kind === 'signed-in' ? findSession(db, { id: answer.signIn.issued.sessionId }) : undefined

  test('opens the session of its user, once', async () => {
    const { code, userId } = await obtain()
    const answer = await exchange(code)
    expect(answer).toMatchObject({
      kind: 'signed-in',
      signIn: { user: { id: userId }, isNewUser: true, redirectUrl: null },
    })
    const session = (await sessionOf(answer))!
    expect(session).toMatchObject({ userId, amr: ['fed'] })
    expect(session.expiresAt.getTime()).toBeGreaterThan(MADE_AT.getTime() + 24 * HOUR_MS)
    expect(await exchange(code)).toEqual({ kind: 'refused', reason: 'code_unknown', userId: null })
  })

  test('needs the verifier, and a wrong one spends the code', async () => {
    const { code, userId } = await obtain()
    expect(await exchange(code, 'w'.repeat(43))).toEqual({ kind: 'refused', reason: 'verifier_wrong', userId })
    expect(await exchange(code)).toMatchObject({ reason: 'code_unknown' })
  })

  test('opens nothing for a user who was disabled, whose access was ended, or who was deleted since', async () => {
    for (const columns of [{ is_actived: false }, { access_ended_at: madeAfter(1) }, { deleted_at: MADE_AT }]) {
      const { code, userId } = await obtain()
      await set(userId, columns)
      expect(await exchange(code)).toEqual({ kind: 'refused', reason: 'disabled', userId })
    }
    const { code, userId } = await obtain()
    await set(userId, { access_ended_at: MADE_AT })
    expect(await exchange(code)).toMatchObject({ kind: 'signed-in' })
  })

  test('fails as the database does, and does not call that a refusal', async () => {
    const code = await inTransaction(db, (tx) => {
      const to = { userId: newId<UserId>(), codeChallenge: CHALLENGE, isNewUser: false, connection: null }
      return rows
        .user({ document_id: to.userId })
        .then(() => createLoginCode(systemRandom, tx, { purpose: 'sign-in', ...to }, MADE_AT))
    })
    const broken = exchangeBroken(code)
    await expect(broken).rejects.toThrow(/email does not exist/)
  })

  /** An exchange beside a table of users whose addresses cannot be read. */
  async function exchangeBroken(code: string) {
    await database.pool.query('alter table "user" rename column email to other')
    try {
      return await exchange(code)
    } finally {
      await database.pool.query('alter table "user" rename column other to email')
    }
  }

  test('of a connection opens a session of its account, for its hours', async () => {
    const { code } = await obtain(byCompany)
    expect(await sessionOf(await exchange(code))).toMatchObject({
      accountId: account,
      expiresAt: madeAfter(1 + 2 * HOUR_MS),
    })
  })

  test('of a connection that was disabled since opens nothing', async () => {
    const { code, userId } = await obtain(byCompany)
    await db.updateTable('connection').set({ is_enabled: false }).execute()
    expect(await exchange(code)).toEqual({ kind: 'refused', reason: 'connection_ended', userId })
    await db.updateTable('connection').set({ is_enabled: true }).execute()
  })
})
