import { userInfo } from 'node:os'
import { expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'

const EMAIL = 'operator@example.com'
const actor = { actor: 'command line', system_user: userInfo().username }

async function run(database: TestDatabase, args: string[], env: Record<string, string> = {}) {
  const ended = await runCommand(args, {
    env: {
      ...buildServiceEnvironment(database.connectionString),
      SIGNALBOX_ADMIN_PASSWORD: 'correct horse battery',
      ...env,
    },
  })
  return ended
}

const listEntries = async ({ pool }: TestDatabase) =>
  (await pool.query('select action, outcome, "user", target, detail from audit_log order by created_at, document_id'))
    .rows
const listEvents = async ({ pool }: TestDatabase) =>
  (await pool.query('select event as type, resource_id, url from event_occurrence order by created_at, document_id'))
    .rows

test('each command that changes power leaves an audit entry with the user of the system, and an event', async () => {
  await using database = await createTestDatabase()
  for (const args of [
    ['admin', 'create', '--email', EMAIL],
    ['admin', 'password', '--email', EMAIL, '--keep-api-keys'],
    ['oauth', 'rotate-keys', '--now'],
  ])
    expect(await run(database, args)).toMatchObject({ code: 0 })
  const { rows } = await database.pool.query('select document_id as id from "user" where email = $1', [EMAIL])
  const { id } = rows[0]
  const entries = await listEntries(database)
  expect(entries).toMatchObject([
    {
      action: 'user.create',
      outcome: 'success',
      user: null,
      target: id,
      detail: { ...actor, command: 'admin create' },
    },
    {
      action: 'user.update',
      target: id,
      detail: { ...actor, command: 'admin password', members: ['password'], keep_api_keys: true },
    },
    {
      action: 'oauth-signing-key.rotate',
      target: null,
      detail: { ...actor, is_urgent: true, kids: expect.any(Array) },
    },
  ])
  expect(JSON.stringify(entries)).not.toContain('correct horse')
  const url = `/api/v3/identity/user/${id}`
  expect(await listEvents(database)).toEqual([
    { type: 'user.create', resource_id: id, url },
    { type: 'user.update', resource_id: id, url },
    { type: 'oauth-signing-key.rotate', resource_id: null, url: null },
  ])
})

test('without its audit entry the change of a command does not happen', async () => {
  await using database = await createTestDatabase()
  expect(await run(database, ['admin', 'create', '--email', EMAIL])).toMatchObject({ code: 0 })
  const readState = async () => {
    const users = await database.pool.query('select email, password_hash from "user" order by email')
    const keys = await database.pool.query('select kid from oauth_signing_key order by kid')
    return [users.rows, keys.rows]
  }
  const before = await readState()
  await database.pool.query(`
    create function refuse_entry() returns trigger language plpgsql as $$ begin raise exception 'no entry'; end $$;
    create trigger refuse_entry before insert on audit_log for each row execute function refuse_entry()`)
  for (const args of [
    ['admin', 'create', '--email', 'another@example.com'],
    ['admin', 'password', '--email', EMAIL],
    ['oauth', 'rotate-keys'],
  ])
    expect(
      (await run(database, args, { SIGNALBOX_ADMIN_PASSWORD: 'another good password' })).code,
      args.join(' '),
    ).toBe(1)
  expect(await readState()).toEqual(before)
})

test('with the event queue off a command leaves its audit entry alone', async () => {
  await using database = await createTestDatabase()
  await run(database, ['admin', 'create', '--email', EMAIL], { ENABLE_API_EVENT_QUEUE: 'false' })
  expect(await listEntries(database)).toHaveLength(1)
  expect(await listEvents(database)).toEqual([])
})

test('a refused command leaves nothing', async () => {
  await using database = await createTestDatabase()
  expect(await run(database, ['admin', 'password', '--email', 'nobody@example.com'])).toMatchObject({ code: 1 })
  expect(await listEntries(database)).toEqual([])
})
