import { createHash, type Hash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { findDataRoot } from '../process/data-root.ts'
import { PROJECT_ROOT } from '../process/process.ts'

const CACHE = join(PROJECT_ROOT, 'node_modules', '.cache')

/** A folder that stays for later runs. Where the cache cannot be written, it ends with its scope. */
export interface KeptFolder extends AsyncDisposable {
  path: string
}

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
  const keep = { path, [Symbol.asyncDispose]: async () => {} }
  if (await isThere(path)) return keep
  const draft = await makeDraft(`draft of ${name} `)
  await make(draft)
  try {
    await rename(draft, path)
  } catch {
    // Another process has just made it, or the draft is elsewhere: one is as good as the other.
    return { path: draft, [Symbol.asyncDispose]: () => rm(draft, { recursive: true, force: true }) }
  }
  const older = (await readdir(CACHE)).filter((other) => other.startsWith(`${name} `) && other !== basename(path))
  for (const other of older) await rm(join(CACHE, other), { recursive: true, force: true })
  return keep
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

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
