import { expect, test } from 'vitest'
import { openFlow } from '../../../../test/harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../../../../test/harness/browser/oauth-service.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { hashStateId } from '../../grant/state-id.ts'
import { clearOldAnswers, deleteExpiredState, upsertState } from './state.store.ts'

const fixture = await openForFile(startOauthFixture())
const user = await fixture.user()
const flow = await openFlow(fixture, await fixture.client())

test('what the database holds opens nothing: no code, token, session or interaction id is in it', async () => {
  const browser = openBrowser()
  const begun = await flow.begin(browser, { user, parameters: { prompt: 'consent' } })
  const code = new URL(begun.callback).searchParams.get('code') ?? ''
  const tokens = await flow.redeem(begun)
  const next = await flow.refresh(tokens.refresh_token)
  const { rows } = await fixture.app.database.pool.query('select * from oauth_state')
  const kept = JSON.stringify(rows)
  const cookies = [...browser.cookiesOf(fixture.baseUrl)].filter(
    ([name, value]) => name.startsWith('signalbox_oauth') && value !== '',
  )
  const ids = [
    code,
    tokens.access_token,
    tokens.refresh_token,
    next.refresh_token,
    ...cookies.map(([, value]) => value),
  ]
  expect(cookies.length).toBeGreaterThan(0)
  for (const id of ids) expect(kept).not.toContain(id)
})

test('expired rows are deleted in batches, and no others', async () => {
  const { db } = fixture.app.database
  const now = new Date()
  const row = (id: string, expiresAt: Date) =>
    upsertState(db, {
      model: 'Sample',
      idHash: hashStateId(id),
      payload: {},
      grantId: null,
      consent: null,
      uid: null,
      userCodeHash: null,
      expiresAt,
    })
  for (const id of ['a', 'b', 'c']) await row(id, new Date(now.getTime() - 1))
  await row('d', now)
  expect(await deleteExpiredState(db, now, 2)).toBe(2)
  expect(await deleteExpiredState(db, now, 2)).toBe(1)
  const { rows } = await fixture.app.database.pool.query(
    "select count(*)::int as n from oauth_state where model = 'Sample'",
  )
  expect(rows[0].n).toBe(1)
})

test('the answer to a refresh is kept encrypted, and cleared when it is not repeated any more', async () => {
  const { tokens } = await flow.signIn(openBrowser(), { user, parameters: { prompt: 'consent' } })
  await flow.refresh(tokens.refresh_token)
  const { db, pool } = fixture.app.database
  const read = async () => (await pool.query('select answer from oauth_state where answer is not null')).rows
  expect(JSON.stringify(await read())).not.toContain('access_token')
  await clearOldAnswers(db, new Date(Date.now() + 1000), 100)
  expect(await read()).toEqual([])
})

test('answers of redemptions before an instant are cleared, and no others', async () => {
  const { db, pool } = fixture.app.database
  const before = new Date()
  for (const [id, consumedAt] of [
    ['earlier', new Date(before.getTime() - 1)],
    ['at once', before],
  ] as const) {
    const idHash = hashStateId(id)
    const expiresAt = new Date(before.getTime() + 60_000)
    const facts = { payload: {}, grantId: null, consent: null, uid: null, userCodeHash: null, expiresAt }
    await upsertState(db, { ...facts, model: 'RefreshToken', idHash })
    await pool.query('update oauth_state set consumed_at = $2, answer = $3 where id_hash = $1', [
      idHash,
      consumedAt,
      `answer ${id}`,
    ])
  }
  expect(await clearOldAnswers(db, before, 100)).toBe(1)
  const { rows } = await pool.query('select answer from oauth_state where answer is not null')
  expect(rows).toEqual([{ answer: 'answer at once' }])
})

test('maintenance sweeps the state of the provider', async () => {
  const { pool } = fixture.app.database
  await pool.query("update oauth_state set expires_at = now() - interval '2 hours' where model = 'Session'")
  const report = await fixture.app.app.maintenance.sweep()
  expect(report.oauthState).toBeGreaterThan(0)
  expect(report.oauthKeys).toBe(0)
})
