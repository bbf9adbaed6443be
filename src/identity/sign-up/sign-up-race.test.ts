import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { readMails } from '../../../test/harness/browser/mailbox.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { buildHashingSemaphore } from '../password/hashing-semaphore.ts'

const CONFIRM = '/api/v3/auth/sign-up/confirm'
const PASSWORD = 'correct horse battery'

let reached: PromiseWithResolvers<void>
let mayHash: PromiseWithResolvers<void>

const env = { RATE_LIMIT_STRICT_PER_MINUTE: '100000', SIGN_UP: 'invited' }
const semaphore = buildHashingSemaphore({ atOnce: 1, queueLimit: 9, waitMs: 5_000, clock: buildManualClock() })
const run = async <Result>(work: () => Promise<Result>) => {
  reached.resolve()
  await mayHash.promise
  return semaphore(work)
}
const hashingSemaphore = Object.assign(run, { admit: semaphore.admit, judgePlace: semaphore.judgePlace })
/** Passwords of this app are hashed when the test says so: what others do meanwhile comes between check and use. */
const app = await openForFile(createTestApp({ env, hashingSemaphore }))
/** Another process on the same database, whose passwords are hashed at once. */
const other = await openForFile(createTestApp({ env, database: app.database, clock: app.clock }))

let count = 0
/** Begins the confirmation of an invited address, and waits until its password is about to be hashed. */
async function beginConfirmation() {
  count += 1
  const email = `racing-${count}@example.com`
  const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Rail' })).body.data.document_id
  const made = await app.admin('POST', `/api/v3/identity/account/${account}/invitation`, { email })
  const invitation = { path: `/api/v3/identity/account/${account}/invitation/${made.body.data.document_id}` }
  const accept = (await readMails(app, email))[0]!.token
  await app.anonymous('POST', '/api/v3/auth/sign-up', { email })
  const token = (await readMails(app, email))[0]!.token
  reached = Promise.withResolvers()
  mayHash = Promise.withResolvers()
  const confirming = app.anonymous('POST', CONFIRM, { token, password: PASSWORD })
  await reached.promise
  const finish = () => {
    mayHash.resolve()
    return confirming
  }
  return { email, token, accept, invitation, finish }
}
const gone = { status: 410, body: { code: 'link_invalid' } }
const reasonOf = async () =>
  (
    await app.database.pool.query(
      "select detail->>'reason' as reason from audit_log where action = 'login.sign-up' order by document_id desc limit 1",
    )
  ).rows[0].reason

test('a sign-up registers nobody when a user got the address while its password was hashed', async () => {
  const { accept, finish } = await beginConfirmation()
  const accepted = await other.anonymous('POST', '/api/v3/auth/invitation/accept', {
    token: accept,
    password: PASSWORD,
  })
  expect(accepted.status).toBe(200)
  expect(await finish()).toMatchObject(gone)
  expect(await reasonOf()).toBe('address_taken')
})

test('a sign-up registers nobody when the invitation was revoked while its password was hashed', async () => {
  app.clock.advance(60_000)
  const { email, invitation, finish } = await beginConfirmation()
  expect((await other.admin('DELETE', invitation.path)).status).toBe(200)
  expect(await finish()).toMatchObject(gone)
  expect(await reasonOf()).toBe('not_invited')
  expect((await app.admin('GET', `/api/v3/identity/user?filters=email|eq|${email}`)).body.data).toEqual([])
})

test('a sign-up registers one user when its link is used while its password was hashed', async () => {
  app.clock.advance(60_000)
  const { token, finish } = await beginConfirmation()
  expect((await other.anonymous('POST', CONFIRM, { token, password: PASSWORD })).status).toBe(200)
  expect(await finish()).toMatchObject(gone)
  expect(await reasonOf()).toBe('used_meanwhile')
})
