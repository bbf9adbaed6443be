import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import {
  addPasskeyOnPage,
  enrolAppOnPage,
  enterPassword,
  PAGE_PASSWORD,
  readCode,
  readPasskeyOptions,
  signInOnPage,
} from '../../../../test/harness/browser/page-user.ts'
import { buildPageVisitor, PAGE_ENV } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const app = await openForFile(createTestApp({ env: PAGE_ENV }))

const ELEVEN_MINUTES = 11 * 60_000

/** The events of the last page forms, newest first. */
async function readEvents(limit: number): Promise<string[]> {
  const { rows } = await app.database.pool.query(
    'select event from event_occurrence order by document_id desc limit $1',
    [limit],
  )
  return rows.map(({ event }) => event)
}

/** The key of an app that is being set up. */
const readKey = (body: string) => /<code class="key">([^<]+)</.exec(body)?.[1]

/** The value of the hidden field `id` of the passkey that a page lists. */
const readId = (body: string) => /name="id" value="([^"]+)"/.exec(body)?.[1] ?? ''

describe('the page of the second factors', () => {
  test('sends a visitor without a session to the sign-in and back', async () => {
    const reply = await buildPageVisitor(app).get('/auth/security')
    expect(reply.location).toBe('/auth/sign-in?next=%2Fauth%2Fsecurity')
  })

  test('enrols an authenticator app: a code to scan, the key, and ten recovery codes once', async () => {
    const user = await signInOnPage(app)
    await user.visitor.get('/auth/security')
    const shown = await user.visitor.post('/auth/security/app')
    expect(shown.body).toMatch(/<svg class="qr"[^>]+role="img" aria-label="QR code/)
    expect(shown.body).toContain('href="otpauth://totp/Signalbox:')
    const { codes, page } = await enrolAppOnPage(app, user)
    expect([page.status, codes.length]).toEqual([200, 10])
    expect(await readEvents(2)).toEqual(['totp-factor.confirm', 'totp-factor.create'])
    const later = await user.visitor.get('/auth/security')
    expect(later.body).toContain('10 are left')
    for (const code of codes) expect(later.body).not.toContain(code)
  })

  test('keeps an app off after a wrong code and shows the same key again, and turns it on by the next right one', async () => {
    const { visitor } = await signInOnPage(app)
    await visitor.get('/auth/security')
    const key = readKey((await visitor.post('/auth/security/app')).body)
    expect(key).toMatch(/^[A-Z2-7 ]{32,}$/)
    const empty = await visitor.post('/auth/security/app/confirm', { code: '' })
    expect([empty.status, empty.body.includes('Enter the code')]).toEqual([422, true])
    expect(readKey(empty.body)).toBe(key)
    const wrong = await visitor.post('/auth/security/app/confirm', { code: '000000' })
    expect([wrong.status, wrong.body.includes('This code is wrong.')]).toEqual([422, true])
    expect((await visitor.get('/auth/security')).body).toContain('Set up an app')
  })

  test('removes the app, and with the last factor the second step', async () => {
    const user = await signInOnPage(app)
    await enrolAppOnPage(app, user)
    const reply = await user.visitor.post('/auth/security/app/remove')
    expect((await user.visitor.follow(reply)).body).toContain('The authenticator app is removed.')
    expect((await enterPassword(app, user.email)).reply.status).toBe(303)
  })

  test('adds, renames and removes a passkey', async () => {
    const user = await signInOnPage(app)
    const { page } = await addPasskeyOnPage(user, 'My <phone>')
    expect(page.body).toContain('Store your recovery codes')
    const listed = await user.visitor.get('/auth/security')
    expect(listed.body).toContain('<strong>My &lt;phone&gt;</strong>')
    expect(listed.body).toContain('10 are left')
    const id = readId(listed.body)
    const renamed = await user.visitor.post('/auth/security/passkey/rename', { id, name: 'Key ring\n' })
    expect((await user.visitor.follow(renamed)).body).toContain('<strong>Key ring</strong>')
    const removed = await user.visitor.post('/auth/security/passkey/remove', { id })
    const left = await user.visitor.follow(removed)
    expect(left.body).toContain('The passkey is removed.')
    expect(left.body).not.toContain('<h2 id="recovery">')
    expect(await readEvents(2)).toEqual(['passkey.delete', 'passkey.create'])
  })

  test('has no passkey of another user', async () => {
    const [session, other] = [await signInOnPage(app), await signInOnPage(app)]
    await addPasskeyOnPage(session)
    const id = readId((await session.visitor.get('/auth/security')).body)
    await other.visitor.get('/auth/security')
    for (const known of [id, 'x'])
      for (const action of ['rename', 'remove'])
        expect((await other.visitor.post(`/auth/security/passkey/${action}`, { id: known, name: 'Mine' })).status).toBe(
          404,
        )
    expect((await session.visitor.get('/auth/security')).body).toContain('<strong>Phone</strong>')
  })

  test('shows the form again for an answer that the options did not ask for', async () => {
    const user = await signInOnPage(app)
    const { passkey } = await addPasskeyOnPage(user)
    const asked = await user.visitor.post('/auth/security/passkey/begin')
    const credential = JSON.stringify(passkey.create({ ...readPasskeyOptions(asked), challenge: 'AAAA' }))
    const refused = await user.visitor.post('/auth/security/passkey', { name: 'Again', credential })
    expect([refused.status, refused.body.includes('The passkey was not added.')]).toEqual([422, true])
  })

  test('keeps the last way in: a passkey of a user without password and provider stays', async () => {
    const user = await signInOnPage(app)
    await addPasskeyOnPage(user)
    await app.database.pool.query('update "user" set password_hash = null where document_id = $1', [user.userId])
    const id = readId((await user.visitor.get('/auth/security')).body)
    const reply = await user.visitor.post('/auth/security/passkey/remove', { id })
    expect([reply.status, reply.body.includes('your last way to sign in')]).toEqual([409, true])
    expect((await user.visitor.get('/auth/security')).body).toContain('<strong>Phone</strong>')
  })
})

describe('a fresh proof', () => {
  test('is asked of a session whose proof is old, by a code, and the user repeats the step', async () => {
    const user = await signInOnPage(app)
    const { secret } = await enrolAppOnPage(app, user)
    const { visitor } = user
    app.clock.advance(ELEVEN_MINUTES)
    await visitor.get('/auth/security')
    const refused = await visitor.post('/auth/security/recovery-codes')
    expect([refused.status, refused.location]).toEqual([
      303,
      `/auth/step-up?next=${encodeURIComponent('/auth/security?notice=confirmed')}`,
    ])
    const asked = await visitor.follow(refused)
    expect(asked.body).toContain('<h1>Confirm that it is you</h1>')
    const wrong = await visitor.post('/auth/step-up', { code: '000000' })
    expect([wrong.status, wrong.body.includes('This code is wrong. Wait for the next one.')]).toEqual([422, true])
    expect((await visitor.post('/auth/step-up', { code: '' })).status).toBe(422)
    const proven = await visitor.post('/auth/step-up', { code: readCode(app, secret) })
    expect((await visitor.follow(proven)).body).toContain('Now repeat the step.')
    expect((await visitor.post('/auth/security/recovery-codes')).body).toContain('Store your recovery codes')
  })

  test('is refused and audited as at the API', async () => {
    const user = await signInOnPage(app)
    await enrolAppOnPage(app, user)
    app.clock.advance(ELEVEN_MINUTES)
    await user.visitor.get('/auth/security')
    await user.visitor.post('/auth/security/app/remove')
    const { rows } = await app.database.pool.query(
      "select outcome, detail->>'reason' as reason, \"user\" from audit_log where action = 'totp-factor.delete' order by document_id desc limit 1",
    )
    expect(rows).toEqual([{ outcome: 'failure', reason: 'factor_not_fresh', user: user.userId }])
  })

  test('is given by a passkey too', async () => {
    const user = await signInOnPage(app)
    const { passkey } = await addPasskeyOnPage(user)
    app.clock.advance(ELEVEN_MINUTES)
    const asked = await user.visitor.get('/auth/step-up?next=%2Fauth%2Fpassword')
    const credential = JSON.stringify(passkey.get(readPasskeyOptions(asked)))
    const proven = await user.visitor.post('/auth/step-up', { credential })
    expect([proven.status, proven.location]).toEqual([303, '/auth/password'])
    expect((await user.visitor.follow(proven)).body).toContain('Change your password')
  })

  test('of a user without a second factor is a new sign-in', async () => {
    const { visitor, email } = await signInOnPage(app)
    app.clock.advance(ELEVEN_MINUTES)
    await visitor.get('/auth/security')
    const asked = await visitor.follow(await visitor.post('/auth/security/app'))
    const href = /<a class="button" href="([^"]+)">Sign in again/.exec(asked.body)?.[1]?.replaceAll('&amp;', '&') ?? ''
    expect((await visitor.get(href)).body).toContain('<h1>Sign in</h1>')
    const done = await visitor.post('/auth/sign-in', { email, password: PAGE_PASSWORD })
    expect((await visitor.follow(done)).body).toContain('Now repeat the step.')
    expect((await visitor.post('/auth/security/app')).body).toContain('Set up an authenticator app')
  })

  test('stands before the form that changes the password', async () => {
    const user = await signInOnPage(app)
    await enrolAppOnPage(app, user)
    app.clock.advance(ELEVEN_MINUTES)
    expect((await user.visitor.get('/auth/password')).location).toBe('/auth/step-up?next=%2Fauth%2Fpassword')
    await user.visitor.get('/auth/security')
    const fields = { current: PAGE_PASSWORD, password: 'staple of another stable' }
    expect((await user.visitor.post('/auth/password', fields)).location).toContain('/auth/step-up')
    expect((await enterPassword(app, user.email)).reply.body).toContain('Confirm that it is you')
  })

  test('continues at no other site', async () => {
    const { visitor } = await signInOnPage(app)
    const page = await visitor.get('/auth/step-up?next=%2F%2Fevil.test')
    expect(page.body).not.toContain('evil.test')
  })
})
