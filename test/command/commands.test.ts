import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../harness/database/database.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { openCompiledCopy } from '../harness/process/compiled-copy.ts'
import { startLocalService } from '../harness/process/local-service.ts'
import { PROJECT_ROOT, runToEnd, startProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment, callService } from '../harness/process/service-process.ts'

// Whole processes: on a busy machine each start alone may take many seconds.
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox commands '))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Runs a command in a process of its own. */
const run = async (args: string[], env: Record<string, string>, main?: string) =>
  runToEnd({ args: [main ?? (await bundleProgram()), ...args], env, cwd: directory })

/** Runs a command in this process. */
const runHere = (args: string[], env: Record<string, string>) => runCommand(args, { env, cwd: directory })

describe('migrate', () => {
  test('runs every migration once and names it, also with a repeated and a concurrent run', async () => {
    await using database = await createTestDatabase({ content: 'empty' })
    const env = buildServiceEnvironment(database.connectionString)
    const plan = await runHere(['migrate', '--plan'], env)
    expect(plan.stdout).toMatch(/^(?:(?:not )?additive +\d{4}_\w+\n)+The database is new: no release runs on it\.\n$/)
    const both = await Promise.all([run(['migrate'], env), run(['migrate'], env)])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    const ran = both.flatMap(({ stdout }) => [...stdout.matchAll(/^ran (\S+)$/gm)].map(([, name]) => name))
    expect(ran.length).toBeGreaterThan(1)
    expect(new Set(ran).size).toBe(ran.length)
    expect(await runHere(['migrate'], env)).toEqual({
      code: 0,
      signal: null,
      stdout: 'The database was already up to date.\n',
      stderr: '',
    })
  })

  test('refuses a database of a newer Signalbox, and one whose migration was edited', async () => {
    await using database = await createTestDatabase()
    const env = buildServiceEnvironment(database.connectionString)
    await database.pool.query(`insert into schema_migration values ('9999_later', 'x', now(), false)`)
    const newer = await runHere(['migrate'], env)
    expect(newer).toMatchObject({ code: 1, stdout: '' })
    expect(newer.stderr).toMatch(
      /^The database has migration 9999_later, .*Run the newer release,.*\(schema_ahead: see .*\)\n$/,
    )
    await database.pool.query(`delete from schema_migration where name = '9999_later'`)
    await database.pool.query(`update schema_migration set hash = 'edited' where name like '0001%'`)
    const edited = await runHere(['migrate'], env)
    expect(edited).toMatchObject({ code: 1, stdout: '' })
    expect(edited.stderr).toMatch(
      /^Migration 0001_\w+ was edited after it ran\. Restore the file; put changes into a new one\. \(migration_edited: see .*\)\n$/,
    )
  })
})

describe('catalogue', () => {
  test('status and sync compare the event table with the code', async () => {
    await using database = await createTestDatabase()
    const env = { ...buildServiceEnvironment(database.connectionString), APP_ENV: 'certification' }
    const before = await runHere(['catalogue', 'status'], env)
    expect(before).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(before.stdout)).toMatchObject({
      generated_count: expect.any(Number),
      synced_count: expect.any(Number),
      in_sync: false,
    })
    const synced = await runHere(['catalogue', 'sync', '--env', 'certification'], env)
    expect(synced).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(synced.stdout)).toMatchObject({ in_sync: true })
    expect(JSON.parse((await runHere(['catalogue', 'status'], env)).stdout)).toMatchObject({ in_sync: true })
  })

  test('generate, check: the files match after generating, and a changed file is a diff with exit 1', async () => {
    // In a copy, because a test must not write files of the repository.
    const copy = join(directory, 'copy')
    const packages = ['packages/webhooks/src', 'packages/realtime/src']
    for (const part of ['src', 'migrations', 'package.json', 'docs/events.md', ...packages])
      await cp(join(PROJECT_ROOT, part), join(copy, part), { recursive: true })
    await symlink(join(PROJECT_ROOT, 'node_modules'), join(copy, 'node_modules'))
    const main = join(copy, 'src', 'main.ts')
    const { env, keep } = await openCompiledCopy(copy, 'catalogue-copy')
    const generated = await run(['catalogue', 'generate'], env, main)
    expect(generated).toMatchObject({ code: 0, stderr: '' })
    expect(generated.stdout).toContain('wrote catalogue.json\n')
    expect(await run(['catalogue', 'check'], env, main)).toMatchObject({
      code: 0,
      stdout: 'The committed catalogue matches the route tree.\n',
    })
    const file = join(copy, 'catalogue.json')
    await writeFile(file, (await readFile(file, 'utf8')).replaceAll('contract.update', 'contract.altered'))
    const drifted = await run(['catalogue', 'check'], env, main)
    expect(drifted.code).toBe(1)
    expect(drifted.stdout).toMatch(/^- .*contract\.altered/m)
    expect(drifted.stdout).toMatch(/^\+ .*contract\.update/m)
    expect(drifted.stderr).toBe(
      'The committed catalogue differs from the route tree. Run: signalbox catalogue generate\n',
    )
    await keep()
  })
})

/** Runs a command at a terminal of its own (`script` of util-linux, or of BSD and macOS). */
async function startAtTerminal(args: string[], env: Record<string, string>) {
  const command = [process.execPath, await bundleProgram(), ...args]
  const quoted = command.map((part) => `'${part}'`).join(' ')
  const scriptArgs = process.platform === 'linux' ? ['-qec', quoted, '/dev/null'] : ['-q', '/dev/null', ...command]
  return startProcess({ command: 'script', args: scriptArgs, env, cwd: directory })
}

describe('admin', () => {
  const email = 'first@example.com'
  const signIn = (url: string, password: string) =>
    callService({ url }, { method: 'POST', path: '/api/v3/auth/login/local', body: { email, password } })

  test('create and password read the variable or a hidden prompt, and only the new password is valid', async () => {
    await using database = await createTestDatabase()
    const env = buildServiceEnvironment(database.connectionString)
    const given = { ...env, SIGNALBOX_ADMIN_PASSWORD: 'from the variable' }
    expect(await run(['admin', 'create', '--email', email], given)).toEqual({
      code: 0,
      signal: null,
      stdout: `Administrator ${email} created.\n`,
      stderr: '',
    })
    const readHash = async () => (await database.pool.query('select password_hash from "user"')).rows[0].password_hash
    expect(await readHash()).toMatch(/^\$argon2id\$v=19\$m=64,t=1,/)
    const again = await runHere(['admin', 'create', '--email', email], given)
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toMatch(/^A user with the e-mail address first@example\.com exists already\..*\n$/)

    await using service = await startLocalService({ databaseUrl: database.connectionString, token: '' })
    const before = await signIn(service.url, 'from the variable')
    expect(before.status).toBe(200)
    const key = await callService(
      { url: service.url, token: before.body.data.jwt },
      { method: 'POST', path: '/api/v3/identity/api-key', body: { name: 'ci', permissions: ['user:find-all'] } },
    )
    const useKey = () =>
      callService({ url: service.url, token: key.body.data.key }, { method: 'GET', path: '/api/v3/auth/session' })
    const costly = { ...given, PASSWORD_HASH_PASSES: '2' }
    expect(await runHere(['admin', 'password', '--email', email, '--keep-api-keys'], costly)).toMatchObject({
      code: 0,
      stdout: `Password of ${email} set; all sessions ended. API keys kept.\n`,
    })
    expect(await readHash()).toMatch(/^\$argon2id\$v=19\$m=64,t=2,/)
    expect((await useKey()).status).toBe(200)
    await using terminal = await startAtTerminal(['admin', 'password', '--email', email], env)
    await terminal.waitForOutput(/Password: /)
    terminal.type('typed unseen\r')
    expect(await terminal.ended).toMatchObject({ code: 0 })
    expect(terminal.stdout()).toContain(`Password of ${email} set; all sessions ended. All API keys revoked.`)
    expect((await useKey()).status).toBe(401)
    expect(terminal.stdout()).not.toContain('typed unseen')
    expect((await signIn(service.url, 'typed unseen')).status).toBe(200)
    expect((await signIn(service.url, 'from the variable')).status).toBe(401)
    const old = await callService(
      { url: service.url, token: before.body.data.jwt },
      { method: 'GET', path: '/api/v3/auth/session' },
    )
    expect(old.status).toBe(401)
  })

  test('Ctrl-C at the prompt changes nothing and is an orderly error; without a terminal the error names the variable', async () => {
    await using database = await createTestDatabase()
    const env = buildServiceEnvironment(database.connectionString)
    await using terminal = await startAtTerminal(['admin', 'create', '--email', email], env)
    await terminal.waitForOutput(/Password: /)
    terminal.type('half\u0003')
    expect(await terminal.ended).toMatchObject({ code: 1 })
    expect(terminal.stdout()).toContain('No password was entered. Nothing was changed.')
    expect(terminal.stdout()).not.toContain('    at ')
    expect(await run(['admin', 'create', '--email', email], env)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'There is no terminal for a password prompt. Set SIGNALBOX_ADMIN_PASSWORD.\n',
    })
    const { rows } = await database.pool.query('select 1 from "user"')
    expect(rows).toEqual([])
  })

  test('an invalid address and an unknown user are errors', async () => {
    await using database = await createTestDatabase()
    const env = { ...buildServiceEnvironment(database.connectionString), SIGNALBOX_ADMIN_PASSWORD: 'long enough' }
    expect(await runHere(['admin', 'create', '--email', 'nobody'], env)).toMatchObject({
      code: 1,
      stderr: 'The e-mail address is not valid. Write it as name@example.com.\n',
    })
    expect(await runHere(['admin', 'password', '--email', 'nobody@example.com'], env)).toMatchObject({
      code: 1,
      stderr: 'There is no user with the e-mail address nobody@example.com.\n',
    })
  })
})
