import { type Finding, isTest, lineAt, type SourceFile } from './source-file.ts'

/** A pattern that must not stand in some files. */
export interface BannedText {
  name: string
  pattern: RegExp
  /** Which files it holds for. */
  holdsFor: (path: string) => boolean
  /** `code` looks past comments and strings; `text` at everything. */
  looksAt: 'code' | 'text'
  /** Remedy. */
  message: string
}

/** The one place of each thing that the rest takes as an argument. */
const SOURCES = ['src/app/config/config.ts', 'src/base/clock.ts', 'src/base/random.ts']

const isService = (path: string) =>
  path.startsWith('src/') && path.endsWith('.ts') && !isTest(path) && !SOURCES.includes(path)
const isTestFile = (path: string) => path.endsWith('.test.ts')
const isOurs = (path: string) => !/^(?:LICENSE|package-lock\.json|test\/tidy)/.test(path)

/** Everything the repository bans by the text of a file. */
export const BANNED_TEXTS: readonly BannedText[] = [
  {
    name: 'time comes in as an argument',
    pattern: /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bsetTimeout\(|\bsetInterval\(|from '(?:node:)?timers/,
    holdsFor: isService,
    looksAt: 'code',
    message: 'take a Clock (src/base/clock.ts)',
  },
  {
    name: 'fields of the log are in snake case',
    pattern: /\blog(?:ger)?(?:\.\w+|\[\w+\])\(\s*\{(?:[^{}]*,)?\s*[a-z]+[A-Z]\w*\s*[:,}]/,
    holdsFor: isService,
    looksAt: 'code',
    message: 'name the field as the others: duration_ms',
  },
  {
    name: 'SQL stands in stores',
    pattern: /\bsql`|\bsql<|\bsql\.raw\(|\.(?:selectFrom|insertInto|updateTable|deleteFrom)\(|\.query\(/,
    holdsFor: (path) => isService(path) && !path.endsWith('.store.ts') && !path.startsWith('src/postgres/'),
    looksAt: 'code',
    message: 'put the statement into the <feature>.store.ts of its table',
  },
  {
    name: 'a permission is written once',
    pattern: /\b(?:findPermissionScope|isUnderCeiling|checkKeyMay|findOwners)\(\s*\w+(?:\.\w+)*,\s*['`]/,
    holdsFor: isService,
    looksAt: 'text',
    message: 'take the permission of the request, or a constant that the declaration of the route uses too',
  },
  {
    name: 'no test asserts nothing',
    pattern: /\bexpect\((?:true|false|1|0)\)/,
    holdsFor: isTestFile,
    looksAt: 'code',
    message: 'assert what the guarantee is about',
  },
  {
    name: 'no test sleeps',
    pattern: /\bsetTimeout\(\s*(?:resolve|done|r)\b|\bsystemClock\.sleep\(|from '(?:node:)?timers/,
    holdsFor: isTestFile,
    looksAt: 'code',
    message: 'advance the manual clock, or wait for the event itself with a limit',
  },
  {
    name: 'a comment begins with its subject',
    pattern: /(?:\/\*\*|\/\/|^ *\*) What\b/m,
    holdsFor: (path) => /\.(?:tsx?|mjs)$/.test(path) && !isTest(path),
    looksAt: 'text',
    message: 'name the thing first: "Interval between sweeps", not "What passes between sweeps"',
  },
  {
    name: 'nothing is left for later',
    pattern: /\b(?:TODO|FIXME|XXX|HACK)\b/,
    holdsFor: isOurs,
    looksAt: 'text',
    message: 'do it, or write it down as an issue',
  },
  {
    name: "no path of somebody's machine",
    pattern: /(?<![\w.~-])\/(?:work|home|Users|mnt|workspace|tmp)\/[\w.-]+/,
    holdsFor: isOurs,
    looksAt: 'text',
    message: 'the repository works wherever it lies; build paths from import.meta.dirname or os.tmpdir()',
  },
  {
    name: 'no registry host',
    pattern: /\bregistry\.(?:npmjs|yarnpkg)\.\w+|\bnpm\.pkg\.github\.com|\bartifactory\b|\bregistry=https?:/i,
    holdsFor: (path) => !path.startsWith('test/tidy'),
    looksAt: 'text',
    message: 'the registry is a matter of whoever installs',
  },
]

/** The places where a banned text stands, one finding a file. */
export function findBannedText(rule: BannedText, files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) => {
    if (!rule.holdsFor(file.path)) return []
    const match = rule.pattern.exec(rule.looksAt === 'code' ? file.code : file.text)
    // A module's name is a string, so it is looked for in the text; the rest must be code.
    const inText = match ?? (rule.pattern.source.includes("from '") ? /from '(?:node:)?timers/.exec(file.text) : null)
    if (!inText) return []
    return [{ key: file.path, message: `line ${lineAt(file.text, inText.index)}: ${rule.message}` }]
  })
}
