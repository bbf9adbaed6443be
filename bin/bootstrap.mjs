/**
 * Step between `npm start` on any machine and the service: it brings in what package-lock.json asks for when something is missing,
 * then hands over to the Node this project pins, or to a later release of it that the machine has. Plain JavaScript that any Node from 20 on runs, without a dependency.
 */
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import {
  BootstrapError,
  buildInstallEnvironment,
  findNewerNode,
  findNode,
  isInstalledHere,
  isOwnNodeEnough,
  projectRoot,
} from './find-node.mjs'
import { runToEnd } from './run-to-end.mjs'

/** Quiet about engines: packages ask for the Node this project brings along, whatever Node npm itself runs on. */
const INSTALL = ['ci', '--no-audit', '--no-fund', '--loglevel=error', '--engine-strict=false']

/**
 * Makes sure everything is installed and gives the path of the pinned Node, or of a later one of its line. Offline, and without a write, when nothing is missing.
 * @param {{ root: string, needsDev: boolean }} options `needsDev`: whether development packages count (tests do, the service does not)
 * @returns {Promise<string>}
 */
export async function prepareNode({ root, needsDev }) {
  const wanted = readPackages(join(root, 'package-lock.json'))
  if (wanted === undefined)
    throw new BootstrapError(`package-lock.json is missing in ${root}: take a complete copy of the project.`)
  if (listMissing({ root, wanted, needsDev }).length > 0) await installLocked({ root, wanted, needsDev })
  const pinned = findNode(root) ?? (await installNode(root, wanted['node_modules/node']?.version))
  return findNewerNode(wanted['node_modules/node']?.version) ?? pinned
}

/** The `packages` of a lock file, or undefined when the file is missing or unreadable. */
function readPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages ?? {}
  } catch {
    return undefined
  }
}

/**
 * The packages that the lock file asks for and node_modules does not hold in that version. npm writes what it installed into a hidden lock file at
 * the very end, so an installation that was cut off counts as missing. Optional packages may be absent (they belong to other platforms, or
 * a production leaves them out), but tests need the optional packages of package.json, and a Node below 24 needs the pinned one.
 */
function listMissing({ root, wanted, needsDev }) {
  const needed = new Set(needsDev ? Object.keys(wanted['']?.optionalDependencies ?? {}) : [])
  if (!isOwnNodeEnough) needed.add('node')
  const installed = readPackages(join(root, 'node_modules', '.package-lock.json')) ?? {}
  return Object.entries(wanted)
    .filter(([path, entry]) => {
      if (!path.startsWith('node_modules/') && !path.includes('/node_modules/')) return false
      if (entry.link) return (needsDev || !wanted[entry.resolved]?.dev) && !existsSync(join(root, path))
      const found = installed[path]
      const isNeeded = needed.has(path.slice('node_modules/'.length))
      if (!isNeeded && (entry.optional || entry.devOptional || (entry.dev && !needsDev)))
        return found !== undefined && found.version !== entry.version
      return found?.version !== entry.version || !existsSync(join(root, path, 'package.json'))
    })
    .map(([path]) => path)
}

async function installLocked({ root, wanted, needsDev }) {
  await withInstallLock(root, async () => {
    const missing = listMissing({ root, wanted, needsDev })
    if (missing.length === 0) return
    console.error(
      `signalbox: ${missing.length} packages are missing; installing what package-lock.json asks for (npm ci) ...`,
    )
    const startedAt = Date.now()
    const isOptionalMissing = missing.some((path) => wanted[path].optional)
    const included = [...(needsDev ? ['--include=dev'] : []), ...(isOptionalMissing ? ['--include=optional'] : [])]
    const code = await runNpm(root, [...INSTALL, ...included])
    if (code > 128) process.exit(code)
    if (code !== 0)
      throw new BootstrapError(`npm ci failed (exit code ${code}): see its lines above, then start again.`)
    console.error(`signalbox: installed in ${((Date.now() - startedAt) / 1000).toFixed(1)} s.`)
    const left = listMissing({ root, wanted, needsDev })
    if (left.length > 0)
      throw new BootstrapError(
        `npm ci ran, and ${left[0]} is still missing: run \`npm ci\` by hand and look at its output.`,
      )
  })
}

/** Lets one start install at a time: two `npm ci` at once take each other's files away. The second waits, and finds nothing missing. */
async function withInstallLock(root, install) {
  const lock = join(root, '.install-lock')
  let isTold = false
  while (!takeInstallLock(lock)) {
    if (!isTold) console.error(`signalbox: waiting for another start to finish installing (it holds ${lock}) ...`)
    isTold = true
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  const release = () => rmSync(lock, { force: true })
  process.once('exit', release)
  try {
    await install()
  } finally {
    process.off('exit', release)
    release()
  }
}

function takeInstallLock(lock) {
  try {
    const file = openSync(lock, 'wx')
    writeSync(file, String(process.pid))
    closeSync(file)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST')
      throw new BootstrapError(
        `packages are missing and ${dirname(lock)} cannot be written (${error.code}): run \`npm ci\` as its owner.`,
      )
  }
  const owner = Number(readFileSyncOrEmpty(lock))
  // An empty lock is one that is being written this moment; a dead owner's is taken away.
  if (owner > 0 && !isAlive(owner)) rmSync(lock, { force: true })
  return false
}

function readFileSyncOrEmpty(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Runs npm: the one that runs us where there is one, else the one on the path. */
async function runNpm(cwd, args) {
  const env = buildInstallEnvironment(process.env)
  const cli = process.env.npm_execpath
  const isOurs = cli !== undefined && basename(cli) === 'npm-cli.js' && existsSync(cli)
  // npm's own Node, not ours: ours may be the pinned one, which lies in the folder npm is about to replace.
  const node =
    process.env.npm_node_execpath && existsSync(process.env.npm_node_execpath)
      ? process.env.npm_node_execpath
      : process.execPath
  try {
    if (isOurs && !isInstalledHere(node)) return await runToEnd(node, [cli, ...args], { cwd, env })
    return await runToEnd('npm', args, { cwd, env, shell: process.platform === 'win32' })
  } catch (error) {
    throw new BootstrapError(
      `npm could not be started (${error.code ?? error.message}): install npm, or run \`npm ci\` in ${projectRoot}.`,
    )
  }
}

/**
 * Gets the pinned Node where npm installed without running install scripts. A machine it does not run on gets by with its own Node,
 * when that one is new enough to run TypeScript.
 */
async function installNode(root, version) {
  const packageDir = join(root, 'node_modules', 'node')
  // An installation for production leaves the pinned Node out (`npm ci --omit=optional`).
  if (isOwnNodeEnough && !existsSync(packageDir)) return process.execPath
  const step = join(packageDir, 'installArchSpecificPackage.js')
  console.error(`signalbox: Node ${version} is not installed yet (npm ran without install scripts); getting it ...`)
  if (existsSync(step)) {
    const code = await runToEnd(process.execPath, [step], {
      cwd: packageDir,
      env: buildInstallEnvironment(process.env),
    })
    if (code > 128) process.exit(code)
  }
  const node = findNode(root)
  if (node) return node
  if (isOwnNodeEnough) {
    console.error(
      `signalbox: Node ${version} does not run on this machine; going on with Node ${process.versions.node}.`,
    )
    return process.execPath
  }
  throw new BootstrapError(
    `Node ${version} could not be installed here: run \`npm rebuild node --ignore-scripts=false\` in ${root} while online, or start with Node 24 or newer.`,
  )
}
