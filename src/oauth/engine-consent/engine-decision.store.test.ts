import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { UserId } from '../../base/id.ts'
import {
  type ConsentDecision,
  claimDecision,
  deleteOldDecisions,
  keepDecision,
  releaseDecision,
} from './engine-decision.store.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const at = (ms: number) => new Date(NOW.getTime() + ms)

const [user, other] = [randomUUID(), randomUUID()] as string[] as [UserId, UserId]
const database = await openForFile(createTestDatabase())
const { db } = database
for (const id of [user, other])
  await db
    .insertInto('user')
    .values({ document_id: id, email: `${id}@b.test`, created_at: NOW, updated_at: NOW })
    .execute()

let claims = 0
async function claim(
  given: { id?: string; userId?: UserId; decision?: ConsentDecision; now?: Date; staleBefore?: Date } = {},
) {
  claims += 1
  const { id = `claim-${claims}`, userId = user, decision = 'approve', now = NOW, staleBefore = at(-1) } = given
  const claimed = await claimDecision(db, { authorizationId: id, userId, decision, apiScope: '', now, staleBefore })
  return { id, claimed }
}
const keep = (id: string, clientId: string | null, now: Date) =>
  keepDecision(db, { authorizationId: id, clientId, authorizeUrl: `sealed ${id}`, now })
const exists = async (id: string) => {
  const text = 'select from oauth_engine_decision where authorization_id = $1'
  return (await database.pool.query(text, [id])).rowCount === 1
}

test('one call claims an authorization, until its claim is stale', async () => {
  const { id, claimed } = await claim()
  const row = { userId: user, decision: 'approve', authorizeUrl: null, clientId: null }
  expect(claimed).toEqual({ ...row, isClaimed: true })
  expect((await claim({ id, userId: other, decision: 'deny' })).claimed).toEqual({ ...row, isClaimed: false })
  const taken = { ...row, userId: other, decision: 'deny', isClaimed: true }
  const again = { id, userId: other, decision: 'deny' as const, now: at(5) }
  expect((await claim({ ...again, staleBefore: NOW })).claimed).toEqual(taken)
  // Its time counts from the new claim.
  expect((await claim({ ...again, staleBefore: at(4) })).claimed).toEqual({ ...taken, isClaimed: false })
})

test('an answer is kept for its authorization alone, and is not claimed or released any more', async () => {
  const [{ id }, { id: beside }] = [await claim(), await claim()]
  await keep(id, 'app', at(1))
  const answered = { userId: user, decision: 'approve', authorizeUrl: `sealed ${id}`, clientId: 'app' }
  await releaseDecision(db, { authorizationId: id, claimedAt: NOW })
  expect((await claim({ id, userId: other, staleBefore: at(9) })).claimed).toEqual({ ...answered, isClaimed: false })
  expect((await claim({ id: beside })).claimed).toMatchObject({ authorizeUrl: null, clientId: null })
})

test('a claim is released alone', async () => {
  const [{ id }, { id: beside }] = [await claim(), await claim()]
  await releaseDecision(db, { authorizationId: id, claimedAt: NOW })
  expect([await exists(id), await exists(beside)]).toEqual([false, true])
})

test('a late call does not release the claim of the call that found it stale', async () => {
  const { id } = await claim()
  await claim({ id, now: at(5), staleBefore: NOW })
  await releaseDecision(db, { authorizationId: id, claimedAt: NOW })
  expect(await exists(id)).toBe(true)
})

test('old decisions are deleted, except the last approval of each user and app', async () => {
  await database.pool.query('delete from oauth_engine_decision')
  const make = async (
    clientId: string | null,
    decidedAt: Date | null,
    given: Parameters<typeof claim>[0] = {},
  ): Promise<string> => {
    const { id } = await claim({ now: at(-1), ...given })
    if (decidedAt) await keep(id, clientId, decidedAt)
    return id
  }
  const old = [
    await make('app', at(1)),
    await make('app', at(9), { decision: 'deny' }),
    await make('denied', at(1), { decision: 'deny' }),
    await make(null, at(1)),
    await make('app', null),
  ]
  const kept = [
    await make('app', at(2)),
    await make('app', at(1), { userId: other }),
    await make('other app', at(1)),
    await make('app', at(1), { now: NOW }),
  ]
  expect(await deleteOldDecisions(db, NOW, 2)).toBe(2)
  expect(await deleteOldDecisions(db, NOW, 100)).toBe(3)
  expect(await Promise.all([...old, ...kept].map(exists))).toEqual([...old.map(() => false), ...kept.map(() => true)])
})
