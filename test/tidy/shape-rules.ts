import { posix } from 'node:path'
import { type Finding, isTest, lineAt, type SourceFile } from './source-file.ts'

const MAX_LINES = 300
const MAX_TEST_LINES = 500
const MAX_FUNCTION_LINES = 70
const MAX_CLOSURE_LINES = 120
const MAX_PARAMETERS = 3

const DRAWERS = [
  'index',
  'types',
  'utils',
  'util',
  'common',
  'shared',
  'helpers',
  'helper',
  'lib',
  'misc',
  'manager',
  'service',
]

const isProgram = (path: string) => /\.(?:ts|tsx|mjs)$/.test(path) && !path.startsWith('docs/')
const isGenerated = (path: string) => path.endsWith('.generated.ts')
const isPublicSource = (path: string) => /^(?:src|packages\/[^/]+\/src)\/.*\.ts$/.test(path) && !isTest(path)

/** Files and folders are named by their concept; nothing is a drawer. */
export function findBadNames(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isProgram(path))
    .flatMap(({ path }) => {
      const parts = path.split('/')
      const drawer = [posix.basename(path).split('.')[0]!, ...parts.slice(0, -1)].find((part) => DRAWERS.includes(part))
      return drawer ? [{ key: path, message: `"${drawer}" says nothing; name the concept` }] : []
    })
}

/** How many lines each file may have. */
export function findLongFiles(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isProgram(path) && !isGenerated(path))
    .flatMap(({ path, text }) => {
      const lines = countLines(text)
      const limit = isTest(path) ? MAX_TEST_LINES : MAX_LINES
      return lines > limit ? [{ key: path, message: `${lines} lines, over ${limit}; split it by concept` }] : []
    })
}

/** Lines of a text, the one after the last newline not counted. */
function countLines(text: string): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
}

const FUNCTION_START =
  /^(\s*)(?:export )?(?:default )?(?:async )?(?:function\b|(?:const|let) \w+ = (?:async )?(?:\(|\w+ =>)|\w+: (?:async )?\()/

/**
 * Functions of more than 70 lines of their own: the functions inside are counted for themselves. The formatter indents, so a
 * function ends where its indentation comes back.
 */
export function findLongFunctions(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isProgram(path) && !isTest(path))
    .flatMap(({ path, code }) => {
      const functions = listFunctions(code.split('\n'))
      return functions.flatMap(({ start, end }) => {
        const inner = functions.filter((item) => item.start > start && item.end < end)
        const outermost = inner.filter(
          (item) => !inner.some((other) => other.start < item.start && other.end > item.end),
        )
        const length = end - start + 1 - outermost.reduce((sum, item) => sum + item.end - item.start + 1, 0)
        if (length <= MAX_FUNCTION_LINES) return []
        return [{ key: path, message: `line ${start + 1}: a function of ${length} lines of its own` }]
      })
    })
}

/** Functions of more than 120 lines with all that is inside: what shares so much state is split by its states. */
export function findLongClosures(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isProgram(path) && !isTest(path))
    .flatMap(({ path, code }) =>
      listFunctions(code.split('\n')).flatMap(({ start, end }) => {
        const length = end - start + 1
        if (length <= MAX_CLOSURE_LINES) return []
        return [{ key: path, message: `line ${start + 1}: a function of ${length} lines with those inside` }]
      }),
    )
}

/** The functions of a program by their first and last line, counted from 0. */
function listFunctions(lines: readonly string[]): { start: number; end: number }[] {
  return lines.flatMap((line, start) => {
    const indent = FUNCTION_START.exec(line)?.[1]
    // A type that names a function opens nothing.
    if (indent === undefined || !/[{(]$/.test(line.trimEnd())) return []
    const isEnd = (text: string) => text.startsWith(`${indent}}`) && !text.trimEnd().endsWith('{')
    const end = lines.findIndex((line, index) => index > start && isEnd(line))
    return end === -1 ? [] : [{ start, end }]
  })
}

/** Functions that take more than three positional parameters. `deps` and the database, which stand before them, do not count. */
export function findLongParameterLists(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isProgram(path) && !isTest(path))
    .flatMap(({ path, code }) =>
      [...code.matchAll(/\bfunction\s*\*?\s*\w*(?:<[^(]*>)?\(/g)].flatMap((match) => {
        const count = countParameters(code, match.index + match[0].length)
        const message = `line ${lineAt(code, match.index)}: ${count} parameters; after three, take an object`
        return count > MAX_PARAMETERS ? [{ key: path, message }] : []
      }),
    )
}

const GIVEN_FIRST = /^\s*_?(?:deps|db|tx|shell|server)\b/

/** Counts what stands between the bracket before `from` and its partner, separated by commas of the outer level. */
function countParameters(code: string, from: number): number {
  let depth = 0
  let start = from
  let end = from
  const parameters: string[] = []
  for (let at = from; at < code.length; at++) {
    const char = code[at]!
    if ('([{<'.includes(char)) depth += 1
    else if (')]}'.includes(char) || (char === '>' && code[at - 1] !== '=')) {
      if (depth === 0) break
      depth -= 1
    }
    if (char === ',' && depth === 0) {
      parameters.push(code.slice(start, at))
      start = at + 1
    }
    end = at + 1
  }
  parameters.push(code.slice(start, end))
  return parameters.filter((parameter) => parameter.trim() !== '' && !GIVEN_FIRST.test(parameter)).length
}

/** Exported functions without a doc comment. */
export function findUndocumented(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isPublicSource(path) && !isGenerated(path))
    .flatMap(({ path, text, code }) => {
      const lines = text.split('\n')
      return code.split('\n').flatMap((line, index) => {
        const name = /^export (?:default )?(?:async )?function\*? ?(\w*)/.exec(line)?.[1]
        if (name === undefined || lines[index - 1]?.trimEnd().endsWith('*/')) return []
        return [{ key: path, message: `line ${index + 1}: ${name} has no doc comment` }]
      })
    })
}

/** Names of tests that stand twice in one file, under the same `describe`. */
export function findRepeatedTestNames(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => path.endsWith('.test.ts'))
    .flatMap(({ path, text, code }) => {
      const seen = new Set<string>()
      let group = ''
      return [...text.matchAll(/^\s*(describe|test|it)(?:\.\w+)*(?:\([^\n]*\))?\(\s*(['"`])(.*?)\2/gm)].flatMap(
        (match) => {
          const [whole, word, , name = ''] = match
          if (code.slice(match.index, match.index + whole.length).trim() === '') return []
          if (word === 'describe') group = name
          const key = `${group} > ${name}`
          if (word === 'describe' || !seen.has(key)) {
            seen.add(key)
            return []
          }
          return [{ key: path, message: `line ${lineAt(text, match.index)}: the name "${name}" stands twice` }]
        },
      )
    })
}

interface LockFile {
  packages?: Record<string, { resolved?: string }>
}

interface PackageFile {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** The lock file names no place to download from, and package.json names exact versions, or folders of this repository. */
export function findLooseDependencies(files: readonly SourceFile[]): Finding[] {
  return files.flatMap(({ path, text }) => {
    if (path === 'package-lock.json') {
      const { packages = {} } = JSON.parse(text) as LockFile
      const resolved = Object.entries(packages).find(([, entry]) => entry.resolved?.startsWith('http'))
      return resolved
        ? [{ key: path, message: `${resolved[0]} is "resolved"; npm install keeps omit-lockfile-registry-resolved` }]
        : []
    }
    if (path !== 'package.json') return []
    const { dependencies, devDependencies, optionalDependencies } = JSON.parse(text) as PackageFile
    return Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
      .filter(
        ([, version]) => !/^(?:\d+\.\d+\.\d+(?:-[\w.]+)?|npm:.+@\d+\.\d+\.\d+|file:packages\/[\w-]+)$/.test(version),
      )
      .map(([name, version]) => ({ key: path, message: `${name} ${version}: name one exact version` }))
  })
}
