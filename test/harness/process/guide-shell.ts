import { cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isProcessAlive } from '../../../src/postgres/embedded/embedded-lock.ts'
import { waitFor } from '../run/wait.ts'
import { bundleProgram } from './bundled-program.ts'
import { findDataRoot } from './data-root.ts'
import { type LocalStart, startHere } from './local-start.ts'
import { PROJECT_ROOT, startProcess, type TestProcess } from './process.ts'
import { seedDataDir } from './seeded-data-dir.ts'

/** A fenced block of a page. */
export interface Block {
  language: string
  text: string
}

/** The fenced blocks of a page, in their order. */
export function listBlocks(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({
    language,
    text,
  }))
}

/** A shell in a folder that stands for the checkout: its `bin` is the one of this repository, as are its packages, its `.signalbox` is its own. */
export interface GuideShell extends AsyncDisposable {
  checkout: string
  dataDir: string
  /** Runs commands as they are, and waits for their end. Returns what they printed; rejects unless the last one succeeds. */
  run(commands: string): Promise<string>
  /** Gives it `npx signalbox` of an installed package: a start takes half the work of one from the sources. */
  install(): Promise<void>
  /** Waits for output of a command in the background. */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray>
}

/**
 * Starts the service with its demonstration, as `npm start` does (test/command/start.test.ts), for the commands of a shell, and
 * waits until it is ready. Stops it at the end.
 */
export async function startGuideService(shell: GuideShell, env: Record<string, string>): Promise<LocalStart> {
  const service = startHere({ SIGNALBOX_DATA_DIR: shell.dataDir, ...env }, { demo: true })
  try {
    await service.waitForOutput(/Stop with Ctrl-C\./)
    return service
  } catch (error) {
    await service.stop().catch(() => {})
    throw error
  }
}

/**
 * Opens the shell in the checkout, with an empty environment (`env -i`) but for `PATH`, `HOME` and `env`: a reader of a guide
 * has set nothing, and what this run has set must not hide what the guide forgot.
 */
export async function openGuideShell(env: Record<string, string> = {}): Promise<GuideShell> {
  const folder = await mkdtemp(join(await findDataRoot(), 'signalbox-guide-'))
  const checkout = join(folder, 'checkout')
  await mkdir(checkout)
  for (const name of ['bin', 'examples', 'node_modules', 'package.json', 'packages'])
    await symlink(join(PROJECT_ROOT, name), join(checkout, name))
  const dataDir = join(checkout, '.signalbox')
  // A guide begins with `npm start`, whose first run in an empty folder has its own test.
  await seedDataDir(dataDir)
  const given = { PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`, HOME: folder, ...env }
  const shell: TestProcess = startProcess({
    command: '/usr/bin/env',
    args: ['-i', ...Object.entries(given).map(([name, value]) => `${name}=${value}`), '/bin/sh'],
    cwd: checkout,
    isGroup: true,
  })
  let count = 0
  const run: GuideShell['run'] = async (commands) => {
    count += 1
    const before = shell.stdout().length
    shell.type(`${commands}\necho "commands ${count} ended with $?"\n`)
    const [, code] = await shell.waitForOutput(new RegExp(`commands ${count} ended with (\\d+)`))
    const printed = shell.stdout().slice(before)
    if (code !== '0') throw new Error(`${commands}\nended with ${code}:\n${printed}\n${shell.stderr()}`)
    return printed
  }
  return {
    checkout,
    dataDir,
    run,
    install: async () => {
      const launcher = await installProgram(join(folder, 'installed'))
      await run(`npx() { shift; node "${launcher}" "$@"; }`)
    },
    waitForOutput: (pattern) => shell.waitForOutput(pattern),
    [Symbol.asyncDispose]: async () => {
      const postmaster = await findPostmaster(dataDir)
      shell.signal('SIGKILL', 'group')
      await shell.ended
      // That of a service which ended with the shell ends by itself a moment later, and writes until then.
      if (postmaster !== undefined) await waitFor('the end of PostgreSQL', () => !isProcessAlive(postmaster))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Makes a package in a folder as a release lays it out, with the program in one file. Returns its launcher. */
async function installProgram(folder: string): Promise<string> {
  await cp(join(PROJECT_ROOT, 'bin'), join(folder, 'bin'), { recursive: true })
  await mkdir(join(folder, 'src'))
  await symlink(await bundleProgram(), join(folder, 'src', 'main.js'))
  for (const name of ['node_modules', 'package.json']) await symlink(join(PROJECT_ROOT, name), join(folder, name))
  return join(folder, 'bin', 'signalbox.mjs')
}

/** The pid of the embedded PostgreSQL that runs on a data directory. */
async function findPostmaster(dataDir: string): Promise<number | undefined> {
  const text = await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text.split('\n')[0])
}
