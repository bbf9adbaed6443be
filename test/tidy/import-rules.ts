import { posix } from 'node:path'
import { type Finding, type Import, isTest, listImports, type SourceFile } from './source-file.ts'

/** Files at the root of src/ that any room may use: they know no business word and import nothing but each other. */
const GROUND = ['clock', 'database-clock', 'random', 'id', 'version', 'keyring', 'semaphore', 'stored-text'].map(
  (name) => `src/${name}.ts`,
)

/** Folders that stand with main.ts on the outside: no other room imports them. */
const WIRING_FOLDERS = ['app', 'command', 'demo']

/** Folders under the features: they import no feature. */
const INNER_FOLDERS = ['http', 'listing', 'postgres', 'outbound'] as const

type Room = { kind: 'ground' | 'wiring' | (typeof INNER_FOLDERS)[number] | 'feature'; name: string }

/** Which room of the house a file of src/ is in. */
export function roomOf(path: string): Room {
  if (GROUND.includes(path)) return { kind: 'ground', name: 'ground' }
  const folder = /^src\/([^/]+)\//.exec(path)?.[1]
  if (folder === undefined || WIRING_FOLDERS.includes(folder)) return { kind: 'wiring', name: 'wiring' }
  const inner = INNER_FOLDERS.find((one) => one === folder)
  return inner ? { kind: inner, name: inner } : { kind: 'feature', name: folder }
}

/** What each kind of room may import besides itself. */
const MAY_IMPORT: Record<Room['kind'], readonly Room['kind'][]> = {
  ground: ['ground'],
  postgres: ['ground', 'postgres'],
  // A route declares its list, and a list refuses with a problem.
  http: ['ground', 'postgres', 'http', 'listing'],
  listing: ['ground', 'postgres', 'http', 'listing'],
  outbound: ['ground', 'outbound'],
  feature: ['ground', ...INNER_FOLDERS, 'feature'],
  wiring: ['ground', ...INNER_FOLDERS, 'feature', 'wiring'],
}

function listServiceImports(files: readonly SourceFile[]): Import[] {
  return files
    .filter(({ path }) => path.startsWith('src/') && !isTest(path))
    .flatMap(listImports)
    .filter(({ isRelative }) => isRelative)
}

const keyOf = ({ from, to }: Import) => `${from} -> ${to}`

/** `main -> app -> features -> http | listing | postgres | outbound -> ground`; nothing imports backwards. */
export function findWrongDirections(files: readonly SourceFile[]): Finding[] {
  return listServiceImports(files).flatMap((one) => {
    // The version is written once, where npm wants it.
    if (one.from === 'src/version.ts' && one.to === 'package.json') return []
    // The receiver's commands use what receivers use.
    if (one.from.startsWith('src/command/') && /^packages\/[^/]+\/src\//.test(one.to)) return []
    if (!one.to.startsWith('src/')) return [{ key: keyOf(one), message: 'src/ imports nothing outside src/' }]
    const [from, to] = [roomOf(one.from), roomOf(one.to)]
    if (MAY_IMPORT[from.kind].includes(to.kind)) return []
    return [{ key: keyOf(one), message: `${from.name} may not import ${to.name}` }]
  })
}

/** A feature calls another feature's operations, never its store. The shape of a record (`import type`) may be known. */
export function findForeignStores(files: readonly SourceFile[]): Finding[] {
  return listServiceImports(files)
    .filter((one) => one.to.endsWith('.store.ts') && !one.isTypeOnly)
    .filter((one) => roomOf(one.from).kind === 'feature' && roomOf(one.from).name !== roomOf(one.to).name)
    .map((one) => ({ key: keyOf(one), message: 'the store of another feature; call one of its operations' }))
}

/** Packages are installed by other programs, so they import nothing of the service. */
export function findPackageEscapes(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) => {
    const root = /^packages\/[^/]+\//.exec(file.path)?.[0]
    if (root === undefined || isTest(file.path)) return []
    return listImports(file)
      .filter((one) => one.isRelative && !one.to.startsWith(root))
      .map((one) => ({ key: keyOf(one), message: 'a package imports nothing outside itself' }))
  })
}

/** The service loads only what a production installs; the types of other packages are gone when it runs. */
export function findDevelopmentImports(files: readonly SourceFile[]): Finding[] {
  const manifest = files.find(({ path }) => path === 'package.json')?.text ?? '{}'
  const { devDependencies = {} } = JSON.parse(manifest) as { devDependencies?: Record<string, string> }
  return files
    .filter(({ path }) => path.startsWith('src/') && !isTest(path))
    .flatMap(listImports)
    .filter((one) => !one.isRelative && !one.isTypeOnly && one.to in devDependencies)
    .map((one) => ({ key: keyOf(one), message: 'a package of development only; import its types, or depend on it' }))
}

/** Relative imports name the file they mean: Node resolves nothing else. */
export function findVagueImports(files: readonly SourceFile[]): Finding[] {
  return files
    .flatMap(listImports)
    .filter((one) => one.isRelative && !/\.(?:ts|tsx|mjs|js|json|css)$/.test(one.to))
    .map((one) => ({ key: keyOf(one), message: 'a relative import ends in the file name extension' }))
}

/** Circles of imports, each named once, by its files in order. An import of types is gone when the program runs. */
export function findCycles(files: readonly SourceFile[]): Finding[] {
  const graph = new Map<string, string[]>()
  for (const { from, to, isTypeOnly } of listServiceImports(files))
    if (!isTypeOnly) graph.set(from, [...(graph.get(from) ?? []), to])
  const found = new Map<string, Finding>()
  const done = new Set<string>()
  const visit = (path: string, trail: readonly string[]) => {
    const start = trail.indexOf(path)
    if (start !== -1) {
      const circle = trail.slice(start)
      const first = circle.indexOf([...circle].sort()[0]!)
      const key = [...circle.slice(first), ...circle.slice(0, first)].join(' -> ')
      found.set(key, { key, message: 'these import each other in a circle' })
      return
    }
    if (done.has(path)) return
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return [...found.values()]
}

/** Where a program may be started from without being imported. */
const STARTING_POINTS =
  /^(?:package\.json|packages\/[^/]+\/package\.json|vitest\.config\.ts|\.ci\/.*|\.github\/.*|bin\/.*|bench\/.*|test\/.*|packages\/[^/]+\/test\/.*)$/

/**
 * Files nobody uses: no import leads to them, and no script, package.json or test names them as the place to start. For a
 * file of the service an import by a test does not count.
 */
export function findDeadFiles(files: readonly SourceFile[]): Finding[] {
  const used = new Set<string>()
  for (const one of files.flatMap(listImports)) {
    if (one.isRelative && !(one.to.startsWith('src/') && isTest(one.from))) used.add(one.to)
  }
  for (const { path, text } of files) {
    // The program of a thread.
    for (const [, to = ''] of text.matchAll(/new Worker\(new URL\('([^']+)', import\.meta\.url\)/g))
      used.add(posix.join(posix.dirname(path), to))
  }
  const starts = files.filter(({ path }) => STARTING_POINTS.test(path))
  const isStarted = (path: string) =>
    starts.some(
      (start) =>
        start.path !== path &&
        (start.text.includes(path) ||
          new RegExp(`['"/]${posix.basename(path).replaceAll('.', '\\.')}['"]`).test(start.text) ||
          isNamedEntry(start, path)),
    )
  return files
    .filter(({ path }) => /^(?:src|test|tools|bench|packages\/[^/]+\/(?:src|test))\/.*\.(?:ts|tsx|mjs)$/.test(path))
    .filter(({ path }) => !path.endsWith('.test.ts') && !used.has(path) && !isStarted(path))
    .map(({ path }) => ({ key: path, message: 'nobody imports or starts this file; remove it' }))
}

/** Whether the package.json of a package names the file, relative to itself, as an entry; built entries name it by `dist/`. */
function isNamedEntry(start: SourceFile, path: string): boolean {
  const root = posix.dirname(start.path)
  if (root === '.' || !path.startsWith(`${root}/src/`)) return false
  const name = path.slice(`${root}/src/`.length).replace(/\.ts$/, '')
  return start.text.includes(`/${name}.`)
}
