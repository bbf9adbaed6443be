import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { SessionId } from '../../base/id.ts'
import type { Interaction } from './interaction.store.ts'
import { findRestartPath } from './restart.ts'

const database = await openForFile(createTestDatabase())

/** A session whose user authenticated so long after the question. */
async function openSession(afterMs: number): Promise<SessionId> {
  const rows = buildIdentityRows(database.db)
  return rows.session(await rows.user(), { auth_time: madeAfter(afterMs) })
}

/** The query with which a question about these parameters begins again. */
async function restart(params: Interaction['params'], sessionId?: SessionId, page = 'authorize/1') {
  const interaction = {
    ...{ params, returnTo: `https://id.example.test/api/v3/oauth/${page}`, createdAt: MADE_AT },
  } as Interaction
  const path = await findRestartPath(database.db, interaction, sessionId && { sessionId })
  const url = new URL(path, 'https://id.example.test')
  return { path: url.pathname, query: [...url.searchParams].map(([name, value]) => `${name}=${value}`) }
}

test('a request begins again with all its parameters, each of its values, and none that is absent', async () => {
  const params = { client_id: 'app', resource: ['https://a.example', 'https://b.example'], nonce: undefined }
  expect(await restart(params)).toEqual({
    path: '/api/v3/oauth/authorize',
    query: ['client_id=app', 'resource=https://a.example', 'resource=https://b.example'],
  })
})

test('a sign-in is asked for again, unless the user of the session has done so since the question', async () => {
  const params = { client_id: 'app', prompt: 'login select_account consent' }
  const all = ['client_id=app', 'prompt=login select_account consent']
  expect((await restart(params)).query).toEqual(all)
  expect((await restart(params, await openSession(-1_000))).query).toEqual(all)
  expect((await restart(params, await openSession(0))).query).toEqual(['client_id=app', 'prompt=consent'])
  // Otherwise the browser would be asked to sign in for ever.
  for (const prompt of ['login', 'select_account'])
    expect((await restart({ client_id: 'app', prompt }, await openSession(1_000))).query).toEqual(['client_id=app'])
})

test('the seconds count in which a question and a sign-in were made', async () => {
  const query = (afterMs: number) => openSession(afterMs).then((id) => restart({ prompt: 'login' }, id))
  expect((await query(999)).query).toEqual([])
  expect((await query(-1)).query).toEqual(['prompt=login'])
})

test('a device begins again with its code', async () => {
  expect(await restart({ client_id: 'app' }, undefined, 'device/1')).toEqual({
    path: '/api/v3/oauth/device',
    query: [],
  })
})
