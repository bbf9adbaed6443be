import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { startProcess, type TestProcess } from '../harness/process/process.ts'
import { seedDataDir } from '../harness/process/seeded-data-dir.ts'

const EMAIL = 'admin@signalbox.localhost'
const FIRST = 'the first password of an admin'
const SECOND = 'the second password of an admin'

let directory: string
let env: Record<string, string>
let service: TestProcess
let baseUrl: string

/** A service on its embedded database, and the folder that it holds. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox beside '))
  env = { SIGNALBOX_DATA_DIR: join(directory, 'data'), PORT: '0', LOG_LEVEL: 'warn', SIGNALBOX_ADMIN_PASSWORD: FIRST }
  await seedDataDir(env.SIGNALBOX_DATA_DIR!)
  service = startProcess({ args: [await bundleProgram(), 'serve'], env, cwd: directory })
  const output = await service.waitForOutput(/Stop with Ctrl-C/, 60_000)
  baseUrl = /listens on (http:\/\/\S+) /.exec(`${output}${service.stdout()}`)?.[1] ?? ''
})
afterAll(async () => {
  service?.signal('SIGTERM')
  await service?.ended
  await rm(directory, { recursive: true, force: true })
})

const run = (args: string[], more: Record<string, string> = {}) =>
  runCommand(args, { env: { ...env, ...more }, cwd: directory })

async function signIn(password: string, email = EMAIL) {
  const answer = await fetch(`${baseUrl}/api/v3/auth/login/local`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
  })
  return { status: answer.status, body: (await answer.json()) as { data: { jwt: string } } }
}

test('admin password sets a password beside the running service, which ends the sessions and goes on', async () => {
  const before = await signIn(FIRST)
  expect(before.status).toBe(200)
  const ended = await run(['admin', 'password', '--email', EMAIL], { SIGNALBOX_ADMIN_PASSWORD: SECOND })
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  expect(ended.stdout).toContain(`Password of ${EMAIL} set`)
  const old = { headers: { authorization: `Bearer ${before.body.data.jwt}` } }
  expect((await fetch(`${baseUrl}/api/v3/auth/session`, old)).status).toBe(401)
  expect([(await signIn(FIRST)).status, (await signIn(SECOND)).status]).toEqual([401, 200])
  expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200)
})

test('admin create makes an administrator beside the running service', async () => {
  const email = 'second@example.com'
  expect(await run(['admin', 'create', '--email', email])).toMatchObject({ code: 0, stderr: '' })
  expect((await signIn(FIRST, email)).status).toBe(200)
})

test.each([
  [['migrate'], 'The database was already up to date.'],
  [['migrate', '--plan'], 'No migration would run.'],
  [['catalogue', 'status'], ''],
  [['secrets', 'status'], ''],
  [['oauth', 'rotate-keys'], ''],
])('%j works beside the running service', async (args, words) => {
  const ended = await run(args)
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  expect(ended.stdout).toContain(words)
  expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200)
})

test('doctor examines the database of the running service', async () => {
  const ended = await run(['doctor', '--json'])
  const { areas } = JSON.parse(ended.stdout) as {
    areas: { area: string; status: string; findings: { code: string }[] }[]
  }
  expect(areas.flatMap(({ findings }) => findings.map(({ code }) => code))).not.toContain('database_in_use')
  expect(areas.find(({ area }) => area === 'schema')?.status).toBe('ok')
})
