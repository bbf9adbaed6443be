import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { readMigrations } from '../../../src/postgres/migration/migrate.ts'
import { BUILD_FILES, INSTALL_FILES } from '../../../tools/release/build-service.ts'
import type { Tarball } from '../../../tools/release/pack.ts'
import { findDataRoot } from '../process/data-root.ts'
import { PROJECT_ROOT } from '../process/process.ts'
import { installRelease, packRelease } from './installed-release.ts'

const CACHE = join(PROJECT_ROOT, 'node_modules', '.cache')
const NAME = 'kept release'

/** The service of this checkout, packed and installed. It stays for later runs; nobody writes there but Node what it compiled. */
export interface KeptRelease extends AsyncDisposable {
  tarball: Tarball
  /** The folder of the release in a project that has nothing else. */
  root: string
  /** The same with one more migration, which is additive. */
  next: string
}

/**
 * Finds the release that was packed and installed of the same files, or makes it: that takes ten seconds of a processor, and
 * what Node compiles of it another two. Where the cache cannot be written it is made for this scope.
 */
export async function openKeptRelease(): Promise<KeptRelease> {
  const key = await hashSources()
  const place = join(CACHE, `${NAME} ${key}`)
  const kept = { [Symbol.asyncDispose]: async () => {} }
  const found = await readRelease(place)
  if (found) return { ...found, ...kept }
  const made = await mkdtemp(join(await findPlace(), `${NAME} draft `))
  await make(made)
  try {
    await rename(made, place)
  } catch {
    // Another process has just made it, or the draft is on another file system: both are as good.
    return { ...(await readRelease(made))!, [Symbol.asyncDispose]: () => rm(made, { recursive: true, force: true }) }
  }
  for (const name of await readdir(CACHE))
    if (name.startsWith(NAME) && !name.includes('draft') && name !== basename(place))
      await rm(join(CACHE, name), { recursive: true, force: true })
  return { ...(await readRelease(place))!, ...kept }
}

const findPlace = () =>
  mkdir(CACHE, { recursive: true })
    .then(() => mkdtemp(join(CACHE, 'try-')))
    .then((folder) => rm(folder, { recursive: true }))
    .then(() => CACHE, findDataRoot)

async function make(folder: string): Promise<void> {
  await using packed = await packRelease()
  await cp(packed.tarball.path, join(folder, basename(packed.tarball.path)))
  for (const name of ['this', 'next']) await installRelease(packed.tarball.path, join(folder, name))
  const migrations = join(rootIn(folder, 'next'), 'migrations')
  const number = String((await readMigrations(migrations)).length + 1).padStart(4, '0')
  const text = `-- additive\nalter table contract add column note text not null default '';\n`
  await writeFile(join(migrations, `${number}_next_release.sql`), text)
  await writeFile(join(folder, 'tarball.json'), JSON.stringify(packed.tarball))
}

const rootIn = (folder: string, name: string) => join(folder, name, 'node_modules', 'signalbox')

async function readRelease(folder: string): Promise<Omit<KeptRelease, keyof AsyncDisposable> | undefined> {
  const text = await readFile(join(folder, 'tarball.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const tarball = JSON.parse(text) as Tarball
  const path = join(folder, basename(tarball.path))
  return { tarball: { ...tarball, path }, root: rootIn(folder, 'this'), next: rootIn(folder, 'next') }
}

/** Of all that a release is made of, and of what makes it. */
async function hashSources(): Promise<string> {
  const hash = createHash('sha256').update(process.version)
  for (const path of [...BUILD_FILES, ...INSTALL_FILES, 'test/harness/release'].sort()) await addFile(path, hash)
  return hash.digest('hex').slice(0, 16)
}

async function addFile(path: string, hash: ReturnType<typeof createHash>): Promise<void> {
  const place = join(PROJECT_ROOT, path)
  const found = await stat(place)
  hash.update(`${path}\0${found.mode}\0`)
  if (!found.isDirectory()) return void hash.update(await readFile(place))
  for (const name of (await readdir(place)).sort())
    if (name !== 'node_modules' && name !== 'dist') await addFile(`${path}/${name}`, hash)
}
