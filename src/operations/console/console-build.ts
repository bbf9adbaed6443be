import { readFileSync, statSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Directory of the build. */
export const CONSOLE_FOLDER = fileURLToPath(new URL('../../../console/dist', import.meta.url))

/** A file of the built console. */
export interface ConsoleFile {
  type: string
  body: Buffer
  /** The same, compressed with Brotli; undefined if that is not smaller. */
  compressed: Buffer | undefined
}

/** Files of the build that a page names: its script, and the files that the script loads. */
export interface PageEntry {
  script: string
  /** A small script that runs before the rest has arrived; undefined for a page without one. */
  start: string | undefined
  styles: readonly string[]
  /** Scripts that the first one imports, so that the browser loads them at once. */
  preloads: readonly string[]
}

/** The pages of the build. */
export type EntryName = 'console' | 'portal'

/** The built console: its files by their path below `/console/assets/`, and its pages. */
export interface ConsoleBuild {
  files: ReadonlyMap<string, ConsoleFile>
  entries: ReadonlyMap<EntryName, PageEntry>
}

interface Chunk {
  file: string
  /** The name of the page, where it is the script of one; else that of its part of a page. */
  name?: string
  isEntry?: boolean
  css?: readonly string[]
  imports?: readonly string[]
  assets?: readonly string[]
}

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** Written last, so a folder with it has a whole build. */
const MANIFEST = 'manifest.json'

/** Reads the build in a folder into memory. Undefined when there is none. */
function readConsoleBuild(folder: string): ConsoleBuild | undefined {
  const manifest = readManifest(folder)
  if (!manifest) return undefined
  const chunks = Object.values(manifest)
  const names = new Set(chunks.flatMap(({ file, css = [], assets = [] }) => [file, ...css, ...assets]))
  const entries = chunks.filter(({ isEntry }) => isEntry)
  return {
    files: new Map([...names].map((name) => [basename(name), readFile(folder, name)])),
    entries: new Map(entries.map((entry) => [entry.name as EntryName, readEntry(manifest, entry)])),
  }
}

function readEntry(manifest: Record<string, Chunk>, entry: Chunk): PageEntry {
  const first = listImports(manifest, entry)
  return {
    script: basename(entry.file),
    start: first.map(({ name, file }) => (name === 'start' ? basename(file) : '')).find(Boolean),
    styles: [...new Set([...first, entry].flatMap(({ css = [] }) => css))].map((name) => basename(name)),
    preloads: first.map(({ file }) => basename(file)),
  }
}

/** The chunks that one imports, and those that these import: each once. */
function listImports(manifest: Record<string, Chunk>, chunk: Chunk): Chunk[] {
  const found = new Set<Chunk>()
  const visit = ({ imports = [] }: Chunk) => {
    for (const name of imports) {
      const chunk = manifest[name]
      if (!chunk || found.has(chunk)) continue
      found.add(chunk)
      visit(chunk)
    }
  }
  visit(chunk)
  return [...found]
}

/** Reads the build; undefined while there is none. */
export type ConsoleReader = () => ConsoleBuild | undefined

/** Reads the build once, and again after a newer build. */
export function buildConsoleReader(folder: string): ConsoleReader {
  let kept: { build: ConsoleBuild | undefined; builtAtMs: number } | undefined
  return () => {
    const builtAtMs = statSync(join(folder, MANIFEST), { throwIfNoEntry: false })?.mtimeMs
    if (builtAtMs === undefined) return kept?.build
    if (kept?.builtAtMs !== builtAtMs) kept = { build: readConsoleBuild(folder), builtAtMs }
    return kept.build
  }
}

function readManifest(folder: string): Record<string, Chunk> | undefined {
  const text = readIfThere(join(folder, MANIFEST))
  return text && (JSON.parse(text.toString()) as Record<string, Chunk>)
}

function readFile(folder: string, name: string): ConsoleFile {
  const path = join(folder, name)
  return {
    type: TYPES[extname(name)] ?? 'application/octet-stream',
    body: readFileSync(path),
    compressed: readIfThere(`${path}.br`),
  }
}

function readIfThere(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}
