import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { AreaReport, Finding } from '../../src/operations/doctor/finding.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'

interface Answer {
  ok: boolean
  version: string
  areas: (Omit<AreaReport, 'findings'> & { findings: (Finding & { page: string })[] })[]
}

/** Runs `signalbox doctor` on its own settings only. */
async function runDoctor(env: Record<string, string>, args: string[] = []) {
  // The proxies of the machine that runs the test are not what is examined.
  const proxies = { HTTP_PROXY: '', HTTPS_PROXY: '', http_proxy: '', https_proxy: '' }
  return runCommand(['doctor', ...args], { env: { ...proxies, ...env } })
}

async function askDoctor(env: Record<string, string>): Promise<Answer & { code: number | null }> {
  const { code, stdout, stderr } = await runDoctor(env, ['--json'])
  expect(stderr).toBe('')
  return { code, ...(JSON.parse(stdout) as Answer) }
}

/** The findings without those about the server of the tests, which is not durable, and about the machine that runs them. */
const listOwn = ({ areas }: Answer) =>
  areas
    .flatMap(({ findings }) => findings)
    .filter(
      ({ code }) =>
        ![
          'database_not_durable',
          'database_loses_commits',
          'name_servers_missing',
          'disk_low',
          'node_outdated',
          'open_files_low',
        ].includes(code),
    )

const buildEnvironment = (database: Pick<TestDatabase, 'connectionString'>) => ({
  ...buildServiceEnvironment(database.connectionString),
  // Among its secrets is that of handshakes, which has no effect without a target.
  SSO_TARGETS: 'https://app.example.com',
})

test('doctor finds a prepared database in order, and exits 1 for the server of the tests, which is not durable', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const answer = await askDoctor(buildEnvironment(database))
  expect(listOwn(answer)).toEqual([])
  expect(answer.areas.find(({ area }) => area === 'disk')!.notes).toEqual([
    expect.stringMatching(/^the database takes \d+\.\d MB, free disk space unknown \(DATABASE_DISK_BYTES\)/),
  ])
  const failures = answer.areas.flatMap(({ findings }) => findings).filter(({ severity }) => severity === 'failure')
  expect(failures[0]).toMatchObject({
    code: 'database_not_durable',
    page: 'docs/guides/doctor.md#database_not_durable',
    remedy: expect.stringContaining('fsync'),
  })
  expect(answer).toMatchObject({ code: 1, ok: false })
  expect(answer.areas.find(({ area }) => area === 'schema')).toMatchObject({ status: 'ok' })
})

test('doctor names a held port, a closed mail server, a wrong key and an older schema, and shows no secret', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  // Started by its own file, by which the command knows it.
  const service = await fixture.start({ root: PROJECT_ROOT })
  await fixture.subscribe(service, receiver)
  const closed = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => closed.once('listening', resolve))
  const { port } = closed.address() as { port: number }
  await new Promise((resolve) => closed.close(resolve))
  const secret = 'another-key-of-32-bytes-or-more-0123456789'
  const env = {
    ...buildEnvironment(fixture.database),
    PORT: new URL(service.url).port,
    SECRET_KEY: secret,
    SMTP_URL: `smtp://user:the-password-of-mail@127.0.0.1:${port}`,
    MAIL_FROM: 'signalbox@example.com',
  }
  const answer = await askDoctor(env)
  expect(listOwn(answer).map(({ code }) => code)).toEqual([
    'key_opens_nothing',
    'port_of_running_service',
    'server_unreachable',
  ])
  const texts = JSON.stringify(answer)
  expect(texts).toContain(`process ${service.pid}`)
  expect(texts).not.toContain(secret)
  expect(texts).not.toContain('the-password-of-mail')

  await fixture.database.pool.query(`delete from schema_migration where name like '0004%'`)
  const { stdout } = await runDoctor({ ...buildEnvironment(fixture.database), PORT: '0' })
  expect(stdout).toMatch(/^schema +warning\n {2}warning schema_behind: 1 migrations .*0004_/m)
  expect(stdout).toMatch(/\n\d+ failures, \d+ warnings\n$/)
})

test('doctor reports a refused configuration and an unreachable database, and what it could not examine', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox doctor '))
  try {
    const refused = await askDoctor({ APP_ENV: 'test', PORT: 'many', SIGNALBOX_DATA_DIR: directory })
    expect(refused.code).toBe(1)
    expect(refused.areas[0]?.findings.map(({ detail }) => detail)).toContainEqual(expect.stringMatching(/^PORT must/))
    expect(refused.areas.slice(1).every(({ status }) => status === 'skipped')).toBe(true)

    const misspelled = ['SIGNALBOX_FOO', 'REALTIME_BUS_SUBJET', 'DATABASE_POOL_SISE', 'BASE_URLL', 'WEBHOOK_CONCURENCY']
    const unknown = await askDoctor({
      ...buildEnvironment({ connectionString: 'postgres://nobody@127.0.0.1:1/none' }),
      ...Object.fromEntries(misspelled.map((name) => [name, 'x'])),
    })
    expect(listOwn(unknown).map(({ code, severity, detail }) => [code, severity, detail.split(' ')[0]])).toEqual(
      misspelled.map((name) => ['setting_unknown', 'failure', name]),
    )

    const unreachable = await askDoctor(buildEnvironment({ connectionString: 'postgres://nobody@127.0.0.1:1/none' }))
    expect(listOwn(unreachable)).toMatchObject([{ code: 'database_unreachable', severity: 'failure' }])
    expect(unreachable.areas.find(({ area }) => area === 'schema')).toMatchObject({ status: 'skipped' })

    // In development before the first start: no database yet, and nothing is created.
    const fresh = await askDoctor({ PORT: '0', SIGNALBOX_DATA_DIR: join(directory, 'data') })
    expect(listOwn(fresh)).toEqual([])
    expect(fresh.areas.find(({ area }) => area === 'database')).toMatchObject({ status: 'skipped' })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
