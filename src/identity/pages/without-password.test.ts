import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { readMails } from '../../../test/harness/browser/mailbox.ts'
import { enrolAppOnPage, readCode, signInOnPage } from '../../../test/harness/browser/page-user.ts'
import { buildPageVisitor, PAGE_ENV } from '../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const PASSWORD = 'staple of another stable'

const app = await openForFile(createTestApp({ env: PAGE_ENV }))

/** A user who signed in another way: the password is taken away behind the back of the session. */
async function signInWithoutPassword(where = app) {
  const user = await signInOnPage(where)
  await where.database.pool.query('update "user" set password_hash = null where document_id = $1', [user.userId])
  return user
}

async function findEmail(userId: string): Promise<string> {
  const { rows } = await app.database.pool.query('select email from "user" where document_id = $1', [userId])
  return rows[0].email
}

describe('a user without a password', () => {
  test('is offered a link by mail, and is signed in once the password is set', async () => {
    const { visitor, userId } = await signInWithoutPassword()
    const email = await findEmail(userId)
    expect((await visitor.get('/auth/')).body).toContain('href="/auth/password">Set a password</a>')
    const page = await visitor.get('/auth/password')
    expect(page.body).toContain(`we send it to <strong>${email}</strong>`)
    expect(page.body).not.toContain('name="current"')
    const sent = await visitor.follow(await visitor.post('/auth/password/request'))
    expect(sent.body).toContain('A mail with a link to set your password is on its way.')
    const { token } = (await readMails(app, email))[0]!
    await visitor.get(`/auth/reset?token=${token}`)
    const home = await visitor.follow(await visitor.post('/auth/reset', { password: PASSWORD }))
    expect(home.body).toContain('Your new password is set, and you are signed in.')
    expect(home.body).toContain('href="/auth/password">Change password</a>')
  })

  test('is sent no link by a visitor who is not signed in', async () => {
    const { visitor, userId } = await signInWithoutPassword()
    await visitor.get('/auth/password')
    visitor.cookies.delete('signalbox_session')
    visitor.cookies.delete('signalbox_refresh')
    expect((await visitor.post('/auth/password/request')).location).toMatch(/^\/auth\/sign-in/)
    expect(await readMails(app, await findEmail(userId))).toEqual([])
  })

  test('reads whom to ask where no mail is sent, and finds no button', async () => {
    await using silent = await createTestApp({ env: { ...PAGE_ENV, APP_ENV: 'certification' } })
    const { visitor } = await signInWithoutPassword(silent)
    const page = await visitor.get('/auth/password')
    expect(page.body).toContain('ask its operator for a password')
    expect(page.body).not.toContain('/auth/password/request')
  })
})

describe('a reset by mail', () => {
  test('does not pass by the second factor: the user proves it before it is signed in', async () => {
    const user = await signInOnPage(app)
    const { secret } = await enrolAppOnPage(app, user)
    const email = await findEmail(user.userId)
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/forgot')
    await visitor.post('/auth/forgot', { email })
    const { token } = (await readMails(app, email))[0]!
    await visitor.get(`/auth/reset?token=${token}`)
    const step = await visitor.post('/auth/reset', { password: PASSWORD })
    expect([step.status, step.body.includes('Your new password is set. One more step')]).toEqual([200, true])
    expect(visitor.cookies.has('signalbox_session')).toBe(false)
    expect((await visitor.get('/auth/')).location).toMatch(/^\/auth\/sign-in/)
    app.clock.advance(30_000)
    const done = await visitor.post('/auth/second-step', { code: readCode(app, secret) })
    expect([done.status, done.location]).toEqual([303, '/auth/?notice=password-set'])
  })

  test('leaves no session of the time before, and the new one is the only one', async () => {
    const { visitor: elsewhere, userId } = await signInOnPage(app)
    const email = await findEmail(userId)
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/forgot')
    await visitor.post('/auth/forgot', { email })
    await visitor.get(`/auth/reset?token=${(await readMails(app, email))[0]!.token}`)
    await visitor.post('/auth/reset', { password: PASSWORD })
    const { rows } = await app.database.pool.query(
      'select count(*)::int as live from session where "user" = $1 and revoked_at is null',
      [userId],
    )
    expect(rows).toEqual([{ live: 1 }])
    expect((await elsewhere.get('/auth/')).location).toContain('/auth/refresh')
    expect((await visitor.get('/auth/')).status).toBe(200)
  })
})

test('a user whose only passkey is the only way in sees why it stays', async () => {
  const { visitor, userId } = await signInOnPage(app)
  await app.database.pool.query(
    `insert into passkey (document_id, "user", credential_id, public_key, counter, transports, is_backup_eligible,
       is_backed_up, name, created_at, updated_at)
     values (gen_random_uuid(), $1, $2, '\\x00', 0, '{}', false, false, 'Phone', now(), now())`,
    [userId, `credential of ${userId}`],
  )
  expect((await visitor.get('/auth/security')).body).not.toContain(' disabled ')
  await app.database.pool.query('update "user" set password_hash = null where document_id = $1', [userId])
  const { body } = await visitor.get('/auth/security')
  expect(body).toMatch(/<button class="plain" type="button" disabled aria-describedby="[^"]+">Remove this passkey</)
  expect(body).toContain('Your only way to sign in. Set a password or connect a service first.')
})
