import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { untilWaiting, whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { hashStateId } from '../../grant/state-id.ts'
import { deleteTokenFamily, deleteTokenFamilyModel, findState, upsertState } from './state.store.ts'
import { writeStateBatch } from './state-batch.store.ts'

const FAMILY = 'grant.family'

const buildRow = (model: string, id: string) => ({
  model,
  idHash: hashStateId(id),
  payload: {},
  grantId: FAMILY,
  consent: null,
  uid: null,
  userCodeHash: null,
  expiresAt: new Date(Date.now() + 60_000),
})

test('a redemption waits for the end of its family before it holds the code, so that neither waits for the other', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await upsertState(db, buildRow('Grant', FAMILY))
  await upsertState(db, buildRow('AuthorizationCode', 'code'))
  const { redeemed } = await inTransaction(db, async (tx) => {
    await deleteTokenFamilyModel(tx, { grantId: FAMILY, model: 'Grant' })
    const redeemed = writeStateBatch(db, {
      spent: { model: 'AuthorizationCode', idHash: hashStateId('code'), consumedBy: null, answer: null },
      rows: [{ ...buildRow('AccessToken', 'token'), tokenFamilyHash: hashStateId(FAMILY) }],
      browser: null,
      now: new Date(),
    })
    await untilWaiting(db, 1)
    await deleteTokenFamily(tx, FAMILY)
    return { redeemed }
  })
  expect(await redeemed).toBe(false)
  const key = { model: 'AccessToken', idHash: hashStateId('token'), now: new Date() }
  expect(await findState(db, key)).toBeUndefined()
})

test('a token that spends nothing waits for the end of its family too, and is not written behind it', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  await upsertState(db, buildRow('Grant', FAMILY))
  const rows = [{ ...buildRow('AccessToken', 'token'), tokenFamilyHash: hashStateId(FAMILY) }]
  const write = () => writeStateBatch(db, { spent: undefined, rows, browser: null, now: new Date() })
  await whileHeld(db, (tx) => deleteTokenFamily(tx, FAMILY), write)
  const key = { model: 'AccessToken', idHash: hashStateId('token'), now: new Date() }
  expect(await findState(db, key)).toBeUndefined()
  await upsertState(db, buildRow('Grant', FAMILY))
  await write()
  expect(await findState(db, key)).toBeDefined()
})

test('a token of a kept family is written while the session of its browser is open', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const rows = buildIdentityRows(db)
  const user = await rows.user()
  await upsertState(db, buildRow('Grant', FAMILY))
  const write = async (browser: string) => {
    const row = { ...buildRow('AccessToken', browser), tokenFamilyHash: hashStateId(FAMILY) }
    await writeStateBatch(db, { spent: undefined, rows: [row], browser, now: new Date() })
    return (await findState(db, { model: 'AccessToken', idHash: row.idHash, now: new Date() })) !== undefined
  }
  expect(await write(await rows.session(user))).toBe(true)
  expect(await write(await rows.session(user, { revoked_at: MADE_AT }))).toBe(false)
  expect(await write(newId())).toBe(false)
})

test('what was spent before, or never was, writes no row', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const now = new Date()
  const redeem = (code: string, token: string) =>
    writeStateBatch(db, {
      spent: { model: 'AuthorizationCode', idHash: hashStateId(code), consumedBy: null, answer: null },
      rows: [{ ...buildRow('AccessToken', token), tokenFamilyHash: hashStateId(FAMILY) }],
      browser: null,
      now,
    })
  const find = (id: string) => findState(db, { model: 'AccessToken', idHash: hashStateId(id), now })
  await upsertState(db, buildRow('Grant', FAMILY))
  await upsertState(db, buildRow('AuthorizationCode', 'code'))
  await upsertState(db, buildRow('AuthorizationCode', 'other'))
  expect([await redeem('code', 'first'), await redeem('code', 'second'), await redeem('none', 'third')]).toEqual([
    ...[true, false, false],
  ])
  expect(await find('first')).toBeDefined()
  expect([await find('second'), await find('third')]).toEqual([undefined, undefined])
  // Only the code itself was spent.
  expect(await redeem('other', 'fourth')).toBe(true)
})

test('a row that is written again has all that it is written with', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const now = new Date()
  const write = (uid: string, payload: Record<string, unknown>, expiresAt: Date) => {
    const row = { ...buildRow('Session', 'one'), uid, payload, expiresAt, grantId: uid, tokenFamilyHash: null }
    return writeStateBatch(db, { spent: undefined, rows: [row], browser: null, now })
  }
  await write('first', { a: 1 }, new Date(now.getTime() + 60_000))
  await write('second', { b: 2 }, new Date(now.getTime() + 90_000))
  const { rows } = await database.pool.query('select uid, payload, grant_id, expires_at from oauth_state')
  const expires_at = new Date(now.getTime() + 90_000)
  expect(rows).toEqual([{ uid: 'second', payload: { b: 2 }, grant_id: 'second', expires_at }])
})

test('a new family is written with its tokens while its grant and its browser are valid, and notes the use of the grant', async () => {
  await using database = await createTestDatabase()
  const { db, pool } = database
  const rows = buildIdentityRows(db)
  const user = await rows.user()
  const [client, grant] = [newId(), newId()]
  await pool.query(
    `insert into oauth_client (document_id, name, type, application_type, redirect_uris, post_logout_redirect_uris,
       grant_types, scopes, first_party, id_token_signed_response_alg, dpop_bound_access_tokens, registration,
       created_at, updated_at)
     values ($1, 'App', 'public', 'web', '{}', '{}', '{}', '{}', false, 'ES256', false, 'administrator', $2, $2)`,
    [client, MADE_AT],
  )
  await pool.query(
    `insert into oauth_grant (document_id, "user", client, scopes, refused_scopes, created_at, updated_at)
     values ($1, $2, $3, '{openid}', '{}', $4, $4)`,
    [grant, user, client, MADE_AT],
  )
  let families = 0
  /** Writes a family and a token of it; whether each is there afterwards. */
  const write = async (browser: string | null, now = MADE_AT) => {
    families += 1
    const [family, token] = [`${grant}.${families}`, `token ${families}`]
    const expiresAt = new Date(Date.now() + 60_000)
    const row = (model: string, id: string) => ({ ...buildRow(model, id), grantId: family, consent: grant, expiresAt })
    const written = [
      { ...row('AccessToken', token), tokenFamilyHash: hashStateId(family) },
      { ...row('Grant', family), tokenFamilyHash: null },
    ]
    await writeStateBatch(db, { spent: undefined, rows: written, browser, now })
    const find = (model: string, id: string) => findState(db, { model, idHash: hashStateId(id), now: new Date() })
    return [(await find('Grant', family)) !== undefined, (await find('AccessToken', token)) !== undefined]
  }
  const readUse = async () => (await pool.query('select used_at from oauth_grant_use')).rows.map((row) => row.used_at)
  const browser = await rows.session(user)
  expect(await write(browser)).toEqual([true, true])
  expect(await write(null)).toEqual([true, true])
  expect(await readUse()).toEqual([MADE_AT])
  await write(null, madeAfter(3_600_000))
  expect(await readUse()).toEqual([MADE_AT])
  await write(null, madeAfter(3_600_001))
  expect(await readUse()).toEqual([madeAfter(3_600_001)])
  await rows.set('session', browser, { revoked_at: MADE_AT })
  expect(await write(browser)).toEqual([false, false])
  await pool.query('update oauth_grant set revoked_at = now()')
  expect(await write(null)).toEqual([false, false])
})
