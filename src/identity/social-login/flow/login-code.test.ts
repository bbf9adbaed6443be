import { createHash, randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createSocialApp, MOBILE_APP, redirectUrlOf } from '../../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

let users = 0

const t = await openForFile(createSocialApp())
// Equal refusals of a minute are one audit entry: each test has a minute of its own.
beforeEach(() => t.app.clock.advance(60_000))

const someone = () => {
  users += 1
  return `60${users}`
}

/** A deep link that asked for a code: the code and the verifier of the app. */
async function obtainCode() {
  const sub = someone()
  t.seat('google', { sub })
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const query = { redirect_url: MOBILE_APP, code_challenge: challenge, code_challenge_method: 'S256' }
  const answer = await t.signIn(t.browser(), 'google', query)
  const location = new URL(String(answer.headers.location))
  return { sub, verifier, location, code: location.searchParams.get('code') ?? '' }
}

const exchange = (code: string, verifier: string) =>
  t.app.anonymous('POST', '/api/v3/auth/login/code', { code, code_verifier: verifier })

async function expectRefused(answer: Awaited<ReturnType<typeof exchange>>, reason: string) {
  expect([answer.status, answer.body.code]).toEqual([401, 'social_login_failed'])
  const { body } = await t.app.admin('GET', '/api/v3/audit/log?filters=action|eq|login.code&page_size=1')
  expect(body.data[0]).toMatchObject({ outcome: 'failure', detail: { reason } })
}

const countSessions = async () => (await t.app.database.db.selectFrom('session').select('document_id').execute()).length

describe('the one-time code of a deep link', () => {
  test('takes the place of the tokens, and opens no session before its exchange', async () => {
    const before = await countSessions()
    const { location } = await obtainCode()
    expect([...location.searchParams.keys()]).toEqual(['code'])
    expect(await countSessions()).toBe(before)
  })

  test('is exchanged for the login payload', async () => {
    const { code, verifier, sub } = await obtainCode()
    const answer = await exchange(code, verifier)
    expect(answer.status).toBe(200)
    expect(answer.body.data).toMatchObject({
      is_new_user: true,
      redirect_url: null,
      user: { email: `${sub}@example.com` },
    })
    expect((await t.app.callAs(answer.body.data.jwt)('GET', '/api/v3/auth/session')).status).toBe(200)
    expect(answer.headers['cache-control']).toBe('no-store')
  })

  test('serves once', async () => {
    const { code, verifier } = await obtainCode()
    expect((await exchange(code, verifier)).status).toBe(200)
    await expectRefused(await exchange(code, verifier), 'code_unknown')
  })

  test('serves one of several exchanges at the same time', async () => {
    const { code, verifier } = await obtainCode()
    const answers = await Promise.all(Array.from({ length: 6 }, () => exchange(code, verifier)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401, 401])
  })

  test('is worth nothing without the verifier, and a wrong guess spends it', async () => {
    const { code, verifier } = await obtainCode()
    await expectRefused(await exchange(code, randomBytes(32).toString('base64url')), 'verifier_wrong')
    await expectRefused(await exchange(code, verifier), 'code_unknown')
  })

  test('is not exchanged for its challenge', async () => {
    const { code, verifier } = await obtainCode()
    await expectRefused(
      await exchange(code, createHash('sha256').update(verifier).digest('base64url')),
      'verifier_wrong',
    )
  })

  test('lives 60 seconds', async () => {
    const [early, late] = [await obtainCode(), await obtainCode()]
    t.app.clock.advance(59_000)
    expect((await exchange(early.code, early.verifier)).status).toBe(200)
    t.app.clock.advance(1_000)
    await expectRefused(await exchange(late.code, late.verifier), 'code_expired')
  })

  test('is worth nothing for a user who was disabled meanwhile', async () => {
    const first = await obtainCode()
    const { user } = (await exchange(first.code, first.verifier)).body.data
    const again = await obtainCode()
    await t.app.database.db.updateTable('login_code').set({ user: user.document_id }).execute()
    await t.app.admin('POST', `/api/v3/identity/user/${user.document_id}/disable`)
    await expectRefused(await exchange(again.code, again.verifier), 'code_unknown')
  })

  test('is stored as a hash', async () => {
    const { code } = await obtainCode()
    expect(JSON.stringify(await t.app.database.db.selectFrom('login_code').selectAll().execute())).not.toContain(code)
  })

  test('is not given for a callback that is replayed', async () => {
    t.seat('google', { sub: someone() })
    const browser = t.browser()
    const step = await t.reachCallback(browser, 'google', { redirect_url: MOBILE_APP, code_challenge: 'c'.repeat(43) })
    const [first, second] = [await browser.get(redirectUrlOf(step)), await browser.get(redirectUrlOf(step))]
    expect(new URL(String(first.headers.location)).searchParams.has('code')).toBe(true)
    expect(new URL(String(second.headers.location)).searchParams.get('error')).toBe('social_login_failed')
  })
})
