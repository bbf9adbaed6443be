import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { inTransaction } from '../../src/postgres/database.ts'
import { statement } from '../../src/postgres/statement.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database.ts'
import { readFunctions, type WrongOrder, watchLockOrder } from '../harness/lock-order.ts'
import { FORMS, findRouteOf, prepareRequest, REQUESTS, startRequestWorld } from './route-requests.ts'

/** Pairs against the order that cannot meet another transaction, each with the reason. */
const KNOWN: Record<string, string> = {
  'account_invitation > role':
    'Roles are kept by shared locks here. Only a change of a role stands in the way, and it waits for no invitation.',
  'oauth_state > api_key':
    'Both are of one person, whose row is locked; the end of an account takes no tokens of apps.',
  'login_throttle > api_key': 'The key is of a person whose row is locked; whoever else ends keys takes no throttle.',
  'factor_challenge > user':
    'The challenge of a sign-in with a passkey names nobody: a removal of factors, which holds the person, leaves it.',
  'login_code > user': 'An end of access, which holds the person, passes over codes that are being redeemed.',
  'login_code > signInIdentity': 'As above; whoever holds an identity waits for no code.',
  'login_code > signInAddress': 'As above.',
}

it('every request of the service takes its locks in the written order', async () => {
  const { world, database } = await startRequestWorld()
  await using _world = world
  const wrong = new Map<string, string>()
  watchLockOrder(database.pool, await readFunctions(database.pool), ({ pair, statement: text }) =>
    wrong.set(pair, text),
  )
  for (const form of Object.keys({ ...REQUESTS, ...FORMS })) {
    const { send } = await prepareRequest(findRouteOf(form), form in FORMS ? FORMS[form] : REQUESTS[form])
    expect((await send()).status, form).toBeLessThan(400)
  }
  expect(Object.fromEntries([...wrong].filter(([pair]) => !(pair in KNOWN)))).toEqual({})
  expect(Object.keys(KNOWN).filter((pair) => !wrong.has(pair))).toEqual([])
}, 120_000)

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
      for (const text of texts) await statement(text)(tx, [])
    })
  const PERSON = 'select from "user" where email = \'nobody\' for no key update'

  test.each([
    ['a person after its session', ['update session set revoked_at = now() where false', PERSON], 'session > user'],
    ['a person after its passkey', ['delete from passkey where false', PERSON], 'passkey > user'],
    [
      'a person after a session that a function of the database locks',
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
      'a person after a table that the order does not name',
      ['update schema_migration set name = name where false', PERSON],
      'schema_migration > user',
    ],
  ])('refuses %s', async (_name, texts, pair) => {
    refused.length = 0
    await expect(run(...texts)).rejects.toThrow('wrong order')
    expect(refused[0]?.pair).toBe(pair)
  })

  test.each([
    ['a session after its person', [PERSON, 'update session set revoked_at = now() where false']],
    [
      'a passkey behind its person, before a session',
      [PERSON, 'delete from passkey where false', 'select revoke_session(gen_random_uuid(), now())'],
    ],
    [
      'a person that it does not wait for',
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
