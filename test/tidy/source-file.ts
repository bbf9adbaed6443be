import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative, sep } from 'node:path'

/** The checkout. */
export const ROOT = join(import.meta.dirname, '..', '..')

/** One file as the rules see it. */
export interface SourceFile {
  /** From the root of the repository, with slashes. */
  path: string
  text: string
  /** `text` with comments and the contents of strings blanked, every position kept. Only of programs; else `text`. */
  code: string
}

/** A broken rule. `key` is what an exception names: the path, or `from -> to` of an import. */
export interface Finding {
  key: string
  message: string
}

/** An import of one file by another. */
export interface Import {
  from: string
  /** The imported file for a relative import, else the package's name as written. */
  to: string
  isRelative: boolean
  isTypeOnly: boolean
}

const TEXT_FILE =
  /\.(?:ts|tsx|mjs|js|json|jsonc|md|sql|yml|yaml|css|html|py|go|rb|php|java|cs|rs|toml|sh|txt)$|(?:^|\/)[^./]+$|(?:^|\/)\.[^/]+$/
const PROGRAM = /\.(?:ts|tsx|mjs|js)$/

/** Everything git tracks, and what it would track: untracked files that are not ignored. Text files only. */
export function readRepository(): SourceFile[] {
  return listPaths()
    .filter((path) => TEXT_FILE.test(path) && existsSync(join(ROOT, path)))
    .map((path) => buildSourceFile(path, readFileSync(join(ROOT, path), 'utf8')))
}

const GIT_LIST = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']

function listPaths(): string[] {
  const { status, stdout } = spawnSync('git', GIT_LIST, { cwd: ROOT, encoding: 'utf8' })
  if (status === 0) return [...new Set(stdout.split('\0'))].filter((path) => path !== '')
  // A copy without git, or a machine without it: all files, as far as they would not be ignored.
  return readdirSync(ROOT, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !IGNORED.test(path))
}

/** Files that .gitignore names. */
const IGNORED = /(?:^|\/)(?:\.git|node_modules|\.signalbox|dist|coverage)\/|\.log$|(?:^|\/)(?:\.env|\.install-lock)$/

/** Builds a file for the rules; samples of self-tests come through here too. */
export function buildSourceFile(path: string, text: string): SourceFile {
  let code: string | undefined
  return {
    path,
    text,
    // Most who read the repository look at the text of files alone.
    get code() {
      code ??= PROGRAM.test(path) ? maskText(text) : text
      return code
    },
  }
}

/** Whether the file is a test or serves tests only. */
export function isTest(path: string): boolean {
  return path.endsWith('.test.ts') || path.startsWith('test/') || /^packages\/[^/]+\/test\//.test(path)
}

/** The 1-based line of a position. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}

/** Blanks comments and the contents of strings, template literals and regular expressions, keeping every position and line. */
export function maskText(text: string): string {
  let out = ''
  /** How much of the text is in `out`. */
  let taken = 0
  // By UTF-16 unit, as positions are counted.
  const blank = (from: number, to: number) => {
    out += text.slice(taken, from) + text.slice(from, to).replaceAll(/[^\n]/g, ' ')
    taken = Math.max(from, Math.min(to, text.length))
  }
  // One entry for each `${` that is open: how many braces are open inside it.
  const templates: number[] = []
  let at = 0
  let lastCode = ''
  const skipTemplate = (from: number) => {
    const end = findTemplateEnd(text, from)
    blank(from, end)
    if (text[end] === '$') templates.push(0)
    return text[end] === '$' ? end + 2 : end + 1
  }
  while (at < text.length) {
    const char = text[at]!
    const next = char === '/' ? text[at + 1] : undefined
    if (next === '/' || next === '*') {
      const end = next === '/' ? indexOrEnd(text, '\n', at) : indexOrEnd(text, '*/', at + 2) + 2
      blank(at, end)
      at = end
      continue
    }
    if (char === "'" || char === '"' || (char === '/' && isRegexAfter(text, at, lastCode))) {
      const end = findQuoteEnd(text, at)
      blank(at + 1, end)
      at = end + 1
      lastCode = "'"
      continue
    }
    if (char === '`') at = skipTemplate(at + 1)
    else if (char === '}' && templates.at(-1) === 0) {
      templates.pop()
      at = skipTemplate(at + 1)
    } else {
      if (templates.length > 0 && char === '{') templates[templates.length - 1]! += 1
      if (templates.length > 0 && char === '}') templates[templates.length - 1]! -= 1
      at += 1
    }
    if (!SPACE.includes(char)) lastCode = char
  }
  return out + text.slice(taken)
}

const SPACE = ' \n\t\r'

function indexOrEnd(text: string, wanted: string, from: number): number {
  const index = text.indexOf(wanted, from)
  return index === -1 ? text.length : index
}

/** A slash begins a regular expression where no value can have ended. `lastCode`: the last character before it. */
function isRegexAfter(text: string, at: number, lastCode: string): boolean {
  if (!/\w/.test(lastCode)) return '(,=:[!&|?{};+*<>~^-'.includes(lastCode)
  return /(?:^|[^\w.$])(?:return|case|typeof|in|of)\s*$/.test(text.slice(Math.max(0, at - 20), at))
}

/** Where the string or regular expression that begins at `from` ends: its closing sign, or the end of the line. */
function findQuoteEnd(text: string, from: number): number {
  const quote = text[from]
  let inClass = false
  for (let at = from + 1; at < text.length; at++) {
    const char = text[at]
    if (char === '\\') at += 1
    else if (char === '\n') return at
    else if (quote === '/' && char === '[') inClass = true
    else if (quote === '/' && char === ']') inClass = false
    else if (char === quote && !inClass) return at
  }
  return text.length
}

/** Where the template text that begins at `from` ends: at its backtick, or at the `$` of a `${`. */
function findTemplateEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '`' || (text[at] === '$' && text[at + 1] === '{')) return at
  }
  return text.length
}

const IMPORT = /\b(?:import|export)\b([^'"`;]*?)\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/g

/** The imports and re-exports of a file, static and dynamic. */
export function listImports(file: SourceFile): Import[] {
  if (!PROGRAM.test(file.path)) return []
  const imports: Import[] = []
  for (const match of file.text.matchAll(IMPORT)) {
    if (!/^(?:import|export)/.test(file.code.slice(match.index, match.index + 6))) continue
    const [, clause = '', named, bare] = match
    const specifier = named ?? bare ?? ''
    const isRelative = specifier.startsWith('.')
    const to = isRelative ? posix.join(posix.dirname(file.path), specifier) : specifier
    imports.push({ from: file.path, to, isRelative, isTypeOnly: isTypeOnlyClause(clause) })
  }
  return imports
}

function isTypeOnlyClause(clause: string): boolean {
  if (/^\s*type\b/.test(clause)) return true
  const names = /^\s*\{([^}]*)\}\s*$/.exec(clause)?.[1]
  const parts = names?.split(',').filter((part) => part.trim() !== '') ?? []
  return parts.length > 0 && parts.every((part) => /^\s*type\s/.test(part))
}
