import { posix } from 'node:path'
import { type Finding, type Import, isTest, listImports, type SourceFile } from './source-file.ts'

/**
 * The areas of src/, from the outside in, as ARCHITECTURE.md lists them: a file imports its own area and those after it.
 * `main.ts` stands before them all.
 */
const AREAS = [
  'main.ts',
  'command',
  'app',
  'contract',
  'operations',
  'webhook',
  'realtime',
  'provisioning',
  'oauth',
  'identity',
  'carriage',
  'event',
  'delivery',
  'outbound',
  'http',
  'postgres',
  'tracing',
  'base',
]

/** Areas that hold several features, each in a room of its own. */
const AREAS_OF_ROOMS = ['operations', 'identity', 'event']

/** Areas that stand above or below the features, and so may use a store where it is handed to them. */
const AREAS_WITHOUT_FEATURES = ['main.ts', 'command', 'app', 'outbound', 'http', 'postgres', 'tracing', 'base']

/** Source files in a folder at most, tests and generated files apart. */
const FOLDER_LIMIT = 15

/** The area of a file. A folder that is none holds a resource of a platform, which stands where `contract` does. */
function areaOf(path: string): string {
  const folder = path.split('/')[1] ?? ''
  return AREAS.includes(folder) ? folder : 'contract'
}

/** Rooms that are one feature, though they stand apart: a row below its operations, an entry below its list. */
const ONE_FEATURE: Readonly<Record<string, string>> = {
  'identity/user-record': 'identity/user',
  'identity/caller': 'identity/access',
  'operations/alert': 'delivery',
  'operations/audit': 'event/recording',
  'event/occurrence': 'event',
  'event/publish': 'event',
  'event/event.routes.ts': 'event',
}

/** The room whose one statement writes for every feature what belongs to its change. */
const RECORDING = 'event/recording'

/** The feature of a file: its area, or its room where an area holds several. */
function featureOf(path: string): string | undefined {
  const [, area = '', room = ''] = path.split('/')
  if (AREAS_WITHOUT_FEATURES.includes(area)) return undefined
  const own = AREAS_OF_ROOMS.includes(area) ? `${area}/${room}` : area
  return ONE_FEATURE[own] ?? own
}

const isService = (path: string) => path.startsWith('src/') && !isTest(path)

function listServiceImports(files: readonly SourceFile[]): Import[] {
  return files
    .filter(({ path }) => isService(path))
    .flatMap(listImports)
    .filter(({ isRelative }) => isRelative)
}

const keyOf = ({ from, to }: Import) => `${from} -> ${to}`

/** Imports go down the list of areas, those of types included; nothing imports backwards. */
export function findWrongDirections(files: readonly SourceFile[]): Finding[] {
  return listServiceImports(files).flatMap((item) => {
    // The version is written once, where npm wants it.
    if (item.from === 'src/base/version.ts' && item.to === 'package.json') return []
    // The receiver's commands use what receivers use.
    if (item.from.startsWith('src/command/') && /^packages\/[^/]+\/src\//.test(item.to)) return []
    if (!item.to.startsWith('src/')) return [{ key: keyOf(item), message: 'src/ imports nothing outside src/' }]
    const [from, to] = [areaOf(item.from), areaOf(item.to)]
    if (AREAS.indexOf(from) <= AREAS.indexOf(to)) return []
    return [{ key: keyOf(item), message: `${from} may not import ${to}` }]
  })
}

/** Where a file stands among the children of a folder: the child folder it is in, or the folder's own files. */
function childOf(folder: string, path: string): string | undefined {
  if (!path.startsWith(`${folder}/`)) return undefined
  const [child, ...rest] = path.slice(folder.length + 1).split('/')
  return rest.length > 0 ? child : 'its own files'
}

/**
 * Circles between the children of a folder, at any depth, those of types included: folders beside each other, and a folder's own
 * files beside its folders. Each is named once by one of its imports.
 */
export function findFolderCircles(files: readonly SourceFile[]): Finding[] {
  const imports = listServiceImports(files)
  const folders = new Set(imports.flatMap(({ from, to }) => [from, to].flatMap(listParents)))
  return [...folders].flatMap((folder) => {
    const graph = new Map<string, Map<string, Import>>()
    for (const edge of imports) {
      const [from, to] = [childOf(folder, edge.from), childOf(folder, edge.to)]
      if (from === undefined || to === undefined || from === to) continue
      const next = graph.get(from) ?? new Map<string, Import>()
      graph.set(from, next.set(to, edge))
    }
    return listCircles(graph).map(({ edge, names }) => ({
      key: keyOf(edge),
      message: `a circle in ${folder}: ${names.join(', ')}`,
    }))
  })
}

/** Circles of files, those of types included. Each is named once by one of its imports. */
export function findFileCircles(files: readonly SourceFile[]): Finding[] {
  const graph = new Map<string, Map<string, Import>>()
  for (const edge of listServiceImports(files)) {
    const next = graph.get(edge.from) ?? new Map<string, Import>()
    graph.set(edge.from, next.set(edge.to, edge))
  }
  return listCircles(graph).map(({ edge, names }) => ({ key: keyOf(edge), message: `a circle: ${names.join(', ')}` }))
}

/** The circles of a graph, each with one of its imports. */
function listCircles(graph: ReadonlyMap<string, ReadonlyMap<string, Import>>): { edge: Import; names: string[] }[] {
  const found: { edge: Import; names: string[] }[] = []
  const named = new Set<string>()
  for (const [from, next] of graph)
    for (const [to, edge] of next) {
      if (named.has(from) || named.has(to) || !leadsTo(graph, to, from)) continue
      const names = [...graph.keys()].filter((name) => leadsTo(graph, from, name) && leadsTo(graph, name, from))
      for (const name of names) named.add(name)
      found.push({ edge, names: names.sort() })
    }
  return found
}

function listParents(path: string): string[] {
  const parent = posix.dirname(path)
  return parent === '.' ? [] : [parent, ...listParents(parent)]
}

function leadsTo(graph: ReadonlyMap<string, ReadonlyMap<string, Import>>, from: string, to: string): boolean {
  const seen = new Set<string>()
  const ahead = [from]
  for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
    if (next === to) return true
    if (seen.has(next)) continue
    seen.add(next)
    ahead.push(...(graph.get(next)?.keys() ?? []))
  }
  return false
}

/** Folders with too many source files for one look: split along the flow, never by layer. */
export function findCrowdedFolders(files: readonly SourceFile[]): Finding[] {
  const counts = new Map<string, number>()
  for (const { path } of files) {
    const isCounted = /^(?:src|test\/harness)\//.test(path) && /\.tsx?$/.test(path)
    if (!isCounted || isTest(path) || path.endsWith('.generated.ts')) continue
    const folder = posix.dirname(path)
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  return [...counts]
    .filter(([, count]) => count > FOLDER_LIMIT)
    .map(([folder, count]) => ({ key: folder, message: `${count} source files, over ${FOLDER_LIMIT}: split it` }))
}

/** The list of the sweeps of an area names the deletions of its own features. */
function isOwnSweep({ from, to }: { from: string; to: string }): boolean {
  const [, area] = /^(src\/[^/]+\/)sweeps\.ts$/.exec(from) ?? []
  return area !== undefined && to.startsWith(area)
}

/** A feature calls another feature's operations, never its store. The shape of a record (`import type`) may be known. */
export function findForeignStores(files: readonly SourceFile[]): Finding[] {
  return listServiceImports(files)
    .filter((item) => item.to.endsWith('.store.ts') && !item.isTypeOnly)
    .filter((item) => !item.from.startsWith(`src/${RECORDING}/`) && featureOf(item.from) !== undefined)
    .filter((item) => featureOf(item.from) !== featureOf(item.to) && !isOwnSweep(item))
    .map((item) => ({ key: keyOf(item), message: 'the store of another feature; call edge of its operations' }))
}

/** Packages are installed by other programs, so they import nothing of the service. */
export function findPackageEscapes(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) => {
    const root = /^packages\/[^/]+\//.exec(file.path)?.[0]
    if (root === undefined || isTest(file.path)) return []
    return listImports(file)
      .filter((item) => item.isRelative && !item.to.startsWith(root))
      .map((item) => ({ key: keyOf(item), message: 'a package imports nothing outside itself' }))
  })
}
