import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { constants, setPriority } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { buildConsoleReader, CONSOLE_FOLDER } from './console-build.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** Sources of the console. */
export const CONSOLE_SOURCES = [
  'console/src',
  'console/package.json',
  'console/vite.config.ts',
  'console/mantine-styles.ts',
  'packages/client/src',
  'docs/guides/verify',
  'docs/operations.md',
]

const BUILDER = join(ROOT, 'node_modules', 'vite', 'bin', 'vite.js')

/** File with the hash of a build's sources. */
const MARK = 'sources'

/** Result of a build. `no sources`: an installation with a built console, or without one. */
export type ConsoleBuildResult = 'built' | 'unchanged' | 'no sources'

/**
 * Builds the console in a child process with the lowest priority, unless the sources are those of the existing
 * build. The new build replaces the old one atomically. Throws the output of the builder when it fails.
 */
export async function buildConsole({ stop }: { stop?: AbortSignal } = {}): Promise<ConsoleBuildResult> {
  if (!existsSync(join(ROOT, 'console', 'src')) || !existsSync(BUILDER)) return 'no sources'
  const mark = await hashSources()
  if ((await readMark()) === mark) return 'unchanged'
  const made = `${CONSOLE_FOLDER}-${process.pid}`
  const old = `${made}-old`
  try {
    await runBuilder(made, stop)
    await writeFile(join(made, MARK), mark)
    // A rename onto a non-empty folder fails, so the first of several builds stays for its readers.
    const isFirst = await rename(made, CONSOLE_FOLDER).then(
      () => true,
      () => false,
    )
    // Another process may have stored the same build.
    if (isFirst || (await readMark()) === mark) return 'built'
    await rename(CONSOLE_FOLDER, old).catch(() => {})
    await rename(made, CONSOLE_FOLDER).catch(() => {})
    return 'built'
  } finally {
    for (const folder of [made, old]) await rm(folder, { recursive: true, force: true })
  }
}

/** Builds in a running service: a failure is logged, unless the service stops. */
export async function buildConsoleInBackground(logger: Logger, stop: AbortSignal): Promise<void> {
  await buildConsole({ stop }).catch((error: unknown) => {
    if (!stop.aborted) logger.warn({ err: error }, 'console not built: see docs/operations.md, console')
  })
}

/** Warns of an installation without a built console. */
export function warnWithoutConsole(logger: Logger, folder = CONSOLE_FOLDER): void {
  if (buildConsoleReader(folder)() === undefined)
    logger.warn({ folder }, 'console not installed: see docs/operations.md, console')
}

function readMark(): Promise<string> {
  return readFile(join(CONSOLE_FOLDER, MARK), 'utf8').catch(() => '')
}

async function hashSources(): Promise<string> {
  const hash = createHash('sha256')
  for (const source of CONSOLE_SOURCES) {
    const path = join(ROOT, source)
    const names = source.includes('.') ? [''] : (await readdir(path, { recursive: true })).sort()
    for (const name of names) {
      const file = join(path, name)
      const text = await readFile(file).catch(() => undefined)
      if (text) hash.update(`${source} ${name}\n`).update(text)
    }
  }
  return hash.digest('hex')
}

async function runBuilder(outDir: string, stop: AbortSignal | undefined): Promise<void> {
  const builder = spawn(process.execPath, [BUILDER, 'build', 'console', '--outDir', outDir, '--logLevel', 'warn'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(stop && { signal: stop }),
  })
  lowerPriority(builder)
  const output: Buffer[] = []
  for (const stream of [builder.stdout, builder.stderr]) stream.on('data', (bytes: Buffer) => output.push(bytes))
  const [code] = (await once(builder, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the console was not built:\n${Buffer.concat(output)}`)
}

/** The service has priority; if the system does not allow a lower one, the build competes with it. */
function lowerPriority({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW)
  } catch {}
}
