/**
 * Needs of every start, of a checkout and of an installed package: the Node of this machine that runs the service, its environment,
 * and the end. Plain JavaScript that any Node from 20 on runs, without a dependency.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of the checkout, or of the installed package. */
export const projectRoot = dirname(dirname(fileURLToPath(import.meta.url)))

const PROGRAM = process.platform === 'win32' ? 'node.exe' : 'node'

/** Whether the Node that runs this file also runs the service. */
export const isOwnNodeEnough = Number(process.versions.node.split('.')[0]) >= 24

/** A failure with a sentence for the user at the terminal. */
export class BootstrapError extends Error {}

/**
 * The environment of a program of this project. With a cache of the compiled sources a start takes a quarter of the time; where it
 * cannot be written, Node goes without.
 * @returns {NodeJS.ProcessEnv}
 */
export function buildEnvironment() {
  return { NODE_COMPILE_CACHE: join(projectRoot, 'node_modules', '.cache', 'node-compile'), ...process.env }
}

/**
 * Runs `main` and ends this process with the exit code it gives. A failure we foresaw prints its one sentence and exits 1.
 * @param {() => Promise<number>} main
 */
export async function exitWith(main) {
  try {
    process.exitCode = await main()
  } catch (error) {
    if (!(error instanceof BootstrapError)) throw error
    console.error(`signalbox: ${error.message}`)
    process.exitCode = 1
  }
}

/** The npm package with the Node of this machine. */
function nameNodePackage() {
  const platform = process.platform === 'win32' ? 'win' : process.platform
  return `${platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node'}-${platform}-${process.arch}`
}

/**
 * The Node that runs an installed package: the one it brings along, or a later release of that line on the path, or the Node of this
 * process. Reads and writes nothing else.
 * @param {string} root the folder of the package
 */
export function chooseInstalledNode(root) {
  const name = nameNodePackage()
  const pinned = readManifest(join(root, 'package.json'))?.optionalDependencies?.[name]
  const newer = findNewerNode(pinned)
  if (newer !== undefined) return newer
  const brought = findBroughtNode(root, name)
  if (brought !== undefined && isVersion(brought, pinned)) return brought
  if (isOwnNodeEnough) return process.execPath
  throw new BootstrapError(
    `this is Node ${process.versions.node}, and the package ${name} is not installed: start with Node 24 or newer, or install Signalbox anew without --omit=optional.`,
  )
}

/** Beside the package or below it, as the package manager has put it. */
function findBroughtNode(root, name) {
  try {
    return join(dirname(createRequire(join(root, 'package.json')).resolve(`${name}/package.json`)), 'bin', PROGRAM)
  } catch {
    return undefined
  }
}

/**
 * The Node of this machine, when it is a later release of the pinned line: it has the security fixes that the pin may lack. The first
 * `node` on the path counts, outside the packages of a project, which npm puts before it.
 * @param {string | undefined} pinned its version
 */
export function findNewerNode(pinned) {
  const path = findOnPath(PROGRAM)
  if (path === undefined || pinned === undefined) return undefined
  return isLaterRelease(readNodeVersion(path), pinned) ? path : undefined
}

function findOnPath(program) {
  const { PATH } = buildInstallEnvironment(process.env)
  return PATH.split(delimiter)
    .filter((directory) => directory !== '' && !directory.endsWith(join('node_modules', '.bin')))
    .map((directory) => join(directory, program))
    .find((path) => existsSync(path))
}

/** The version of a Node, asked of the program itself where neither this process nor npm has it. Undefined when it does not run. */
function readNodeVersion(path) {
  if (isSameFile(path, process.execPath)) return process.versions.node
  const version = /\bnode\/v(\S+)/.exec(process.env.npm_config_user_agent ?? '')?.[1]
  if (version !== undefined && isSameFile(path, process.env.npm_node_execpath)) return version
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return status === 0 ? stdout.trim().slice(1) : undefined
}

function isSameFile(path, other) {
  try {
    return other !== undefined && realpathSync(path) === realpathSync(other)
  } catch {
    return false
  }
}

/**
 * Whether `version` has the major version of `pinned` and is later. A version with a suffix (a nightly build) is not.
 * @param {string | undefined} version
 * @param {string} pinned
 */
function isLaterRelease(version, pinned) {
  if (!/^\d+\.\d+\.\d+$/.test(version ?? '')) return false
  const [own, other] = [version, pinned].map((text) => text.split('.').map(Number))
  return own[0] === other[0] && (own[1] - other[1] || own[2] - other[2]) > 0
}

export function isInstalledHere(path) {
  return path.startsWith(join(projectRoot, 'node_modules') + sep)
}

/** Our environment without the project's own programs on the path: they vanish while npm replaces node_modules. */
export function buildInstallEnvironment(env) {
  const kept = (env.PATH ?? '').split(delimiter).filter((entry) => !isInstalledHere(entry + sep))
  return { ...env, PATH: kept.join(delimiter) }
}

/** The pinned Node of a checkout, once it has shown that it runs here; undefined when it is missing or made for another machine. */
export function findNode(root) {
  const packageDir = join(root, 'node_modules', 'node')
  const inner = nameNodePackage()
  const version = readManifest(join(packageDir, 'package.json'))?.version
  return [
    join(packageDir, 'bin', PROGRAM),
    join(packageDir, 'node_modules', inner, 'bin', PROGRAM),
    join(root, 'node_modules', inner, 'bin', PROGRAM),
  ].find((path) => isVersion(path, version))
}

function isVersion(path, version) {
  if (!existsSync(path)) return false
  const { status, stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  return status === 0 && stdout.trim() === `v${version}`
}

function readManifest(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}
