import { describe, expect, test } from 'vitest'
import { createTestApp, type TestCall } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { buildFactorRequests } from '../../../test/harness/browser/factor-requests.ts'
import { codeOf } from '../../../test/harness/browser/factor-user.ts'
import { holdUser, race } from '../../../test/harness/plan/race.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const FACTOR = '/api/v3/auth/factor'
const LOGIN = '/api/v3/auth/login'
const PASSWORD = 'correct horse battery'

/** The calls in the other process, by those in the first one. */
const twins = new Map<TestCall, TestCall>()
/** Two processes on one database. */
const app = await openForFile(createTestApp({ env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000' } }))
const other = await openForFile(
  createTestApp({
    database: app.database,
    clock: app.clock,
    env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000' },
  }),
)

let count = 0
const factors = buildFactorRequests(
  () => ({
    anonymous: app.anonymous,
    clock: app.clock,
    callAs: (token) => {
      const call = app.callAs(token)
      twins.set(call, other.callAs(token))
      return call
    },
    newUser: async () => {
      const email = `person-${count++}@example.test`
      await createUserWithPassword(app, { email }, PASSWORD)
      return { email, password: PASSWORD }
    },
  }),
  { origin: 'http://localhost:0', rpId: 'localhost' },
)
const inOther = (call: TestCall) => twins.get(call) as TestCall

async function countRows(text: string, userId: string): Promise<number> {
  return Number((await app.database.pool.query(text, [userId])).rows[0].count)
}
const countCodes = (userId: string) =>
  countRows('select count(*) from recovery_code where "user" = $1 and used_at is null', userId)

/** A user who signs in by a passkey or at a provider, without a password. */
async function withPasskeyAndIdentity() {
  const user = await factors.withPasskey()
  await app.database.pool.query('update "user" set password_hash = null where document_id = $1', [user.id])
  const { rows } = await app.database.pool.query(
    `insert into identity (document_id, "user", provider, subject, is_email_verified, created_at, updated_at)
     values (gen_random_uuid(), $1, 'google', $2, true, now(), now()) returning document_id`,
    [user.id, user.id],
  )
  return { ...user, identity: rows[0].document_id as string }
}

const removePasskey = (call: TestCall, id: string) => call('DELETE', `${FACTOR}/passkey/${id}`)
const unlink = (call: TestCall, id: string) => call('DELETE', `/api/v3/identity/identity/${id}`)
const renewCodes = (call: TestCall) => call('POST', `${FACTOR}/recovery-code`)
const removeApp = (call: TestCall) => call('DELETE', `${FACTOR}/totp`)

describe('an identity and a passkey that are removed at once leave one of them', () => {
  test.each(['passkey', 'identity'])('the %s goes first', async (first) => {
    const { id, call, passkey, identity } = await withPasskeyAndIdentity()
    const requests = [() => removePasskey(call, passkey), () => unlink(inOther(call), identity)]
    const answers = await race(app.database, holdUser(id), first === 'passkey' ? requests : requests.reverse())
    expect(answers.map(({ status }) => status)).toEqual([200, 409])
    const ways = await countRows(
      `select (select count(*) from passkey where "user" = $1) + (select count(*) from identity where "user" = $1) as count`,
      id,
    )
    expect(ways).toBe(1)
  })
})

describe('recovery codes', () => {
  test('renewed twice at once are ten, those of the second answer', async () => {
    const { id, call } = await factors.withApp()
    const requests = [() => renewCodes(call), () => renewCodes(inOther(call))]
    const answers = await race(app.database, holdUser(id), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(await countCodes(id)).toBe(10)
  })

  test('are not renewed once the last factor has gone', async () => {
    const { id, call } = await factors.withApp()
    const requests = [() => removeApp(call), () => renewCodes(inOther(call))]
    const answers = await race(app.database, holdUser(id), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 409])
    expect(await countCodes(id)).toBe(0)
  })

  test('go with the last factor when they were renewed first', async () => {
    const { id, call } = await factors.withApp()
    const requests = [() => renewCodes(call), () => removeApp(inOther(call))]
    const answers = await race(app.database, holdUser(id), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(await countCodes(id)).toBe(0)
  })
})

describe('a factor that is used while it is removed waits for the removal, and is refused', () => {
  test('a code of an app, at a sign-in', async () => {
    const user = await factors.withApp()
    const body = { challenge: await factors.openStep(user), code: codeOf(app, user.secret) }
    const requests = [() => removeApp(user.call), () => other.anonymous('POST', `${LOGIN}/factor`, body)]
    const answers = await race(app.database, holdUser(user.id), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 401])
  })

  test('a code of an app, in a session', async () => {
    const user = await factors.withApp()
    const body = { code: codeOf(app, user.secret) }
    const stepUp = () => inOther(user.call)('POST', '/api/v3/auth/session/step-up', body)
    const answers = await race(app.database, holdUser(user.id), [() => removeApp(user.call), stepUp])
    expect(answers.map(({ status }) => status)).toEqual([200, 422])
  })

  test('a passkey, at a sign-in', async () => {
    const user = await factors.withPasskey()
    const challenge = await factors.openStep(user)
    const asked = await app.anonymous('POST', `${LOGIN}/factor/options`, { challenge })
    const body = { challenge, credential: user.device.get(asked.body.data.options) }
    const logIn = () => other.anonymous('POST', `${LOGIN}/factor`, body)
    const requests = [() => removePasskey(user.call, user.passkey), logIn]
    const answers = await race(app.database, holdUser(user.id), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 401])
  })

  test('a passkey, at a sign-in without a password', async () => {
    const user = await factors.withPasskey()
    const asked = await app.anonymous('POST', `${LOGIN}/passkey/options`)
    const body = { credential: user.device.get(asked.body.data.options) }
    const logIn = () => other.anonymous('POST', `${LOGIN}/passkey`, body)
    const requests = [() => removePasskey(user.call, user.passkey), logIn]
    const answers = await race(app.database, holdUser(user.id), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 401])
  })

  test('a passkey, in a session', async () => {
    const user = await factors.withPasskey()
    const asked = await user.call('POST', '/api/v3/auth/session/step-up/options')
    const body = { credential: user.device.get(asked.body.data.options) }
    const stepUp = () => inOther(user.call)('POST', '/api/v3/auth/session/step-up', body)
    const holdPasskey = { text: 'select from passkey where document_id = $1 for update', values: [user.passkey] }
    const requests = [() => removePasskey(user.call, user.passkey), stepUp]
    const answers = await race(app.database, holdPasskey, requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 422])
  })

  test('a passkey that is registered meanwhile', async () => {
    const user = await factors.withApp()
    const options = await user.call('POST', `${FACTOR}/passkey/options`)
    const { device } = await factors.withPasskey()
    const body = { name: 'My phone', credential: device.create(options.body.data.options) }
    const register = () => inOther(user.call)('POST', `${FACTOR}/passkey`, body)
    const answers = await race(app.database, holdUser(user.id), [() => removeApp(user.call), register])
    expect(answers.map(({ status }) => status)).toEqual([200, 422])
  })
})
