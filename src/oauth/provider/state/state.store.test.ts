import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter } from '../../../../test/harness/database/identity-rows.ts'
import { whileHeld } from '../../../../test/harness/plan/lock-waits.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { hashStateId } from '../../grant/state-id.ts'
import {
  consumeState,
  deleteState,
  deleteTokenFamily,
  deleteTokenFamilyModel,
  findRefreshAnswer,
  findState,
  findStateByUid,
  findStateByUserCode,
  insertNewState,
  notePoll,
  type StateRow,
  upsertState,
} from './state.store.ts'

/** The state of the provider, each row beside others of its model, and of another model under the same id. */
const database = await openForFile(createTestDatabase())
const { db } = database
beforeEach(() => database.pool.query('delete from oauth_state'))

const keyOf = (id: string, model = 'AccessToken') => ({ model, idHash: hashStateId(id) })
const build = (id: string, more: Partial<StateRow> = {}): StateRow => ({
  ...{ ...keyOf(id), payload: { id }, grantId: null, consent: null, uid: null, userCodeHash: null },
  ...{ expiresAt: madeAfter(60_000), ...more },
})
const keep = (id: string, more: Partial<StateRow> = {}) => upsertState(db, build(id, more))
const find = async (id: string, model = 'AccessToken', now = MADE_AT) =>
  (await findState(db, { ...keyOf(id, model), now }))?.payload
const list = async () =>
  (await database.pool.query(`select model || ' ' || (payload ->> 'id') as name from oauth_state order by 1`)).rows.map(
    ({ name }) => name,
  )

describe('a row', () => {
  test('is found by its model and its id until it expires', async () => {
    await keep('one')
    await keep('two')
    await keep('one', { model: 'RefreshToken', payload: { id: 'other' } })
    expect([await find('one'), await find('one', 'RefreshToken')]).toEqual([{ id: 'one' }, { id: 'other' }])
    expect([await find('three'), await find('two', 'RefreshToken')]).toEqual([undefined, undefined])
    expect(await find('one', 'AccessToken', madeAfter(59_999))).toBeDefined()
    expect(await find('one', 'AccessToken', madeAfter(60_000))).toBeUndefined()
  })

  test('is replaced, but for its spent state and its user code', async () => {
    const userCodeHash = hashStateId('CODE')
    await keep('one', { userCodeHash, uid: 'first', grantId: 'grant' })
    await keep('two')
    await consumeState(db, { ...keyOf('one'), consumedBy: hashStateId('app'), now: madeAfter(1) })
    await keep('one', { payload: { id: 'new' }, uid: 'second', expiresAt: madeAfter(90_000) })
    expect(await findStateByUserCode(db, { model: 'AccessToken', userCodeHash, now: madeAfter(89_999) })).toEqual({
      ...{ payload: { id: 'new' }, consumedAt: madeAfter(1), consumedBy: hashStateId('app') },
    })
    const byUid = async (uid: string) =>
      (await findStateByUid(db, { model: 'AccessToken', uid, now: MADE_AT }))?.payload
    expect([await byUid('first'), await byUid('second')]).toEqual([undefined, { id: 'new' }])
    expect(await find('two')).toEqual({ id: 'two' })
  })

  test('that must be new is written once', async () => {
    expect(await insertNewState(db, build('one'))).toBe(true)
    expect(await insertNewState(db, build('one', { payload: { id: 'again' } }))).toBe(false)
    expect(await insertNewState(db, build('one', { model: 'Other' }))).toBe(true)
    expect(await find('one')).toEqual({ id: 'one' })
  })

  test('is spent once, and alone', async () => {
    await keep('one')
    await keep('two')
    await keep('one', { model: 'RefreshToken' })
    const spend = (id: string, at: number) =>
      consumeState(db, { ...keyOf(id), consumedBy: hashStateId(`app ${at}`), now: madeAfter(at) })
    expect([await spend('one', 1), await spend('one', 2), await spend('three', 3)]).toEqual([true, false, false])
    const spent = async (id: string, model?: string) => findState(db, { ...keyOf(id, model), now: MADE_AT })
    expect(await spent('one')).toMatchObject({ consumedAt: madeAfter(1), consumedBy: hashStateId('app 1') })
    for (const row of [await spent('two'), await spent('one', 'RefreshToken')])
      expect(row).toMatchObject({ consumedAt: null, consumedBy: null })
  })

  test('is deleted alone', async () => {
    await keep('one')
    await keep('two')
    await keep('one', { model: 'RefreshToken' })
    await deleteState(db, keyOf('one'))
    expect(await list()).toEqual(['AccessToken two', 'RefreshToken one'])
  })

  test('is found by its uid or its user code, of its model, until it expires', async () => {
    const userCodeHash = hashStateId('CODE')
    await keep('one', { uid: 'uid', userCodeHash })
    await keep('other', { model: 'Other', uid: 'uid' })
    await keep('two', { uid: 'uid two', userCodeHash: hashStateId('CODE TWO') })
    const by = async (model: string, now = MADE_AT) => [
      (await findStateByUid(db, { model, uid: 'uid', now }))?.payload.id,
      (await findStateByUserCode(db, { model, userCodeHash, now }))?.payload.id,
    ]
    expect([await by('AccessToken'), await by('Other'), await by('None')]).toEqual([
      ...[
        ['one', 'one'],
        ['other', undefined],
        [undefined, undefined],
      ],
    ])
    expect(await by('AccessToken', madeAfter(60_000))).toEqual([undefined, undefined])
  })
})

test('a session of the provider is found by its uid while the session of its browser is valid', async () => {
  const rows = buildIdentityRows(db)
  const user = await rows.user()
  const [browser, beside] = [await rows.session(user), await rows.session(user)]
  await keep('plain', { model: 'Session', uid: 'plain' })
  await keep('one', { model: 'Session', uid: 'one', payload: { id: 'one', browserSession: browser } })
  const isFound = async (uid: string, now = MADE_AT) =>
    (await findStateByUid(db, { model: 'Session', uid, now })) !== undefined
  expect([await isFound('plain'), await isFound('one')]).toEqual([true, true])
  await rows.set('session', beside, { revoked_at: MADE_AT })
  await rows.set('session', browser, { expires_at: madeAfter(10) })
  expect([await isFound('one', madeAfter(9)), await isFound('one', madeAfter(10))]).toEqual([true, false])
  await rows.set('session', browser, { revoked_at: MADE_AT })
  expect([await isFound('one'), await isFound('plain')]).toEqual([false, true])
})

describe('a family', () => {
  beforeEach(async () => {
    for (const family of ['mine', 'theirs']) {
      await keep(`grant ${family}`, { model: 'Grant', grantId: family })
      for (const model of ['AccessToken', 'RefreshToken']) await keep(`${model} ${family}`, { model, grantId: family })
    }
  })
  const THEIRS = ['AccessToken AccessToken theirs', 'Grant grant theirs', 'RefreshToken RefreshToken theirs']

  test('ends whole, and no other does', async () => {
    await deleteTokenFamily(db, 'mine')
    expect(await list()).toEqual(THEIRS)
  })

  test('loses the rows of one model', async () => {
    await deleteTokenFamilyModel(db, { grantId: 'mine', model: 'AccessToken' })
    expect(await list()).toEqual([...THEIRS, 'Grant grant mine', 'RefreshToken RefreshToken mine'].toSorted())
  })

  test('ends with the token that is written meanwhile', async () => {
    await whileHeld(
      db,
      (tx) => upsertState(tx, build('late', { grantId: 'mine' }), hashStateId('grant mine')),
      () => deleteTokenFamily(db, 'mine'),
    )
    expect(await list()).toEqual(THEIRS)
  })

  test('that has ended gets no row', async () => {
    const write = (id: string, family: string) => upsertState(db, build(id), hashStateId(`grant ${family}`))
    await write('one', 'mine')
    await deleteTokenFamily(db, 'mine')
    await write('two', 'mine')
    await write('three', 'theirs')
    // A token with the id of a family is none.
    await upsertState(db, build('four'), hashStateId('AccessToken theirs'))
    expect([await find('one'), await find('two'), await find('three'), await find('four')]).toEqual([
      ...[{ id: 'one' }, undefined, { id: 'three' }, undefined],
    ])
  })
})

test('a device polls at its interval, each for itself', async () => {
  for (const model of ['DeviceCode', 'Other']) for (const id of ['one', 'two']) await keep(id, { model })
  const poll = (id: string, spacingMs: number, model = 'DeviceCode') => notePoll(db, { ...keyOf(id, model), spacingMs })
  expect([await poll('one', 60_000), await poll('one', 60_000)]).toEqual([true, false])
  // The column has milliseconds, so the instant of the poll may have been rounded up.
  expect(await poll('one', -1)).toBe(true)
  expect([await poll('two', 60_000), await poll('one', 60_000, 'Other'), await poll('none', 0)]).toEqual([
    true,
    true,
    false,
  ])
})

test('the answer of a redemption is read after an instant, of its refresh token alone', async () => {
  for (const [id, model] of [
    ['one', 'RefreshToken'],
    ['two', 'RefreshToken'],
    ['one', 'Other'],
  ] as const) {
    await keep(id, { model })
    await consumeState(db, { ...keyOf(id, model), consumedBy: null, now: madeAfter(5) })
  }
  const set = (id: string, model: string, answer: string | null) =>
    database.pool.query('update oauth_state set answer = $3 where model = $1 and id_hash = $2', [
      ...[model, hashStateId(id), answer],
    ])
  await set('one', 'Other', 'another')
  const read = (id: string, ms: number) => findRefreshAnswer(db, { idHash: hashStateId(id), since: madeAfter(ms) })
  expect(await read('one', 4)).toBeUndefined()
  await set('one', 'RefreshToken', 'sealed')
  expect([await read('one', 4), await read('one', 5), await read('two', 4)]).toEqual(['sealed', undefined, undefined])
})
