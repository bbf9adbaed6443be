import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { PROJECT_ROOT, runToEnd } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { PASSWORD } from './people-exports.ts'

/** Settings of the service that people move to. */
const SETTINGS = {
  SOCIAL_GOOGLE_CLIENT_ID: 'client',
  SOCIAL_GOOGLE_CLIENT_SECRET: 'secret',
  SOCIAL_ACME_SSO_CLIENT_ID: 'client',
  SOCIAL_ACME_SSO_ISSUER: 'https://login.acme.example',
  BASE_URL: 'https://id.example.com',
}

function readResults<Ended extends { stdout: string }>(ended: Ended) {
  const lines = ended.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const summary = lines.pop()
  return { ...ended, results: lines, summary }
}

/** A database with a service, and the command that imports people into it: what is imported works there at once. */
export async function openPeopleFixture() {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox people '))
  const database = await createTestDatabase({ content: 'prepared' })
  const env = { RATE_LIMIT_STRICT_PER_MINUTE: '100000', BASE_URL: SETTINGS.BASE_URL }
  const app = await createTestApp({ database, env })
  // A key has no end, and the commands run on the clock of the machine.
  const key = { name: 'test', permissions: ['*:*'] }
  const admin: TestApp['admin'] = app.callAs((await app.admin('POST', '/api/v3/identity/api-key', key)).body.data.key)
  app.clock.set(Date.now())
  let count = 0
  const next = () => {
    count += 1
    return count
  }
  const write = async (content: unknown): Promise<string> => {
    const path = join(folder, `export-${next()}.json`)
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
    return path
  }
  const environment = { ...buildServiceEnvironment(database.connectionString), ...SETTINGS }
  const run = (...args: string[]) => runCommand(['import', ...args], { env: environment })
  const readRow = async (text: string, ...values: unknown[]) => (await database.pool.query(text, values)).rows[0]
  return {
    folder,
    database,
    app,
    admin,
    /** A number that no other call has. */
    next,
    write,
    writeLines: (rows: readonly unknown[]) => write(rows.map((row) => JSON.stringify(row)).join('\n')),
    run,
    /** The results and the counts of a run. */
    readRun: async (...args: string[]) => readResults(await run(...args, '--json')),
    /** The same in a process of its own, which runs beside others. */
    readRunBeside: async (...args: string[]) => {
      const program = [join(PROJECT_ROOT, 'src', 'main.ts'), 'import', ...args, '--json']
      return readResults(await runToEnd({ args: program, env: environment }, 120_000))
    },
    signIn: (email: unknown, password = PASSWORD) =>
      app.anonymous('POST', '/api/v3/auth/login/local', { email, password }),
    /** The first row of a statement. */
    readRow,
    readUser: (email: unknown) => readRow('select * from "user" where email = $1', email),
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export type PeopleFixture = Awaited<ReturnType<typeof openPeopleFixture>>
