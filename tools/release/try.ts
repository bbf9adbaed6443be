import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { findFreePort, startProgram } from '../running-service.ts'
import { buildService } from './build-service.ts'
import { pack } from './pack.ts'
import { tryNextTemplate } from './try-next.ts'

/**
 * Packs the service and runs `npx ./signalbox-<version>.tgz start` in an empty folder with a bare environment, as a stranger
 * runs `npx signalbox start`: npm installs the tarball with its packages, the demonstration delivers, SIGTERM stops it.
 * Then it builds a project of the template for Next.js, whose framework the checkout does not install.
 * Where the registry of npm cannot be reached, a sentence says that nothing was tried. Exits 1 when anything fails.
 */

const START_LIMIT_MS = 600_000
const STOP_LIMIT_MS = 15_000

/** The path without the programs of this checkout's packages. */
const path = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

/** The settings of npm on this machine, with its cache; nothing else of its user. */
const npmSettings = {
  NPM_CONFIG_USERCONFIG: process.env.NPM_CONFIG_USERCONFIG ?? join(homedir(), '.npmrc'),
  NPM_CONFIG_CACHE: process.env.NPM_CONFIG_CACHE ?? join(homedir(), '.npm'),
  NPM_CONFIG_PREFER_OFFLINE: 'true',
  // Node 20 runs the launcher alone; npm warns of each package that it could not run.
  NPM_CONFIG_LOGLEVEL: 'error',
  ...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
}

const directory = await mkdtemp(join(tmpdir(), 'signalbox try '))
try {
  if (isRegistryReachable()) {
    await tryRelease()
    const project = join(directory, 'a project')
    await mkdir(project)
    await tryNextTemplate(project, npmSettings)
    console.log('release:try: the template for Next.js is built, takes a genuine delivery and refuses a forged one')
  } else
    console.log('release:try: the registry of npm cannot be reached here, so the installation by npx was not tried.')
} finally {
  await rm(directory, { recursive: true, force: true })
}

function isRegistryReachable(): boolean {
  const args = ['view', 'commander', 'version', '--prefer-online', '--fetch-retries=0', '--fetch-timeout=10000']
  return (
    spawnSync('npm', args, { cwd: directory, env: { ...process.env, ...npmSettings }, stdio: 'ignore' }).status === 0
  )
}

async function tryRelease(): Promise<void> {
  const [home, folder, source] = ['a home', 'an empty folder', 'service'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ]
  for (const path of [home, folder]) await mkdir(path)
  await buildService(source)
  // npx takes a tarball for what it is only by a path that begins with a dot.
  const [tarball] = await pack([source], folder)
  const startedAt = Date.now()
  const port = await findFreePort()
  const service = await startProgram({
    command: 'npx',
    args: ['--yes', `./${basename(tarball!.path)}`, 'start'],
    cwd: folder,
    env: { ...npmSettings, PATH: path, HOME: home, PORT: String(port) },
    isReady: (output) => /ledger .* success/.test(output) && output.includes('Stop with Ctrl-C.'),
    limitMs: START_LIMIT_MS,
  })
  console.log(`release:try: installed, and a verified delivery after ${((Date.now() - startedAt) / 1000).toFixed(1)} s`)
  try {
    const { status } = await fetch(`http://127.0.0.1:${port}/console`)
    if (status !== 200) throw new Error(`the console answered ${status}`)
  } finally {
    await service.stop(STOP_LIMIT_MS)
  }
  await waitForEnd(join(folder, '.signalbox', 'postgres', 'data', 'postmaster.pid'))
  console.log('release:try: stopped after SIGTERM, without leftovers')
}

/** npx ends at once; the service that it started ends its PostgreSQL last. */
async function waitForEnd(pidFile: string): Promise<void> {
  const giveUpAt = Date.now() + STOP_LIMIT_MS
  while (Date.now() < giveUpAt) {
    const isThere = await stat(pidFile).then(
      () => true,
      () => false,
    )
    if (!isThere) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`the service still runs ${STOP_LIMIT_MS} ms after SIGTERM`)
}
