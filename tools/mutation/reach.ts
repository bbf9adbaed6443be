import { posix } from 'node:path'
import type { Mutant } from './mutant.ts'

/** A part of a file that ran `count` times: positions in UTF-16 units. */
export type Span = [start: number, end: number, count: number]

/** Which code the tests of one file ran, by the path of the code. */
export interface ReachedCode {
  /** The file of the tests. */
  file: string
  /** Lines run outside of its tests: hooks, and background work. */
  shared: Record<string, Span[]>
  /** By the id of the test. */
  tests: Record<string, Record<string, Span[]>>
}

/** A test with what it costs. */
export interface TestOfRun {
  id: string
  /** Its file. */
  file: string
  durationMs: number
}

/** Which tests reach which code. */
export interface Reach {
  /** The tests that run the code of a mutant, those that notice it probably first. */
  findTests(mutant: Mutant): TestOfRun[]
}

/** Tests of one change that are few: what they made may be kept in memory, such as a text, and be used by all others. */
const FEW_TESTS = 5

/**
 * Builds what `findTests` asks. `tests` are those that passed. Code that runs only while its module is loaded, as what builds
 * the text of a statement, is known to no test: those beside it, and in its folder, stand for all, or where there are none
 * those whose file loads it (`findImporters`). They judge a constant too that other files use,
 * what few tests ran, and what ran outside of tests: perhaps as the first file of a process loaded its module.
 */
export function buildReach(
  tests: readonly TestOfRun[],
  reached: readonly ReachedCode[],
  findImporters: (path: string) => readonly string[],
): Reach {
  const byFile = new Map(reached.map((item) => [item.file, item]))
  const runs = ({ id, file }: TestOfRun, mutant: Mutant): boolean => {
    const code = byFile.get(file)
    if (!code) return false
    const spans = [...(code.tests[id]?.[mutant.path] ?? [])]
    const shared = code.shared[mutant.path] ?? []
    return mutant.runsAt.some((position) => hasRun(spans, position) || hasRun(shared, position))
  }
  const runsOutside = ({ path, runsAt }: Mutant) =>
    reached.some(({ shared }) => runsAt.some((position) => hasRun(shared[path] ?? [], position)))
  const findUncounted = (path: string) => {
    const near = tests.filter(({ file }) => isNear(file, path))
    if (near.length > 0) return near
    const importers = findImporters(path)
    return tests.filter(({ file }) => importers.some((importer) => file.endsWith(`/${importer}`)))
  }
  return {
    findTests: (mutant) => {
      const found = tests.filter((test) => runs(test, mutant))
      const isUncounted = found.length <= FEW_TESTS || mutant.isUsedElsewhere || runsOutside(mutant)
      const uncounted = isUncounted ? findUncounted(mutant.path) : []
      const chosen = [...new Set([...found, ...uncounted])]
      const rank = ({ file }: TestOfRun) => (isBeside(file, mutant.path) ? 0 : isSlow(file) ? 2 : 1)
      return chosen.toSorted((a, b) => rank(a) - rank(b) || a.durationMs - b.durationMs)
    },
  }
}

/** Whether the innermost span around a position ran. Pure. */
export function hasRun(spans: readonly Span[], position: number): boolean {
  let innermost: Span | undefined
  for (const span of spans) {
    const [start, end, count] = span
    if (position < start || position >= end) continue
    const length = innermost ? innermost[1] - innermost[0] : Number.POSITIVE_INFINITY
    // The same part may be counted in several looks.
    if (end - start < length || (end - start === length && count > 0)) innermost = span
  }
  return innermost !== undefined && innermost[2] > 0
}

/**
 * The files of tests of which the first notice a change of `path` probably: those beside it, those in its folder that load
 * it, and then those between which and it the fewest others are loaded. `named` come directly behind those beside it.
 * `importers` load the file, the nearest first. Pure.
 */
export function rankTestFiles(
  path: string,
  files: readonly string[],
  { importers, named }: { importers: readonly string[]; named: readonly string[] },
): string[] {
  const near = new Map(importers.map((importer, index) => [importer, index]))
  const rank = (file: string) => [
    isBeside(file, path) ? (stemOf(file) === stemOf(path) ? 0 : 1) : named.includes(file) ? 2 : 3,
    near.has(file) ? 0 : 1,
    isNear(file, path) ? 0 : 1,
    isSlow(file) ? 1 : 0,
    near.get(file) ?? Number.POSITIVE_INFINITY,
  ]
  return files
    .filter((file) => near.has(file) || isNear(file, path) || named.includes(file))
    .map((file) => ({ file, by: rank(file) }))
    .sort((a, b) => a.by.map((value, at) => value - b.by[at]!).find((order) => order !== 0) ?? 0)
    .map(({ file }) => file)
}

const isSlow = (file: string) => /\.slow\.test\.ts$/.test(file)

const stemOf = (path: string) => posix.basename(path).split('.')[0]

/** `router-run.slow.test.ts` is beside `router.ts` too. */
function isBeside(test: string, path: string): boolean {
  return isNear(test, path) && `${stemOf(test)}-`.startsWith(`${stemOf(path)}-`)
}

function isNear(test: string, path: string): boolean {
  return posix.dirname(test).endsWith(posix.dirname(path))
}
