import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { createTestDatabase } from '../harness/database/database.ts'
import { withDatabaseName } from '../harness/database/database-url.ts'
import { startFakePostgres } from '../harness/database/fake-postgres.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { findDataRoot } from '../harness/process/data-root.ts'
import { startHere } from '../harness/process/local-start.ts'
import { runToEnd, startProcess } from '../harness/process/process.ts'
import { seedDataDir } from '../harness/process/seeded-data-dir.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'

// Whole processes: on a busy machine each start alone may take many seconds.
/** A name over the length limit: it fails on this machine, without a query. */
const UNKNOWN_HOST = `${'x'.repeat(64)}.invalid`

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(await findDataRoot(), 'signalbox refusals '))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/**
 * Runs a command that must fail: exit code 1, no standard output, and these lines on standard error, without a stack. In this
 * process, unless `run` says otherwise.
 */
async function expectRefusal(
  args: string[],
  env: Record<string, string>,
  lines: (string | RegExp)[],
  run: typeof runCommand = runCommand,
): Promise<{ stderr: string }> {
  const ended = await run(args, { env, cwd: directory })
  expect(ended).toMatchObject({ code: 1, signal: null, stdout: '' })
  const said = ended.stderr.trimEnd().split('\n')
  expect(said).toHaveLength(lines.length)
  for (const [index, line] of lines.entries()) expect(said[index]).toMatch(line)
  return ended
}

/** Runs a command in a process of its own: of a start one that refuses before it does anything, and one that has done the most. */
const runProcess: typeof runCommand = async (args, options) =>
  runToEnd({ args: [await bundleProgram(), ...args], ...options })

/** The settings of a service that waits for no database, but for the one that without `SSO_TARGETS` has no effect, which a start warns of. */
function environmentOf(url: string): Record<string, string> {
  const { SSO_HANDSHAKE_SECRET: _, ...rest } = buildServiceEnvironment(url)
  return { ...rest, DATABASE_WAIT_SECONDS: '0' }
}

/** Without the cheap hashes of tests, which production refuses. */
const DEFAULT_HASH = { PASSWORD_HASH_MEMORY: '', PASSWORD_HASH_PASSES: '' }

const production = {
  APP_ENV: 'production',
  BASE_URL: 'https://signalbox.example.com',
  DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
}

describe('the configuration', () => {
  test('an invalid value: the error has the variable and its rule', async () => {
    await expectRefusal(['migrate'], { PORT: 'eighty' }, [/^PORT must be a whole number from 0 to 65535\.$/])
  })

  test('an unknown SIGNALBOX_ variable is an error', async () => {
    await expectRefusal(['migrate'], { SIGNALBOX_DATADIR: '/tmp' }, [
      /^SIGNALBOX_DATADIR is not a setting of Signalbox\./,
    ])
  })

  test('several errors are listed at once, without values', async () => {
    const env = { PORT: '-1', LOG_LEVEL: 'loud', SECRET_KEY: 'too-short-and-secret', SIGNALBOX_ROLE: 'api' }
    const lines = [/^PORT /, /^SECRET_KEY /, /^LOG_LEVEL /, /^SIGNALBOX_ROLE /]
    const { stderr } = await expectRefusal(['serve'], env, lines, runProcess)
    expect(stderr).not.toContain('too-short-and-secret')
  })

  test('production without its secrets: the error names each', async () => {
    const named = ['SECRET_KEY', 'SESSION_JWT_SECRET', 'SSO_HANDSHAKE_SECRET']
    await expectRefusal(
      ['migrate'],
      { ...production, SSO_TARGETS: 'https://app.example.com' },
      named.map((name) => new RegExp(`^${name} is required when APP_ENV is production`)),
    )
  })

  test.each([
    ['without BASE_URL', { BASE_URL: '' }, /^BASE_URL is not set in production\./],
    [
      'with an http: one',
      { BASE_URL: 'http://signalbox.example.com' },
      /^BASE_URL is not an https URL in production\./,
    ],
    ['with a secret of one letter', { SECRET_KEY: 'a'.repeat(32) }, /^SECRET_KEY holds a secret that can be guessed/],
  ])('production %s: the start and doctor name the same setting', async (_what, env, line) => {
    const given = { ...buildServiceEnvironment(production.DATABASE_URL), ...production, ...DEFAULT_HASH, ...env }
    await expectRefusal(['serve'], given, [line])
    const { code, stdout } = await runCommand(['doctor', '--json'], { env: given, cwd: directory })
    expect(code).toBe(1)
    const findings = JSON.parse(stdout).areas.flatMap((area: { findings: unknown[] }) => area.findings)
    expect(findings).toMatchObject([{ severity: 'failure', detail: expect.stringMatching(line) }])
    expect(findings[0].code).not.toBe('setting_invalid')
  })

  test.each([
    ['beside NODE_ENV=production', { NODE_ENV: 'production' }, /Set APP_ENV=production, or take NODE_ENV away/],
    [
      'with a public BASE_URL',
      { BASE_URL: 'https://signalbox.example.com' },
      /Set APP_ENV=production .*, or a BASE_URL/,
    ],
  ])('development %s: the error says what to set', async (_what, env, line) => {
    for (const APP_ENV of ['', 'development']) await expectRefusal(['serve'], { APP_ENV, ...env }, [line])
  })

  test('--demo outside development', async () => {
    const env = environmentOf('postgres://nobody@127.0.0.1:1/none')
    await expectRefusal(['serve', '--demo'], env, [
      /^start \(serve --demo\) creates rows and prints a key, so it needs APP_ENV=development \(it is test\)\.$/,
    ])
  })

  test('--sample outside development', async () => {
    const env = environmentOf('postgres://nobody@127.0.0.1:1/none')
    await expectRefusal(['serve', '--sample'], env, [
      /^--sample adds users and deliveries that never were, so it needs APP_ENV=development \(it is test\)\.$/,
    ])
  })

  test('catalogue sync for another environment than this one', async () => {
    await using database = await createTestDatabase()
    const env = environmentOf(database.connectionString)
    await expectRefusal(['catalogue', 'sync', '--env', 'production'], env, [/^APP_ENV is test, not production\./])
  })
})

describe('the database', () => {
  const cannotReach = /^The database of DATABASE_URL cannot be reached\. Check its host and port, and that it runs\.$/

  test('a port where no server listens', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    for (const args of [['serve'], ['migrate'], ['catalogue', 'status']])
      await expectRefusal(args, environmentOf(`postgres://x@127.0.0.1:${port}/x`), [cannotReach])
  })

  test('a host that does not exist', async () => {
    await expectRefusal(['migrate'], environmentOf(`postgres://x@${UNKNOWN_HOST}/x`), [cannotReach])
  })

  test('a server that accepts the connection and does not answer', async () => {
    await using fake = await startFakePostgres({ kind: 'silent' })
    await expectRefusal(['migrate'], environmentOf(fake.url), [cannotReach])
  })

  test('a database that does not exist', async () => {
    const url = withDatabaseName(inject('databaseServerUrl'), 'never_made')
    await expectRefusal(['migrate'], environmentOf(url), [/^The database named by DATABASE_URL does not exist\./])
  })

  const refusals = [
    {
      code: '28P01',
      message: 'password authentication failed for user "someone"',
      says: /refused the user or password/,
    },
    { code: '28000', message: 'no pg_hba.conf entry', says: /refused the user or password/ },
    { code: '53300', message: 'sorry, too many clients already', says: /has no connection left/ },
    { code: '57P03', message: 'the database system is starting up', says: /is starting up or shutting down/ },
  ]
  test.for(refusals)('the server says $code', async ({ code, message, says }) => {
    await using fake = await startFakePostgres({ kind: 'refuse', code, message })
    await expectRefusal(['migrate'], environmentOf(fake.url), [says])
  })

  test('a wrong password at a real server, when it asks for one', async () => {
    const url = new URL(inject('databaseServerUrl'))
    // A server with trust authentication (as TEST_DATABASE_URL may be) accepts any password, but refuses a role without login.
    url.username = 'pg_monitor'
    url.password = 'wrong'
    await expectRefusal(['migrate'], environmentOf(url.href), [
      /^The database refused the user or password of DATABASE_URL\.$/,
    ])
  })

  test('PostgreSQL 14 is refused, 15 is accepted', async () => {
    await using fake = await startFakePostgres({ kind: 'version', number: 140_019 })
    await expectRefusal(['migrate'], environmentOf(fake.url), [
      /^DATABASE_URL is PostgreSQL 14; Signalbox needs 15 or newer\. \(postgres_too_old: see docs\/operations\.md, postgres_too_old\)$/,
    ])
    await using enough = await startFakePostgres({ kind: 'version', number: 150_000 })
    const { stderr } = await runCommand(['migrate'], { env: environmentOf(enough.url), cwd: directory })
    expect(stderr).not.toContain('needs 15')
  })

  test('a read-only database', async () => {
    await using database = await createTestDatabase({ content: 'empty' })
    const name = new URL(database.connectionString).pathname.slice(1)
    await database.pool.query(`alter database ${name} set default_transaction_read_only = on`)
    await expectRefusal(['migrate'], environmentOf(database.connectionString), [/is read-only or a standby/])
  })
})

describe('the port and the data directory', () => {
  test('a port in use: the error has its number, and no administrator was created', async () => {
    await using database = await createTestDatabase()
    const occupant = createServer()
    await new Promise<void>((resolve) => occupant.listen(0, '127.0.0.1', resolve))
    const { port } = occupant.address() as AddressInfo
    const env = {
      DATABASE_URL: database.connectionString,
      SIGNALBOX_DATA_DIR: join(directory, 'port in use'),
      LOG_LEVEL: 'error',
    }
    const says = new RegExp(`^Port ${port} of 127\\.0\\.0\\.1 is in use: another program listens there\\.`)
    await expectRefusal(['serve'], { ...env, PORT: String(port) }, [says], runProcess)
    await new Promise((resolve) => occupant.close(resolve))
    await using started = startHere({ ...env, PORT: '0' })
    await started.waitForOutput(/Sign in as admin@signalbox\.localhost with the password \S+ \(shown this once\)\./)
  })

  test('a HOST of another machine or of none', async () => {
    await using database = await createTestDatabase()
    const env = { ...environmentOf(database.connectionString), LOG_LEVEL: 'error' }
    await expectRefusal(['serve'], { ...env, HOST: '192.0.2.1' }, [
      /^HOST 192\.0\.2\.1 is not an address of this machine\./,
    ])
    await expectRefusal(['serve'], { ...env, HOST: UNKNOWN_HOST }, [
      /^HOST x+\.invalid is not a name this machine knows\./,
    ])
  })

  test('a data directory that is a file', async () => {
    const file = join(directory, 'a file')
    await writeFile(file, '')
    await expectRefusal(['serve'], { SIGNALBOX_DATA_DIR: file }, [/^SIGNALBOX_DATA_DIR /])
  })

  test('a damaged secrets file is reported and not replaced', async () => {
    const dataDir = await mkdtemp(join(directory, 'damaged '))
    await writeFile(join(dataDir, 'secrets.json'), '{')
    await expectRefusal(['serve'], { SIGNALBOX_DATA_DIR: dataDir }, [
      /^SIGNALBOX_DATA_DIR has a secrets file that cannot be read \(not JSON\)/,
    ])
    expect(await readdir(dataDir)).toEqual(['secrets.json'])
  })

  test('a second start while the first runs', async () => {
    const env = { SIGNALBOX_DATA_DIR: join(directory, 'in use'), PORT: '0', LOG_LEVEL: 'error' }
    await seedDataDir(env.SIGNALBOX_DATA_DIR)
    await using first = startProcess({ args: [await bundleProgram(), 'serve'], env, cwd: directory })
    await first.waitForOutput(/Stop with Ctrl-C/, 60_000)
    await expectRefusal(['serve'], env, [
      new RegExp(`is in use by another running signalbox \\(process ${first.pid}\\)`),
    ])
    first.signal('SIGTERM')
    expect(await first.ended).toEqual({ code: 0, signal: null })
    expect(first.stderr()).toBe('')
  })
})
