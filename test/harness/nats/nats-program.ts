import { execFile } from 'node:child_process'
import { access, constants, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../../deploy/program.ts'
import { buildCleanEnvironment } from '../process/process.ts'

const run = promisify(execFile)

/** The version that the tests use. Packages of distributions are older than the batches that the log needs (2.12). */
const VERSION = '2.15.2'

/** Limit of a build: a minute of processor time on two cores, and the download of its modules. */
const BUILD_LIMIT_MS = 600_000

/** Holds the built program for every checkout of this user. */
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'signalbox', `nats-server-${VERSION}`)

/**
 * The path of nats-server: `NATS_SERVER_PATH`, else a build in the user's cache, which Go makes once. Undefined where
 * neither exists; then the reason and `instead`, what is checked by other means, are printed.
 */
export async function findNatsServer(instead: string): Promise<string | undefined> {
  const given = process.env.NATS_SERVER_PATH
  if (given) return given
  const built = join(CACHE, 'nats-server')
  if (await isProgram(built)) return built
  const go = findProgram('go', `set NATS_SERVER_PATH to a nats-server ${VERSION}, or install Go; ${instead}`)
  if (!go) return undefined
  await build(go, built)
  return built
}

/** Builds beside the place of the program: two runs at once each move a whole one there. */
async function build(go: string, place: string): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  const folder = await mkdtemp(join(CACHE, 'build-'))
  try {
    await run(go, ['install', `github.com/nats-io/nats-server/v2@v${VERSION}`], {
      cwd: folder,
      env: { ...buildCleanEnvironment(process.env), GOBIN: folder, GOFLAGS: '-mod=mod' },
      timeout: BUILD_LIMIT_MS,
    })
    await rename(join(folder, 'nats-server'), place)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
