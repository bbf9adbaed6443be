import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'

vi.setConfig({ testTimeout: 60_000 })

const PASSWORD = 'correct horse battery'
const NO_ID = '01990000-0000-7000-8000-000000000000'
const actor = { actor: 'command line', system_user: userInfo().username }

let database: TestDatabase
let directory: string
/** A service on the same database: what a command changes counts there at once. */
let app: TestApp
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox manage '))
  database = await createTestDatabase({ content: 'prepared' })
  app = await createTestApp({ database, env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000' } })
  app.clock.set(Date.now())
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

const run = (...args: string[]) => runCommand(args, { env: buildServiceEnvironment(database.connectionString) })
async function readJson(...args: string[]) {
  const ended = await run(...args, '--json')
  expect(ended, args.join(' ')).toMatchObject({ code: 0, stderr: '' })
  return JSON.parse(ended.stdout)
}
const lastEntry = async (target: string) =>
  (
    await database.pool.query(
      'select action, outcome, "user", account, detail from audit_log where target = $1 order by document_id desc limit 1',
      [target],
    )
  ).rows[0]
const lastEvent = async (id: string) =>
  (
    await database.pool.query(
      'select event, account, url from event_occurrence where resource_id = $1 order by document_id desc limit 1',
      [id],
    )
  ).rows[0]
let count = 0
const email = () => `scripted-${count++}@example.com`
const signIn = (address: string, password = PASSWORD) =>
  app.anonymous('POST', '/api/v3/auth/login/local', { email: address, password })

describe('user', () => {
  test('create, show, list, disable, enable and delete follow each other, with entries and events', async () => {
    const address = email()
    const file = join(directory, 'password')
    await writeFile(file, `${PASSWORD}\n`)
    await chmod(file, 0o600)
    const user = await readJson('user', 'create', '--email', address, '--name', 'Ada', '--password-file', file)
    expect(user).toMatchObject({ email: address, name: 'Ada', has_password: true })
    const id = user.document_id
    expect(await lastEntry(id)).toMatchObject({
      action: 'user.create',
      outcome: 'success',
      user: null,
      detail: { ...actor, command: 'user create' },
    })
    expect(await lastEvent(id)).toMatchObject({ event: 'user.create', url: `/api/v3/identity/user/${id}` })
    const { jwt } = (await signIn(address)).body.data
    expect((await run('user', 'show', address)).stdout).toBe(`${id}  ${address}  active  Ada\n`)
    expect(await readJson('user', 'list', '--filter', `email|eq|${address}`)).toMatchObject([{ document_id: id }])
    expect(await run('user', 'disable', id)).toMatchObject({ code: 0, stdout: `User ${address} disabled.\n` })
    expect((await app.callAs(jwt)('GET', '/api/v3/auth/session')).status).toBe(401)
    expect(await lastEvent(id)).toMatchObject({ event: 'user.disable' })
    expect(await run('user', 'enable', address)).toMatchObject({ code: 0 })
    expect((await signIn(address)).status).toBe(200)
    expect(await readJson('user', 'delete', address)).toMatchObject({ deleted_at: expect.any(String) })
    expect(await lastEvent(id)).toMatchObject({ event: 'user.delete', url: null })
    expect(await run('user', 'show', id)).toMatchObject({ code: 1, stdout: '' })
  })

  test('create gives roles by their names, and refuses an unknown one', async () => {
    const made = await readJson('user', 'create', '--email', email(), '--role', 'administrator', '--role', 'member')
    expect(made.roles).toHaveLength(2)
    expect(await run('user', 'create', '--email', email(), '--role', 'nobody')).toMatchObject({
      code: 1,
      stderr: 'There is no role nobody.\n',
    })
  })

  test('reset-link prints a link that works once, and only there', async () => {
    const address = email()
    const { document_id: id } = await readJson('user', 'create', '--email', address)
    const printed = await run('user', 'reset-link', address)
    const token = /\/auth\/reset\?token=([\w-]{43})\n$/.exec(printed.stdout)?.[1]
    const entry = await lastEntry(id)
    expect(entry).toMatchObject({ action: 'password.forgot', detail: { ...actor, command: 'user reset-link' } })
    expect(JSON.stringify(entry)).not.toContain(token)
    const reset = () => app.anonymous('POST', '/api/v3/auth/password/reset', { token, password: `${PASSWORD} two` })
    expect((await reset()).status).toBe(200)
    expect((await reset()).status).toBe(410)
    expect(await readJson('user', 'reset-link', address)).toMatchObject({ expires_at: expect.any(String) })
    await run('user', 'disable', address)
    expect(await run('user', 'reset-link', address)).toMatchObject({ code: 1, stdout: '' })
  })

  test.each([
    [['user', 'create', '--email', 'nobody'], 'email: must be an e-mail address\n'],
    [['user', 'create', '--email', 'a@example.com', '--name', 'a'.repeat(201)], /^name: /],
    [['user', 'show', 'nobody@example.com'], 'There is no user nobody@example.com.\n'],
    [['user', 'delete', NO_ID], 'There is no user with this id, or it was deleted.\n'],
    [['user', 'list', '--sort', 'password_hash'], /cannot be sorted by/],
    [['user', 'list', '--filter', 'password_hash|eq|x'], /names no field/],
    [['user', 'create', '--email', 'a@example.com', '--password-file', '/nowhere'], /cannot be read/],
  ] as const)('%j is refused with exit code 1 and its reason', async (args, reason) => {
    const ended = await run(...args)
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    if (typeof reason === 'string') expect(ended.stderr).toContain(reason.trim().split(' ')[0])
    else expect(ended.stderr).toMatch(reason)
    expect(ended.stderr).not.toMatch(/\n {4}at /)
  })

  test('a taken address, a guessed password and the last administrator are refused as by the API', async () => {
    const address = email()
    await readJson('user', 'create', '--email', address)
    expect((await run('user', 'create', '--email', address.toUpperCase())).stderr).toBe(
      'Another user has this e-mail address.\n',
    )
    const file = join(directory, 'guessed')
    await writeFile(file, 'password1')
    expect((await run('user', 'create', '--email', email(), '--password-file', file)).code).toBe(1)
    await using alone = await createTestDatabase({ content: 'prepared' })
    const { rows } = await alone.pool.query('select email from "user"')
    const ended = await runCommand(['user', 'delete', rows[0].email], {
      env: buildServiceEnvironment(alone.connectionString),
    })
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('last active administrator') })
  })

  test('what a terminal obeys is written as an escape, and JSON stays JSON', async () => {
    const address = email()
    await database.pool.query(
      `insert into "user" (document_id, email, name, created_at, updated_at) values ($1, $2, $3, now(), now())`,
      [NO_ID, address, 'Ada\u001b[2J\u202e\nuser  forged'],
    )
    const shown = (await run('user', 'show', address)).stdout
    expect(shown).toBe(`${NO_ID}  ${address}  active  Ada\\u001b[2J\\u202e\\nuser  forged\n`)
    expect((await readJson('user', 'show', address)).name).toBe('Ada\u001b[2J\u202e\nuser  forged')
    expect((await run('user', 'show', address, '--json')).stdout).not.toContain('\u001b')
  })
})

test('account create, list, members and delete follow each other, with events of the account', async () => {
  const { document_id: id } = await readJson('account', 'create', '--name', 'Acme Script')
  expect(await lastEvent(id)).toMatchObject({ event: 'account.create', account: id })
  expect(await lastEntry(id)).toMatchObject({ action: 'account.create', account: id, user: null, detail: actor })
  expect((await run('account', 'list', '--filter', 'name|eq|Acme Script')).stdout).toBe(`${id}  Acme Script\n`)
  const { document_id: user, email: address } = await readJson('user', 'create', '--email', email())
  await database.pool.query(
    `insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, now(), now())`,
    [NO_ID, id, user],
  )
  expect((await run('account', 'members', id)).stdout).toBe(`${user}  ${address}\n`)
  expect(await run('account', 'delete', id)).toMatchObject({ code: 0, stdout: 'Account Acme Script deleted.\n' })
  expect(await lastEvent(id)).toMatchObject({ event: 'account.delete', url: null })
  expect(await run('account', 'delete', id)).toMatchObject({ code: 1 })
  expect(await run('account', 'members', id)).toMatchObject({ code: 1 })
  expect((await run('account', 'create', '--name', ' ')).code).toBe(1)
  expect((await run('account', 'delete', 'not-an-id')).code).toBe(1)
})

test('client create and rotate print a secret once, which no list, entry or log has', async () => {
  const created = await run('client', 'create', '--name', 'App', '--redirect-uri', 'https://app.example.com/callback')
  expect(created).toMatchObject({ code: 0, stderr: '' })
  const [, id = '', secret = ''] = /^(\S+) {2}confidential {2}App\nsecret {2}(sbcs_\S+)\n$/.exec(created.stdout) ?? []
  const rotated = await readJson('client', 'rotate', id, '--overlap', '0')
  expect(rotated.client_secret).not.toBe(secret)
  expect(await lastEvent(id)).toMatchObject({ event: 'oauth-client.rotate-secret' })
  const { rows } = await database.pool.query('select detail from audit_log where target = $1', [id])
  const listed = await run('client', 'list', '--json')
  for (const kept of [JSON.stringify(rows), listed.stdout])
    for (const value of [secret, rotated.client_secret]) expect(kept).not.toContain(value)
  expect(await run('client', 'delete', id)).toMatchObject({ code: 0, stdout: 'Client App deleted.\n' })
  expect(await run('client', 'rotate', id)).toMatchObject({ code: 1, stdout: '' })
  expect((await run('client', 'create', '--name', 'App', '--redirect-uri', 'http://app.example.com/')).code).toBe(1)
  expect((await run('client', 'create', '--name', 'App', '--type', 'secret')).code).toBe(1)
  expect((await run('client', 'rotate', id, '--overlap', 'x')).code).toBe(1)
})

test('invite create acts in the name of a user, within its permissions; list and revoke show it', async () => {
  const { document_id: account } = await readJson('account', 'create', '--name', 'Inviting')
  const [root, stranger, guest] = [email(), email(), email()]
  await readJson('user', 'create', '--email', root, '--role', 'administrator')
  await readJson('user', 'create', '--email', stranger)
  const by = (who: string) => ['invite', 'create', '--account', account, '--email', guest, '--by', who]
  expect(await run(...by(stranger))).toMatchObject({ code: 1, stdout: '' })
  await run('user', 'disable', stranger)
  expect((await run(...by(stranger))).stderr).toContain('is disabled')
  expect((await run('invite', 'list', '--account', account, '--limit', 'x')).code).toBe(1)
  const invitation = await readJson(...by(root), '--role', 'account-viewer')
  expect(invitation).toMatchObject({ email: guest, status: 'open' })
  expect(await lastEntry(invitation.document_id)).toMatchObject({ action: 'account-invitation.create', account })
  expect(await lastEvent(invitation.document_id)).toMatchObject({ event: 'account-invitation.create', account })
  expect((await run('invite', 'list', '--account', account)).stdout).toContain(`${guest}  open`)
  const { rows } = await database.pool.query('select count(*)::int as mails from mail_outbox where recipient = $1', [
    guest,
  ])
  expect(rows[0].mails).toBe(1)
  const id = invitation.document_id
  expect(await run('invite', 'revoke', id, '--account', account)).toMatchObject({
    code: 0,
    stdout: `Invitation of ${guest} revoked.\n`,
  })
  expect(await run('invite', 'revoke', id, '--account', account)).toMatchObject({ code: 1 })
  expect(await run('invite', 'list', '--account', NO_ID)).toMatchObject({ code: 1 })
})

test('without its audit entry no command changes anything', async () => {
  await using own = await createTestDatabase({ content: 'prepared' })
  const runOwn = (...args: string[]) => runCommand(args, { env: buildServiceEnvironment(own.connectionString) })
  const { stdout } = await runOwn('user', 'create', '--email', 'kept@example.com', '--json')
  const { document_id: id } = JSON.parse(stdout)
  await own.pool.query(`
    create function refuse_entry() returns trigger language plpgsql as $$ begin raise exception 'no entry'; end $$;
    create trigger refuse_entry before insert on audit_log for each row execute function refuse_entry()`)
  const read = async () =>
    (
      await own.pool.query(`select (select json_agg(u.* order by u.email) from "user" u) as users,
        (select count(*) from account) as accounts, (select count(*) from oauth_client) as clients,
        (select count(*) from proof_token) as links`)
    ).rows
  const before = await read()
  for (const args of [
    ['user', 'create', '--email', 'more@example.com'],
    ['user', 'disable', id],
    ['user', 'delete', id],
    ['user', 'reset-link', id],
    ['account', 'create', '--name', 'More'],
    ['client', 'create', '--name', 'More', '--redirect-uri', 'https://app.example.com/'],
  ])
    expect((await runOwn(...args)).code, args.join(' ')).toBe(1)
  expect(await read()).toEqual(before)
})
