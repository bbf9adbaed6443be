import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** Sources of a sealed build once its pages are written: all that Astro and the seal read. Relative to the checkout. */
const INPUTS = [
  'package-lock.json',
  'openapi.json',
  'site/astro.config.ts',
  'site/build.ts',
  'site/content/seal.ts',
  'site/public',
  'site/src',
]

/** A hash of files and folders below `root`: of their names and bytes. A missing one fails. */
async function hashFiles(root: string, paths: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const path of paths) {
    const place = join(root, path)
    const isFolder = (await stat(place)).isDirectory()
    const entries = isFolder ? await readdir(place, { recursive: true, withFileTypes: true }) : []
    const files = isFolder
      ? entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
      : [place]
    for (const file of files.sort()) {
      const body = await readFile(file)
      hash.update(JSON.stringify([file.slice(root.length), body.length])).update(body)
    }
  }
  return hash.digest('hex')
}

/**
 * Fills `out` with what `build` makes, or with its copy in the folder `kept` when it made that of the same inputs before. The
 * folder keeps the last build alone. The pages are already written.
 */
export async function buildOnce(
  { root, kept, out, inputs = INPUTS }: { root: string; kept: string; out: string; inputs?: readonly string[] },
  build: () => Promise<void>,
): Promise<void> {
  const hash = createHash('sha256')
    .update(process.version)
    .update(await hashFiles(root, inputs))
  const place = `${kept}-${hash.digest('hex').slice(0, 32)}`
  const copy = async (from: string, to: string) => {
    await rm(to, { recursive: true, force: true })
    await cp(from, to, { recursive: true })
  }
  const isThere = await stat(place).then(
    () => true,
    () => false,
  )
  if (isThere) return copy(place, out)
  await build()
  await mkdir(dirname(kept), { recursive: true })
  await removeBuilds(kept)
  const made = await mkdtemp(`${kept}.`)
  await copy(out, made)
  // Another process that was first has the same build.
  await rename(made, place).catch(() => rm(made, { recursive: true, force: true }))
}

async function removeBuilds(kept: string): Promise<void> {
  const folder = dirname(kept)
  for (const name of await readdir(folder))
    if (name.startsWith(`${basename(kept)}-`)) await rm(join(folder, name), { recursive: true, force: true })
}
