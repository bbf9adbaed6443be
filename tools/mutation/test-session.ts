import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BaseSequencer, createVitest, type TestModule, type TestRunResult, type TestSpecification } from 'vitest/node'
import type { ReachedCode, TestOfRun } from './reach.ts'

/** What the tests of a mutant came to; `timeout` when they did not end in time, which is noticed as well. */
export type Verdict = { kind: 'killed'; by: string } | { kind: 'timeout' } | { kind: 'survived' }

/** Runs tests of a copy of the repository again and again: one PostgreSQL, one process of tests at a time. */
export interface TestSession extends AsyncDisposable {
  /** Runs all tests once as the code is. Returns those that passed, what each reached, and the names of the others. */
  look(files: readonly string[]): Promise<{ tests: TestOfRun[]; reached: ReachedCode[]; failed: string[] }>
  /** Runs some of the tests, in this order of files, until one fails. */
  judge(tests: readonly TestOfRun[], limitMs: number): Promise<Verdict>
}

/** How long one test of a mutant may take: what waits for an event that never comes fails then. */
const TEST_LIMIT_MS = 30_000

/** The tests that notice a mutant probably come first. */
class InGivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files
  }
}

/** Opens a session on the copy in `root`. `scratch` is a folder for its notes, which the caller removes. `patterns` select the files of tests. */
export async function openTestSession(
  root: string,
  scratch: string,
  patterns: readonly string[],
): Promise<TestSession> {
  const processFile = join(scratch, 'process')
  const folder = join(scratch, 'reach')
  process.chdir(root)
  process.env.MUTATION_PROCESS = processFile
  process.env.NODE_NO_WARNINGS = '1'
  process.env.NODE_COMPILE_CACHE = join(scratch, 'compiled')
  const vitest = await createVitest('test', {
    root,
    config: join(root, 'vitest.config.ts'),
    watch: false,
    maxWorkers: 1,
    retry: 0,
    reporters: [{}],
    silent: true,
    sequence: { sequencer: InGivenOrder },
    setupFiles: [join(import.meta.dirname, 'reach-setup.ts')],
    testTimeout: TEST_LIMIT_MS,
    hookTimeout: TEST_LIMIT_MS,
  })
  await vitest.standalone()
  const specifications = await vitest.globTestSpecifications([...patterns])

  return {
    look: async (files) => {
      process.env.MUTATION_REACH = folder
      process.env.MUTATION_FILES = files.join('\n')
      const result = await vitest.runTestSpecifications(specifications)
      delete process.env.MUTATION_REACH
      return { ...readTests(result), reached: await readReached(folder) }
    },
    judge: async (tests, limitMs) => {
      vitest.config.bail = 1
      vitest.projects[0]!.config.bail = 1
      const files = Map.groupBy(tests, ({ file }) => file)
      const chosen = [...files].map(([file, those]) =>
        vitest.projects[0]!.createSpecification(file, { testIds: those.map(({ id }) => id) }),
      )
      // It would answer with what files of an earlier run came to.
      vitest.state.filesMap.clear()
      let isLate = false
      const timer = setTimeout(async () => {
        isLate = true
        process.kill(Number(await readFile(processFile, 'utf8')), 'SIGKILL')
      }, limitMs)
      const result = await vitest.runTestSpecifications(chosen)
      clearTimeout(timer)
      const by = findFailure(result)
      if (isLate) return { kind: 'timeout' }
      return by === undefined ? { kind: 'survived' } : { kind: 'killed', by }
    },
    [Symbol.asyncDispose]: () => vitest.close(),
  }
}

function readTests({ testModules }: TestRunResult): { tests: TestOfRun[]; failed: string[] } {
  const tests: TestOfRun[] = []
  const failed: string[] = []
  for (const module of testModules) {
    if (module.errors().length > 0) failed.push(module.relativeModuleId)
    for (const test of module.children.allTests()) {
      const durationMs = test.diagnostic()?.duration ?? 0
      if (test.result().state === 'passed') tests.push({ id: test.id, file: module.moduleId, durationMs })
      else failed.push(`${module.relativeModuleId} > ${test.fullName}`)
    }
  }
  return { tests, failed }
}

async function readReached(folder: string): Promise<ReachedCode[]> {
  await mkdir(folder, { recursive: true })
  const names = await readdir(folder)
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as ReachedCode))
}

/** The first test that failed, or an error outside of tests. */
function findFailure({ testModules, unhandledErrors }: TestRunResult): string | undefined {
  for (const module of testModules) {
    const name = findFailureOf(module)
    if (name !== undefined) return name
  }
  return unhandledErrors.length > 0 ? 'an error outside of tests' : undefined
}

function findFailureOf(module: TestModule): string | undefined {
  for (const test of module.children.allTests())
    if (test.result().state === 'failed') return `${module.relativeModuleId} > ${test.fullName}`
  return module.state() === 'failed' ? module.relativeModuleId : undefined
}
