import { describe, expect, test } from 'vitest'
import { buildIdentityApp } from '../../../../test/harness/app/identity-app.ts'
import { testPasswords } from '../../../../test/harness/app/small-hash.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { systemRandom } from '../../../base/random.ts'
import { Problem } from '../../../http/problem/problem.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { isResetLink, makeResetLink, prepareReset, RESET_LIFETIME_MS, resetByLink } from './password-reset.ts'

const NEW = 'another horse battery'

const app = await openForFile(buildIdentityApp())

let count = 0
const now = () => new Date(app.clock.now())
const createUser = async () => app.user(`forgetful-${count++}`, [], 'correct horse battery')
const makeLink = ({ user }: Awaited<ReturnType<typeof createUser>>) =>
  inTransaction(app.db, (tx) =>
    makeResetLink({ random: systemRandom, baseUrl: () => 'https://login.example.com' }, tx, {
      ...{ userId: user.id, now: now() },
    }),
  )
const tokenOf = (url: string) => new URL(url).searchParams.get('token')!
const prepare = (token: string, password = NEW) =>
  prepareReset({ passwords: testPasswords }, app.db, { token, password, now: now() })
const finish = async (token: string, { keepApiKeys = false } = {}) => {
  const prepared = await prepare(token)
  return inTransaction(app.db, (tx) => resetByLink(tx, { token, prepared, keepApiKeys, now: now() }))
}

describe('a link that an operator makes', () => {
  test('sets a new password once, within the hour', async () => {
    const user = await createUser()
    const { url, expiresAt } = (await makeLink(user))!
    expect(url).toMatch(/^https:\/\/login\.example\.com\/auth\/reset\?token=[\w-]{43}$/)
    expect(expiresAt.getTime()).toBe(app.clock.now() + RESET_LIFETIME_MS)
    app.clock.advance(RESET_LIFETIME_MS - 1)
    const token = tokenOf(url)
    expect(await isResetLink(app.db, { token, now: now() })).toBe(true)
    const done = await finish(token)
    expect(done).toMatchObject({ userId: user.user.id, ended: { sessions: 1, apiKeys: 0 } })
    expect('passwordHash' in done && (await testPasswords.isCorrect(NEW, done.passwordHash))).toBe(true)
    expect(await isResetLink(app.db, { token, now: now() })).toBe(false)
    const again = await finish(token)
    expect(again).toEqual({ problem: expect.any(Problem) })
  })

  test('is none at the hour, and of a user who is disabled there is none', async () => {
    const user = await createUser()
    const token = tokenOf((await makeLink(user))!.url)
    app.clock.advance(RESET_LIFETIME_MS)
    expect(await isResetLink(app.db, { token, now: now() })).toBe(false)
    expect(await prepare(token)).toEqual({ kind: 'invalid' })
    await app.db.updateTable('user').set({ is_actived: false }).where('document_id', '=', user.user.id).execute()
    expect(await makeLink(user)).toBeUndefined()
  })

  test('is made however many there were: no limit counts it', async () => {
    const user = await createUser()
    for (let made = 0; made < 5; made += 1) expect(await makeLink(user)).toBeDefined()
  })
})

test('a reset ends API keys unless they are kept, and says how many', async () => {
  const user = await createUser()
  const add = () =>
    app.call('POST', '/api/v3/identity/api-key', {
      ...{ token: user.token, body: { name: 'key', permissions: ['realtime:auth'] } },
    })
  const { key } = (await add()).body.data
  const statusOf = async () => (await app.call('GET', '/api/v3/auth/session', { token: key })).status
  const kept = await finish(tokenOf((await makeLink(user))!.url), { keepApiKeys: true })
  expect(kept).toMatchObject({ ended: { sessions: 1, apiKeys: 0 } })
  expect(await statusOf()).toBe(200)
  const ended = await finish(tokenOf((await makeLink(user))!.url))
  expect(ended).toMatchObject({ ended: { sessions: 0, apiKeys: 1 } })
  expect(await statusOf()).toBe(401)
})

test('a reset keeps its link for another password when the first breaks a rule', async () => {
  const user = await createUser()
  const token = tokenOf((await makeLink(user))!.url)
  await expect(prepare(token, 'short')).rejects.toMatchObject({ code: 'validation_failed' })
  expect(await prepare(token)).toMatchObject({ kind: 'ready' })
})
