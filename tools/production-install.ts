import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { lstat, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildService } from './release/build-service.ts'

/**
 * Installs the release for production into a temporary directory, without development packages, the pinned Node and the
 * embedded PostgreSQL; prints its size; looks for the built console; and starts it there without a database, to see
 * that every module loads, that the error names the remedy, and that the log needs no package of development. Exits 1 when
 * anything of that fails or the size is over the limit.
 */

/** Megabytes of 1,000,000 bytes on the disk, the release included. */
const LIMIT_MB = 150

const directory = await mkdtemp(join(tmpdir(), 'signalbox production '))
try {
  await buildService(directory)
  installPackages(directory)
  const packages = await measureDisk(join(directory, 'node_modules'))
  const total = await measureDisk(directory)
  console.log(`packages  ${toMegabytes(packages)} MB`)
  console.log(`release   ${toMegabytes(total - packages)} MB`)
  console.log(`total     ${toMegabytes(total)} MB (limit ${LIMIT_MB} MB), without Node and PostgreSQL`)
  if (total > LIMIT_MB * 1e6) throw new Error(`the installation is over ${LIMIT_MB} MB`)
  const { size } = await lstat(join(directory, 'console', 'dist', 'manifest.json'))
  if (size === 0) throw new Error('the installation brings no console')
  console.log('console   built, in console/dist')
  await startWithoutDatabase(directory)
  console.log('start     every module loads; without a database the error names DATABASE_URL')
  logOnTerminal(directory)
  console.log('log       JSON lines on a terminal, too')
} finally {
  await rm(directory, { recursive: true, force: true })
}

function installPackages(cwd: string): void {
  const args = [
    'ci',
    '--omit=dev',
    '--omit=optional',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]
  const { status } = spawnSync('npm', args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} ended with ${status}`)
}

/** Bytes that a folder takes on the disk. Links are not followed. */
async function measureDisk(path: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(path, { recursive: true, withFileTypes: true })) {
    const { blocks } = await lstat(join(entry.parentPath, entry.name))
    bytes += blocks * 512
  }
  return bytes
}

function toMegabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}

/** Logs a line as on a terminal: the package that makes lines pretty is one of development. */
function logOnTerminal(cwd: string): void {
  const program = `
    import { buildLogger } from './src/app/log/logger.js'
    buildLogger({ level: 'info', isTerminal: true }).info('a line')`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd,
    encoding: 'utf8',
  })
  if (status !== 0 || JSON.parse(stderr).msg !== 'a line') throw new Error(`the log ended with ${status}:\n${stderr}`)
}

/** Starts the service as a production without DATABASE_URL does; it must end with the sentence that names the remedy. */
async function startWithoutDatabase(cwd: string): Promise<void> {
  const makeSecret = () => randomBytes(32).toString('base64')
  const env = {
    PATH: process.env.PATH,
    APP_ENV: 'production',
    BASE_URL: 'https://signalbox.example.com',
    SECRET_KEY: makeSecret(),
    SESSION_JWT_SECRET: makeSecret(),
    SSO_HANDSHAKE_SECRET: makeSecret(),
    OAUTH_HOOK_SECRET: makeSecret(),
  }
  const nodeArguments = JSON.parse(await readFile(join(cwd, 'bin', 'node-arguments.json'), 'utf8')) as string[]
  const args = [...nodeArguments, 'src/main.js', 'serve']
  const { status, stderr } = spawnSync(process.execPath, args, { cwd, env, encoding: 'utf8' })
  if (status !== 1 || !stderr.includes('DATABASE_URL is not set'))
    throw new Error(`the start without a database ended with ${status}:\n${stderr}`)
}
