import { expect, test } from 'vitest'
import { BASE_URL, createSsoApp, OTHER_TARGET, TARGET } from '../../../test/harness/app/sso-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const PATH = '/api/v3/identity/handshake-target'
const DAY_MS = 24 * 60 * 60_000

const sso = await openForFile(createSsoApp({ env: { SSO_TARGETS: `${TARGET},${OTHER_TARGET},${BASE_URL}` } }))

test('the targets are shown with the outcomes of a day by reason, and without a secret', async () => {
  const user = await sso.signIn()
  const token = await sso.mint(user)
  await sso.exchange(token)
  await sso.exchange(token)
  await sso.exchange('no token')
  await sso.app.app.equalEntries.flush()
  const { body, status } = await sso.app.admin('GET', PATH)
  expect(status).toBe(200)
  expect(body.data).toMatchObject({
    targets: [
      { origin: TARGET, needs_handshake: true },
      { origin: OTHER_TARGET, needs_handshake: true },
      { origin: BASE_URL, needs_handshake: false },
    ],
    issuer: BASE_URL,
    token_seconds: 60,
    tolerance_seconds: 5,
    counted_since: new Date(sso.app.clock.now() - DAY_MS).toISOString(),
  })
  const outcomes = body.data.outcomes.map((outcome: Record<string, unknown>) => Object.values(outcome).join(' ')).sort()
  expect(outcomes).toEqual([' failure form 1', `${TARGET} failure replayed 1`, `${TARGET} success  1`])
  expect(Object.keys(body.data)).not.toContain('secrets')
})

test('the targets need a token with handshake-target:find-all', async () => {
  expect((await sso.app.anonymous('GET', PATH)).status).toBe(401)
  const { call } = await sso.app.signInMember()
  expect((await call('GET', PATH)).body.missing).toMatchObject({ permission: 'handshake-target:find-all' })
})
