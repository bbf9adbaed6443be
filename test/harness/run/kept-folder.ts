import { createHash, type Hash } from 'node:crypto'
import { access, constants, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { findDataRoot } from '../process/data-root.ts'
import { PROJECT_ROOT } from '../process/process.ts'

const CACHE = join(PROJECT_ROOT, 'node_modules', '.cache')

/** A folder that stays for later runs. Where the cache cannot be written, it ends with its scope. */
export interface KeptFolder extends AsyncDisposable {
  path: string
  /** Whether it stays. */
  isKept: boolean
}

/** Folders of one name that are kept: a run of mutations makes one for each. */
const KEPT = 20

/**
 * Finds the folder that was made of the same files, or lets `make` fill a new one. `sources`: files and folders of the
 * repository that decide over its content, without what is built or installed in them.
 */
export async function openKeptFolder(
  name: string,
  sources: readonly string[],
  make: (folder: string) => Promise<void>,
): Promise<KeptFolder> {
  const path = join(CACHE, `${name} ${await hashSources(sources)}`)
  const keep = { path, isKept: true, [Symbol.asyncDispose]: async () => {} }
  if (await isUsable(path)) {
    await utimes(path, new Date(), new Date()).catch(() => {})
    return keep
  }
  const draft = await makeDraft(`draft of ${name} `)
  await make(draft)
  try {
    await rename(draft, path)
  } catch {
    // Another process has just made it, or the draft is elsewhere: one is as good as the other.
    return { path: draft, isKept: false, [Symbol.asyncDispose]: () => rm(draft, { recursive: true, force: true }) }
  }
  await removeOld(name)
  return keep
}

/** Removes the folders of a name that no run has used for an hour, since one that goes on may have begun with other sources. */
async function removeOld(name: string): Promise<void> {
  const paths = (await readdir(CACHE))
    .filter((other) => other.startsWith(`${name} `))
    .map((other) => join(CACHE, other))
  const dated = await Promise.all(paths.map(async (path) => ({ path, atMs: await readUse(path) })))
  const byUse = dated.toSorted((a, b) => b.atMs - a.atMs)
  for (const [index, { path, atMs }] of byUse.entries())
    if (index >= KEPT || Date.now() - atMs > 3_600_000) await rm(path, { recursive: true, force: true })
}

/** Whether it is there, and not one that another user has made for itself. */
const isUsable = (path: string) =>
  access(path, constants.R_OK | constants.X_OK).then(
    () => true,
    () => false,
  )

/** The time of its last use; now for one that another process has just removed. */
async function readUse(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined)
  return found?.mtimeMs ?? Date.now()
}

async function makeDraft(prefix: string): Promise<string> {
  try {
    await mkdir(CACHE, { recursive: true })
    return await mkdtemp(join(CACHE, prefix))
  } catch {
    return mkdtemp(join(await findDataRoot(), prefix))
  }
}

async function hashSources(sources: readonly string[]): Promise<string> {
  const hash = createHash('sha256').update(process.version)
  for (const path of ['test/harness/run/kept-folder.ts', ...sources]) await addFile(path, hash)
  return hash.digest('hex').slice(0, 16)
}

async function addFile(path: string, hash: Hash): Promise<void> {
  const place = join(PROJECT_ROOT, path)
  const found = await stat(place)
  hash.update(`${path}\0${found.mode}\0`)
  if (!found.isDirectory()) return void hash.update(await readFile(place))
  for (const name of (await readdir(place)).sort())
    if (name !== 'node_modules' && name !== 'dist') await addFile(`${path}/${name}`, hash)
}
