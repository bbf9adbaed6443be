import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../test/harness/app/known-password.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

/** The limits of mails to one address through the API (docs/contract/sessions.md#mails-to-one-address). */

const PASSWORD = 'correct horse battery'
const DAY_MS = 24 * 3_600_000

let users = 0
const app = await openForFile(
  createTestApp({
    env: { SIGN_IN_BY_MAIL: 'true', SIGN_UP: 'open', RATE_LIMIT_STRICT_PER_MINUTE: '100000' },
  }),
)
// The clock passes days, which the session of the administrator does not outlast.
const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'tests', permissions: ['*:*'] })
app.admin = app.callAs(key.body.data.key)

async function makeUser(): Promise<string> {
  users += 1
  const email = `limited-${users}@example.test`
  const id = await createUserWithPassword(app, { email }, PASSWORD)
  await app.database.pool.query('update "user" set email_verified_at = now() where document_id = $1', [id])
  return email
}

async function countMails(kind: string, email: string): Promise<number> {
  const text = 'select count(*)::int as mails from mail_outbox where kind = $1 and lower(recipient) = $2'
  return (await app.database.pool.query(text, [kind, email])).rows[0].mails
}

test.each<[kind: string, path: string, hourly: number]>([
  ['reset', '/api/v3/auth/password/forgot', 6],
  ['sign-up', '/api/v3/auth/sign-up', 6],
  ['sign-in', '/api/v3/auth/login/mail', 12],
])(
  'an address gets so many mails of a %s in an hour, in any spelling, and every request the same answer',
  async (kind, path, hourly) => {
    const email = kind === 'sign-up' ? 'nobody-yet@example.test' : await makeUser()
    const ask = async (to: string) => {
      const { status, body } = await app.anonymous('POST', path, { email: to })
      // What is open expires by the clock of the service; the limit counts by that of the database.
      app.clock.advance(2 * DAY_MS)
      return [
        status,
        Object.keys(body.data ?? {})
          .sort()
          .join(' '),
        body.message,
      ]
    }
    const answers = []
    for (let turn = 0; turn < hourly; turn += 1) answers.push(await ask(turn % 2 ? email.toUpperCase() : email))
    expect(await countMails(kind, email)).toBe(hourly)
    for (const to of [email, email.toUpperCase()]) answers.push(await ask(to))
    expect(await countMails(kind, email)).toBe(hourly)
    expect(new Set(answers.map((answer) => answer.join(' '))).size).toBe(1)
    expect(answers[0]?.[0]).toBe(202)
    // Another address has its own room, and so does this one an hour later.
    await app.database.pool.query(`update mail_outbox set queued_at = queued_at - interval '1 hour'`)
    await ask(email)
    expect(await countMails(kind, email)).toBe(hourly + 1)
  },
)

test('a new address gets so many mails of changes in an hour, over all users who ask, and the next one is refused', async () => {
  const wanted = 'wanted@example.test'
  const ask = async (to: string) => {
    const email = await makeUser()
    const { jwt } = (await app.anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD })).body.data
    return app.callAs(jwt)('POST', '/api/v3/auth/user/email-change', { email: to })
  }
  for (let turn = 0; turn < 5; turn += 1) expect((await ask(turn % 2 ? wanted.toUpperCase() : wanted)).status).toBe(202)
  expect(await countMails('email-change', wanted)).toBe(5)
  const before = (await app.database.pool.query('select count(*)::int as changes from email_change')).rows[0].changes
  expect(await ask(wanted)).toMatchObject({ status: 409, body: { code: 'limit_reached' } })
  expect(await countMails('email-change', wanted)).toBe(5)
  const after = (await app.database.pool.query('select count(*)::int as changes from email_change')).rows[0].changes
  expect(after).toBe(before)
  expect((await ask('other-wanted@example.test')).status).toBe(202)
})
