import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, chown, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { systemRandom } from '../../../src/base/random.ts'
import { startEmbeddedPostgres } from '../../../src/postgres/embedded/embedded.ts'
import { chooseServerUser, parsePasswd, type ServerUser } from '../../../src/postgres/embedded/embedded-user.ts'
import { findDataRoot } from '../process/data-root.ts'
import { findFreePort } from '../process/port.ts'
import { limit, waitFor } from '../run/wait.ts'

/** A PostgreSQL of one test, as its superuser. */
export interface TestServer extends AsyncDisposable {
  connectionString: string
}

/** A PostgreSQL that this machine can run. */
export interface PresentServer {
  name: string
  /** The folder of its programs, `pg_dump` among them; undefined for the embedded one, which has none. */
  binDir?: string
  start(): Promise<TestServer>
}

/** The folder of the programs of each version in Debian and its derivatives. */
const DEBIAN_DIRECTORY = '/usr/lib/postgresql'

/** Every available PostgreSQL: the embedded one, and the supported ones that the system has installed. */
export async function listPresentServers(): Promise<PresentServer[]> {
  const versions = await readdir(DEBIAN_DIRECTORY).catch(() => [])
  const installed: PresentServer[] = []
  for (const version of versions.filter((name) => Number(name) >= 15).sort()) {
    const binDir = join(DEBIAN_DIRECTORY, version, 'bin')
    const isThere = await access(join(binDir, 'initdb')).then(
      () => true,
      () => false,
    )
    const name = `PostgreSQL ${version} of the system`
    if (isThere) installed.push({ name, binDir, start: () => startInstalled(binDir) })
  }
  return [{ name: 'the embedded PostgreSQL', start: startEmbedded }, ...installed]
}

async function startEmbedded(): Promise<TestServer> {
  const dataDir = await mkdtemp(join(await findDataRoot(), 'signalbox server '))
  const settings = { fsync: 'off' }
  const postgres = await startEmbeddedPostgres({ dataDir, random: systemRandom, log: () => {}, settings })
  return {
    connectionString: postgres.connectionString,
    [Symbol.asyncDispose]: async () => {
      await postgres.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

async function startInstalled(binDir: string): Promise<TestServer> {
  const user = await findUnprivileged()
  const directory = await mkdtemp(join(await findDataRoot(), 'signalbox-server-'))
  await chmod(directory, 0o700)
  if (user) await chown(directory, user.uid, user.gid)
  const data = join(directory, 'data')
  const run = (program: string, args: string[]) =>
    spawn(join(binDir, program), args, {
      cwd: '/',
      env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' },
      stdio: 'ignore',
      ...user,
    })
  const made = run('initdb', ['-D', data, '-U', 'tester', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'])
  const [code] = await limit(once(made, 'exit'), 60_000, 'initdb')
  if (code !== 0) throw new Error(`initdb of ${binDir} ended with ${code}`)
  const port = await findFreePort()
  const listen = ['-h', '127.0.0.1', '-p', String(port), '-k', '']
  const server = run('postgres', ['-D', data, ...listen, '-c', 'fsync=off'])
  const gone = once(server, 'exit')
  const connectionString = `postgres://tester@127.0.0.1:${port}/postgres`
  await waitFor('the server', () => isAnswering(connectionString))
  return {
    connectionString,
    [Symbol.asyncDispose]: async () => {
      server.kill('SIGINT')
      await limit(gone, 60_000, 'the end of the server')
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** The user of the server when this run is root's, which PostgreSQL refuses. */
async function findUnprivileged(): Promise<ServerUser | undefined> {
  const passwd = parsePasswd(await readFile('/etc/passwd', 'utf8'))
  const choice = chooseServerUser({ uid: process.getuid?.(), passwd, clusterOwner: undefined })
  if (choice === 'none') throw new Error('there is no unprivileged user to run PostgreSQL as')
  return choice.user
}

async function isAnswering(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  return client.connect().then(
    async () => {
      await client.end()
      return true
    },
    () => false,
  )
}
