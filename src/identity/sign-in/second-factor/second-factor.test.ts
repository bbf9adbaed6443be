import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, newId } from '../../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { SessionId, UserId } from '../../../base/id.ts'
import { buildKeyring, KeyringError } from '../../../base/keyring.ts'
import { systemRandom } from '../../../base/random.ts'
import { type Database, inTransaction } from '../../../postgres/statement/database.ts'
import { hashSubject } from '../../throttle/login-throttle.ts'
import { hashRecoveryCode } from './recovery-code.ts'
import { countFactors, lockHasFactor } from './second-factor.store.ts'
import {
  createFirstRecoveryCodes,
  endLastFactor,
  listFactorMethods,
  openTotpSecret,
  readUserSession,
  removeAllFactors,
  renewRecoveryCodes,
  takeCodeOf,
  totpContextOf,
  useFactorCode,
} from './second-factor.ts'
import { computeTotp, findStep } from './totp.ts'
import { enrolTotp, findTotp, type TotpFactorId, takeTotpStep } from './totp-factor.store.ts'

const keyring = buildKeyring(['a secret of at least thirty-two characters'], systemRandom)
const deps = { keyring, random: systemRandom }
const secret = Buffer.alloc(20, 7)
const step = findStep(MADE_AT.getTime())

/** The user under test, and another one with the same factors. */
let user: UserId
let other: UserId
const database = await openForFile(createTestDatabase())
const { db } = database
const rows = buildIdentityRows(db)
beforeEach(async () => {
  ;[user, other] = [await rows.user(), await rows.user()]
})

const write = <T>(act: (tx: Database) => Promise<T>) => inTransaction(db, act)

async function addTotp(userId: UserId, { isConfirmed = true, sealed = undefined as string | undefined } = {}) {
  const id = newId<TotpFactorId>()
  const secretEncrypted = sealed ?? keyring.seal(secret.toString('base64url'), totpContextOf(id))
  await enrolTotp(db, { id, userId, secretEncrypted, now: MADE_AT })
  if (isConfirmed) await takeTotpStep(db, { id, step: step - 10, confirms: true, now: MADE_AT })
  return (await findTotp(db, { userId }))!
}
const addPasskey = (userId: UserId) =>
  database.pool.query(
    `insert into passkey (document_id, "user", credential_id, public_key, counter, transports, name, is_backup_eligible,
       is_backed_up, created_at, updated_at)
     values ($1, $2, $3, '', 0, '{}', 'key', false, false, $4, $4)`,
    [newId(), userId, randomBytes(16).toString('base64url'), MADE_AT],
  )
const useCode = (code: string, userId = user) => write((tx) => useFactorCode(deps, tx, { userId, code, now: MADE_AT }))

test('the ways to prove a factor are those that are enrolled, and recovery codes beside one alone', () => {
  const list = (hasTotp: boolean, passkeys: number, recoveryCodes: number) =>
    listFactorMethods({ hasTotp, passkeys, recoveryCodes })
  expect(list(false, 0, 0)).toEqual([])
  expect(list(false, 0, 3)).toEqual([])
  expect(list(true, 0, 0)).toEqual(['totp'])
  expect(list(true, 0, 1)).toEqual(['totp', 'recovery-code'])
  expect(list(false, 1, 0)).toEqual(['passkey'])
  expect(list(true, 2, 3)).toEqual(['totp', 'passkey', 'recovery-code'])
})

test('a caller without a session has no factor', () => {
  const id = newId<SessionId>()
  expect(readUserSession({ sessionId: id })).toBe(id)
  expect(() => readUserSession({ sessionId: null })).toThrow(expect.objectContaining({ code: 'conflict' }))
})

describe('a secret', () => {
  test('is read with its key and its id', () => {
    const id = newId<TotpFactorId>()
    const secretEncrypted = keyring.seal(secret.toString('base64url'), totpContextOf(id))
    expect(openTotpSecret(deps, { id, secretEncrypted })).toEqual(secret)
    expect(openTotpSecret(deps, { id: newId<TotpFactorId>(), secretEncrypted })).toBeUndefined()
  })

  test('that fails otherwise than by its key fails as it does', () => {
    const failing = (error: Error) => ({
      keyring: {
        seal: () => '',
        open: () => {
          throw error
        },
      },
    })
    const factor = { id: newId<TotpFactorId>(), secretEncrypted: '' }
    expect(openTotpSecret(failing(new KeyringError('unknown key')), factor)).toBeUndefined()
    expect(() => openTotpSecret(failing(new RangeError('other')), factor)).toThrow('other')
  })
})

describe('a code of an authenticator app', () => {
  const code = computeTotp(secret, step)

  test('is right once, with white space too', async () => {
    await addTotp(user)
    await addTotp(other)
    expect(await useCode(` ${code.slice(0, 3)} ${code.slice(3)}\n`)).toEqual({
      ok: true,
      methods: ['otp'],
      used: 'totp',
    })
    expect((await findTotp(db, { userId: user }))?.lastStep).toBe(step)
    expect((await findTotp(db, { userId: other }))?.lastStep).toBe(step - 10)
    expect(await useCode(code)).toEqual({ ok: false, reason: 'code_used' })
    expect(await useCode(code, other)).toMatchObject({ ok: true })
  })

  test('is wrong when it is of no step of now', async () => {
    await addTotp(user)
    expect(await useCode(computeTotp(secret, step + 2))).toEqual({ ok: false, reason: 'code_wrong' })
    expect(await useCode(computeTotp(Buffer.alloc(20, 8), step))).toEqual({ ok: false, reason: 'code_wrong' })
  })

  test('is of no factor without an app that is confirmed', async () => {
    expect(await useCode(code)).toEqual({ ok: false, reason: 'no_factor' })
    await addTotp(user, { isConfirmed: false })
    expect(await useCode(code)).toEqual({ ok: false, reason: 'no_factor' })
    expect((await findTotp(db, { userId: user }))?.lastStep).toBeNull()
  })

  test('is not read with a secret that no key opens', async () => {
    await addTotp(user, { sealed: 'sealed by nothing' })
    expect(await useCode(code)).toEqual({ ok: false, reason: 'secret_unreadable' })
  })

  test('that another use took in the meantime is used', async () => {
    const factor = await addTotp(user)
    const use = { factor, code, confirms: false, now: MADE_AT }
    expect(await write((tx) => takeCodeOf(deps, tx, use))).toBeUndefined()
    expect(await write((tx) => takeCodeOf(deps, tx, use))).toBe('code_used')
  })

  test('confirms an app once', async () => {
    const factor = await addTotp(user, { isConfirmed: false })
    const confirm = { factor, code, confirms: true, now: MADE_AT }
    expect(await write((tx) => takeCodeOf(deps, tx, { ...confirm, confirms: false }))).toBe('code_used')
    expect(await write((tx) => takeCodeOf(deps, tx, confirm))).toBeUndefined()
    expect((await findTotp(db, { userId: user }))?.confirmedAt).toEqual(MADE_AT)
    expect(await write((tx) => takeCodeOf(deps, tx, confirm))).toBe('code_used')
  })
})

describe('recovery codes', () => {
  const renew = (userId = user) => write((tx) => renewRecoveryCodes(deps, tx, { userId, now: MADE_AT }))

  test('are for a user with a factor, and each is right once', async () => {
    await expect(renew()).rejects.toMatchObject({ code: 'conflict' })
    await addPasskey(user)
    const [first, second] = (await renew()) as [string, string]
    expect(await useCode(first.toUpperCase().replaceAll('-', ' '))).toEqual({
      ok: true,
      methods: ['otp'],
      used: 'recovery-code',
    })
    const wrong = { ok: false, reason: 'recovery_code_wrong' }
    expect(await useCode(first)).toEqual(wrong)
    expect(await useCode(second, other)).toEqual(wrong)
    for (const code of ['', 'no code', '12345', '1234567']) expect(await useCode(code)).toEqual(wrong)
    expect(await countFactors(db, user)).toMatchObject({ recoveryCodes: 9 })
  })

  test('are made for the first factor alone', async () => {
    const first = () => write((tx) => createFirstRecoveryCodes(deps, tx, { userId: user, now: MADE_AT }))
    const codes = (await first())!
    expect(new Set(codes.map((code) => hashRecoveryCode(code)?.toString('hex'))).size).toBe(10)
    expect(await first()).toBeNull()
    expect(await useCode(codes[9]!)).toMatchObject({ ok: true })
  })

  test('are made again when all were used', async () => {
    const first = () => write((tx) => createFirstRecoveryCodes(deps, tx, { userId: user, now: MADE_AT }))
    for (const code of (await first())!) await useCode(code)
    expect(await first()).toHaveLength(10)
  })
})

describe('without the last factor', () => {
  const sessionOf = (userId: UserId) => rows.session(userId, { amr: ['pwd', 'otp', 'mfa'], acr: 'aal2' })
  const readSession = (id: SessionId) =>
    db.selectFrom('session').select(['amr', 'acr']).where('document_id', '=', id).executeTakeFirstOrThrow()
  const countThrottles = async (userId: UserId) => {
    const emailHash = hashSubject('factor', userId)
    const found = db.selectFrom('login_throttle').select('failures').where('email_hash', '=', emailHash)
    return (await found.execute()).length
  }
  const throttle = (userId: UserId) => {
    const [emailHash, addressHash] = [hashSubject('factor', userId), Buffer.alloc(32, 1)]
    const row = { email_hash: emailHash, address_hash: addressHash, failures: 3, last_failure_at: MADE_AT }
    return db.insertInto('login_throttle').values(row).execute()
  }

  const locked = (act: (tx: Database) => Promise<void>) =>
    write(async (tx) => {
      await lockHasFactor(tx, { userId: user })
      await act(tx)
    })

  async function prepare() {
    for (const userId of [user, other]) {
      await addTotp(userId)
      await addPasskey(userId)
      await write((tx) => renewRecoveryCodes(deps, tx, { userId, now: MADE_AT }))
      await throttle(userId)
    }
    return [await sessionOf(user), await sessionOf(other)] as const
  }

  test('a user has neither codes nor sessions with it, and others keep theirs', async () => {
    const [own, foreign] = await prepare()
    await locked((tx) => endLastFactor(tx, { userId: user, now: MADE_AT }))
    expect(await countFactors(db, user)).toEqual({ hasTotp: false, passkeys: 0, recoveryCodes: 0 })
    expect(await countFactors(db, other)).toEqual({ hasTotp: true, passkeys: 1, recoveryCodes: 10 })
    expect((await readSession(own)).amr).not.toContain('mfa')
    expect((await readSession(foreign)).amr).toContain('mfa')
    expect(await countThrottles(user)).toBe(1)
  })

  test('a user whose factors were removed is not throttled for their codes any more', async () => {
    const [own] = await prepare()
    await locked((tx) => removeAllFactors(tx, { userId: user, now: MADE_AT }))
    expect(await countFactors(db, user)).toEqual({ hasTotp: false, passkeys: 0, recoveryCodes: 0 })
    expect((await readSession(own)).amr).not.toContain('mfa')
    expect([await countThrottles(user), await countThrottles(other)]).toEqual([0, 1])
  })
})
