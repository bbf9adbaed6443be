import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, madeAfter } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { findSession } from '../../identity/session/session.store.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { deleteEndedGrants, endClientWithNext, endGrantWithNext, endSessionsOfGrant } from './exchange.store.ts'

const database = await openForFile(createTestDatabase())

test('grants that ended before an instant are forgotten in batches, the oldest first, and no others', async () => {
  const now = new Date('2026-09-11T12:00:00.000Z')
  for (const ms of [-1, -3, -2, 0])
    await database.pool.query('insert into oauth_ended_grant (grant_id, ended_at) values ($1, $2)', [
      `${ms}`,
      new Date(now.getTime() + ms),
    ])
  const read = async () =>
    (await database.pool.query('select grant_id from oauth_ended_grant order by ended_at')).rows.map(
      (row) => row.grant_id,
    )
  expect(await deleteEndedGrants(database.db, now, 2)).toBe(2)
  expect(await read()).toEqual(['-1', '0'])
  expect(await deleteEndedGrants(database.db, now, 2)).toBe(1)
  expect(await read()).toEqual(['0'])
})

test('the sessions of an app end with its client or its grant, and no others do', async () => {
  const { db } = database
  const rows = buildIdentityRows(db)
  const [user, client, other] = [await rows.user(), randomUUID(), randomUUID()]
  const ofApp = (client_id: string, grant_id: string) => rows.session(user, { client_id, grant_id, scope: 'openid' })
  const sessions = [
    await ofApp(client, 'a'),
    await ofApp(client, 'b'),
    await ofApp(other, 'c'),
    await rows.session(user),
  ]
  const act = async (end: (tx: Database) => Promise<unknown>) => {
    await inTransaction(db, async (tx) => {
      await end(tx)
      // It is sent with the next statement.
      await findSession(tx, { id: sessions[0]! })
    })
    return Promise.all(sessions.map(async (id) => (await findSession(db, { id }))?.revokedAt?.getTime()))
  }
  const [first, second, third] = [madeAfter(1), madeAfter(2), madeAfter(3)]
  const none = undefined
  expect(await act((tx) => endGrantWithNext(tx, { grantId: 'a', now: first }))).toEqual([
    first.getTime(),
    none,
    none,
    none,
  ])
  expect(await act((tx) => endClientWithNext(tx, { clientId: client, now: second }))).toEqual([
    ...[first.getTime(), second.getTime(), none, none],
  ])
  expect(await act((tx) => endSessionsOfGrant(tx, { grantId: 'c', isFinal: false, now: third }))).toEqual([
    ...[first.getTime(), second.getTime(), third.getTime(), none],
  ])
})
