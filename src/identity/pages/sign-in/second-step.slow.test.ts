import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import {
  addPasskeyOnPage,
  buildPagePasskey,
  enrolAppOnPage,
  enterPassword,
  readCode,
  readPasskeyOptions,
  signInOnPage,
} from '../../../../test/harness/browser/page-user.ts'
import { buildPageVisitor, PAGE_ENV } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const app = await openForFile(
  createTestApp({ env: { ...PAGE_ENV, AUTH_REDIRECT_ALLOW_LIST: 'https://app.example.test/welcome' } }),
)

/** The last audit entry of an action. */
async function readAudit(action: string) {
  const { rows } = await app.database.pool.query(
    "select outcome, detail->>'reason' as reason from audit_log where action = $1 order by document_id desc limit 1",
    [action],
  )
  return rows[0]
}

describe('the second step of a sign-in', () => {
  test('asks for a code after the right password, and signs in with it', async () => {
    const user = await signInOnPage(app)
    const { secret } = await enrolAppOnPage(app, user)
    const { visitor, reply } = await enterPassword(app, user.email, '?next=%2Fauth%2Fdevices')
    expect([reply.status, reply.body.includes('<h1>Confirm that it is you</h1>')]).toEqual([401, true])
    expect(visitor.cookies.has('signalbox_session')).toBe(false)
    const done = await visitor.post('/auth/second-step', { code: readCode(app, secret) })
    expect([done.status, done.location]).toEqual([303, '/auth/devices'])
    const jwt = visitor.cookies.get('signalbox_session')!.value
    const { body } = await app.callAs(jwt)('GET', '/api/v3/auth/session')
    expect(body.data.session).toMatchObject({ amr: ['pwd', 'otp', 'mfa'], acr: 'aal2' })
    expect(await readAudit('login.factor')).toMatchObject({ outcome: 'success' })
  })

  test('takes a recovery code, once', async () => {
    const user = await signInOnPage(app)
    const { codes } = await enrolAppOnPage(app, user)
    const statuses: number[] = []
    for (let count = 0; count < 2; count += 1) {
      const { visitor } = await enterPassword(app, user.email)
      statuses.push((await visitor.post('/auth/second-step', { code: ` ${codes[0]?.toUpperCase()} ` })).status)
    }
    expect(statuses).toEqual([303, 401])
  })

  test('shows the form again for a wrong code and for none, and audits the reason', async () => {
    const user = await signInOnPage(app)
    const { secret } = await enrolAppOnPage(app, user)
    const { visitor } = await enterPassword(app, user.email)
    const empty = await visitor.post('/auth/second-step', { code: ' ' })
    expect([empty.status, empty.body.includes('Enter the code')]).toEqual([422, true])
    const wrong = await visitor.post('/auth/second-step', { code: '000000' })
    expect([wrong.status, wrong.body.includes('role="alert"')]).toEqual([401, true])
    expect(await readAudit('login.factor')).toEqual({ outcome: 'failure', reason: 'code_wrong' })
    expect((await visitor.post('/auth/second-step', { code: readCode(app, secret) })).status).toBe(303)
  })

  test('begins anew when the challenge is not valid any more', async () => {
    const user = await signInOnPage(app)
    const { secret } = await enrolAppOnPage(app, user)
    const { visitor } = await enterPassword(app, user.email)
    app.clock.advance(6 * 60_000)
    const late = await visitor.post('/auth/second-step', { code: readCode(app, secret) })
    expect([late.status, late.body.includes('<h1>Sign in</h1>')]).toEqual([401, true])
  })

  test('takes a passkey, and returns to the app', async () => {
    const user = await signInOnPage(app)
    const { passkey } = await addPasskeyOnPage(user)
    const target = 'https://app.example.test/welcome'
    const { visitor, reply } = await enterPassword(app, user.email, `?redirect_url=${encodeURIComponent(target)}`)
    const policy = String(reply.headers['content-security-policy'])
    expect(policy).toContain("form-action 'self' https://app.example.test")
    expect(policy).toContain("script-src 'self'")
    const credential = JSON.stringify(passkey.get(readPasskeyOptions(reply)))
    const done = await visitor.post('/auth/second-step', { credential })
    expect([done.status, done.location]).toEqual([303, target])
  })

  test('refuses the passkey of another user and a damaged answer', async () => {
    const user = await signInOnPage(app)
    await addPasskeyOnPage(user)
    const { passkey: foreign } = await addPasskeyOnPage(await signInOnPage(app))
    const { visitor, reply } = await enterPassword(app, user.email)
    const credential = JSON.stringify(foreign.get(readPasskeyOptions(reply)))
    expect((await visitor.post('/auth/second-step', { credential })).status).toBe(401)
    expect(await readAudit('login.factor')).toEqual({ outcome: 'failure', reason: 'passkey_of_other_person' })
    const damaged = await visitor.post('/auth/second-step', { credential: '{"id":1}' })
    expect([damaged.status, damaged.body.includes('Malformed request')]).toEqual([400, true])
  })

  test('is refused from another site', async () => {
    const user = await signInOnPage(app)
    const { secret } = await enrolAppOnPage(app, user)
    const { visitor } = await enterPassword(app, user.email)
    const headers = { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }
    const reply = await visitor.post('/auth/second-step', { code: readCode(app, secret) }, headers)
    expect([reply.status, visitor.cookies.has('signalbox_session')]).toEqual([403, false])
  })
})

describe('a sign-in with a passkey alone', () => {
  const readOptions = async () =>
    (await app.anonymous('POST', '/api/v3/auth/login/passkey/options')).body.data.options as { challenge: string }

  test('needs no address and no password', async () => {
    const user = await signInOnPage(app)
    const { passkey } = await addPasskeyOnPage(user)
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/sign-in?next=%2Fauth%2Fsecurity')
    const credential = JSON.stringify(passkey.get(await readOptions()))
    const done = await visitor.post('/auth/sign-in/passkey', { credential })
    expect([done.status, done.location]).toEqual([303, '/auth/security'])
    expect((await visitor.follow(done)).body).toContain('<strong>Phone</strong>')
    expect(await readAudit('login.passkey')).toMatchObject({ outcome: 'success' })
  })

  test('shows the sign-in page again for an unknown passkey', async () => {
    const visitor = buildPageVisitor(app)
    await visitor.get('/auth/sign-in')
    const credential = JSON.stringify(buildPagePasskey().get(await readOptions()))
    const refused = await visitor.post('/auth/sign-in/passkey', { credential })
    expect([refused.status, refused.body.includes('<h1>Sign in</h1>')]).toEqual([401, true])
    expect(await readAudit('login.passkey')).toEqual({ outcome: 'failure', reason: 'passkey_unknown' })
    expect((await visitor.post('/auth/sign-in/passkey', { credential: '' })).status).toBe(400)
  })
})
