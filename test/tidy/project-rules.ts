import { matchesGlob } from 'node:path'
import { SLOW_TESTS } from '../harness/run/slow-tests.ts'
import { type Finding, isTest, listImports, type SourceFile } from './source-file.ts'

/** Calls that start something outside the process of a test. */
const STARTERS = ['node:child_process', 'node:worker_threads', 'playwright-core', 'src/postgres/embedded/embedded.ts']

/** A fast test that starts processes, by itself or by a module of the tests that it imports. */
export function findSlowStarters(files: readonly SourceFile[]): Finding[] {
  const byPath = new Map(files.map((file) => [file.path, file]))
  const findStarter = (path: string, seen: Set<string>): string | undefined => {
    const file = byPath.get(path)
    if (!file || !isTest(path) || seen.has(path)) return undefined
    seen.add(path)
    for (const { to, isTypeOnly } of listImports(file)) {
      if (isTypeOnly) continue
      const found = STARTERS.includes(to) ? to : findStarter(to, seen)
      if (found) return found
    }
    return undefined
  }
  return files
    .filter(({ path }) => path.endsWith('.test.ts') && !SLOW_TESTS.some((glob) => matchesGlob(path, glob)))
    .flatMap(({ path }) => {
      const starter = findStarter(path, new Set())
      const message = `a test that uses ${starter} is named *.slow.test.ts`
      return starter ? [{ key: path, message }] : []
    })
}
