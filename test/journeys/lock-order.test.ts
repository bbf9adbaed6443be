import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inTransaction, openDatabase } from '../../src/postgres/statement/database.ts'
import { statement } from '../../src/postgres/statement/statement.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { readFunctions, type WrongOrder, watchLockOrder } from '../harness/plan/lock-order.ts'

describe('the watch of the order', () => {
  const refused: WrongOrder[] = []
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase({ content: 'prepared' })
    watchLockOrder(database.pool, await readFunctions(database.pool), (wrong) => {
      refused.push(wrong)
      throw new Error(`locks in the wrong order: ${wrong.pair}`)
    })
  })
  afterAll(() => database[Symbol.asyncDispose]())

  const run = (...texts: string[]) =>
    inTransaction(database.db, async (tx) => {
      for (const text of texts) await statement(text)(tx)
    })
  const PERSON = 'select from "user" where email = \'nobody\' for no key update'

  test.each([
    ['a user after its session', ['update session set revoked_at = now() where false', PERSON], 'session > user'],
    ['a user after its passkey', ['delete from passkey where false', PERSON], 'passkey > user'],
    [
      'a user after a session that a function of the database locks',
      ['select revoke_session(gen_random_uuid(), now())', PERSON],
      'session > user',
    ],
    [
      'a client after the advisory lock of its end',
      [
        'select end_client(gen_random_uuid(), now())',
        'select from oauth_client c join oauth_grant g on g.client = c.document_id where false for update of c',
      ],
      'oauthClient > oauth_client',
    ],
    [
      'a user after a table that the order does not name',
      ['update schema_migration set name = name where false', PERSON],
      'schema_migration > user',
    ],
  ])('refuses %s', async (_name, texts, pair) => {
    refused.length = 0
    await expect(run(...texts)).rejects.toThrow('wrong order')
    expect(refused[0]?.pair).toBe(pair)
  })

  test.each([
    ['a session after its user', [PERSON, 'update session set revoked_at = now() where false']],
    [
      'a passkey behind its user, before a session',
      [PERSON, 'delete from passkey where false', 'select revoke_session(gen_random_uuid(), now())'],
    ],
    [
      'a user that it does not wait for',
      ['select from session limit 0 for update', 'select from "user" limit 0 for update skip locked'],
    ],
  ])('allows %s', async (_name, texts) => {
    await run(...texts)
  })

  test('begins anew with each transaction', async () => {
    await run('update session set revoked_at = now() where false')
    await run(PERSON)
  })
})

describe('the watch of every pool', () => {
  const WRONG = [
    'update session set revoked_at = now() where false',
    'select from "user" where false for no key update',
  ]

  test.each(['signalbox worker', 'signalbox maintenance', 'signalbox reads', 'signalbox doctor'])(
    'refuses another order in a pool of %s, whatever becomes of the error',
    async (applicationName) => {
      await using database = await createTestDatabase({ content: 'prepared' })
      const { connectionString } = database
      const opened = openDatabase({ connectionString, size: 1, applicationName, onError: () => {} })
      try {
        const work = inTransaction(opened.db, async (tx) => {
          for (const text of WRONG) await statement(text)(tx)
        })
        await expect(work).rejects.toThrow(
          'locks in the wrong order, session > user: see src/postgres/statement/locks.ts',
        )
        // Else the test fails at its end, as any other would.
        expect(globalThis.lockWatch?.refused.splice(0).map(({ pair }) => pair)).toEqual(['session > user'])
      } finally {
        await opened.close()
      }
    },
  )

  test('leaves alone what a test sends by itself', async () => {
    await using database = await createTestDatabase({ content: 'prepared' })
    const client = await database.pool.connect()
    try {
      await client.query('begin')
      for (const text of WRONG) await client.query(text)
      await client.query('rollback')
    } finally {
      client.release()
    }
  })
})
