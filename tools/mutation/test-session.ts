import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { BaseSequencer, createVitest, type TestModule, type TestRunResult, type TestSpecification } from 'vitest/node'
import { keepProcess } from './kept-process.ts'
import type { ReachedCode, TestOfRun } from './reach.ts'

/** Result of the tests of a mutant; `timeout` when they did not end in time, which is noticed as well. */
export type Verdict = { kind: 'killed'; by: string } | { kind: 'timeout' } | { kind: 'survived' }

/** Input of the test process before each file. */
export interface Round {
  number: number
  /** Modules that it loads anew: the changed one, and those that load it. */
  stale: readonly string[]
  /** How long a test of a file may take, by the path of the file. */
  limitsMs: Readonly<Record<string, number>>
  /** The folder for what each test runs of these files; absent when tests judge. */
  reach?: { folder: string; paths: readonly string[] }
}

/** Inputs for judging a mutant. */
export interface Judgement {
  /** The tests, those of one file one after the other. */
  tests: readonly TestOfRun[]
  /** The modules that the change concerns, from the root. */
  stale: readonly string[]
  /** How long the tests may take together. */
  limitMs: number
}

/** Runs tests of a copy of the repository again and again: one PostgreSQL, one process of tests at a time. */
export interface TestSession extends AsyncDisposable {
  /** The files of tests, from the root. */
  files: readonly string[]
  /** Runs these files of tests once as the code is. Returns those that passed, what each reached, and the names of the others. */
  look(files: readonly string[]): Promise<{ tests: TestOfRun[]; reached: ReachedCode[]; failed: string[] }>
  /** Runs some of the tests, in this order of files, until one fails. */
  judge(judgement: Judgement): Promise<Verdict>
}

/** How long a test of a mutant may take at least, and as a multiple of what it took unchanged: one that waits for ever fails then. */
const TEST_LIMIT_MS = 5_000
const TEST_SLOWER = 10

/** Changes that one process judges. What it loaded anew for each of them stays in its memory. */
const ROUNDS_OF_PROCESS = 20

/** The tests that notice a mutant probably come first. */
class InGivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files
  }
}

/** The copy of the repository, and a folder for notes, which the caller removes. */
interface Folders {
  root: string
  scratch: string
}

/** Opens a session for the mutants of `paths`. `patterns` select the files of tests. */
export async function openTestSession(
  { root, scratch }: Folders,
  patterns: readonly string[],
  paths: readonly string[],
): Promise<TestSession> {
  const processFile = join(scratch, 'process')
  const roundFile = join(scratch, 'round')
  const folder = join(scratch, 'reach')
  process.chdir(root)
  process.env.MUTATION_PROCESS = processFile
  process.env.MUTATION_ROUND = roundFile
  process.env.NODE_NO_WARNINGS = '1'
  process.env.NODE_COMPILE_CACHE = join(scratch, 'compiled')
  const kept = keepProcess()
  const vitest = await createVitest(
    'test',
    {
      root,
      config: join(root, 'vitest.config.ts'),
      watch: false,
      pool: kept.pool,
      maxWorkers: 1,
      retry: 0,
      reporters: [{}],
      silent: true,
      sequence: { sequencer: InGivenOrder },
    },
    // Those of the repository watch the tests too.
    { test: { setupFiles: [join(import.meta.dirname, 'reach-setup.ts')] } },
  )
  await vitest.standalone()
  const specifications = await vitest.globTestSpecifications([...patterns])
  const byFile = new Map(
    specifications.map((specification) => [
      relative(root, specification.moduleId).replaceAll('\\', '/'),
      specification,
    ]),
  )
  const setBail = (failures: number) => {
    vitest.config.bail = failures
    vitest.projects[0]!.config.bail = failures
  }
  /** Rounds of the process. Another one counts from the start, so that it finds what Node compiled of the same addresses. */
  let rounds = 0

  async function beginRound(round: Omit<Round, 'number'>): Promise<void> {
    if (rounds >= ROUNDS_OF_PROCESS) await endProcess()
    rounds += 1
    await writeFile(roundFile, JSON.stringify({ number: rounds, ...round } satisfies Round))
  }

  async function endProcess(): Promise<void> {
    await kept.end()
    rounds = 0
  }

  async function runRound(judgement: Judgement): Promise<Verdict & { isAssertion?: boolean }> {
    const { tests, limitMs } = judgement
    const files = Map.groupBy(tests, ({ file }) => file)
    const limitsMs = Object.fromEntries(
      [...files].map(([file, those]) => [
        file,
        TEST_LIMIT_MS + TEST_SLOWER * Math.max(...those.map(({ durationMs }) => durationMs)),
      ]),
    )
    await beginRound({ stale: judgement.stale, limitsMs })
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
    if (isLate) return { kind: 'timeout' }
    const failure = findFailure(result)
    if (failure === undefined) return { kind: 'survived' }
    return failure.isLate ? { kind: 'timeout' } : { kind: 'killed', by: failure.name, isAssertion: failure.isAssertion }
  }

  return {
    files: [...byFile.keys()],
    look: async (files) => {
      await rm(folder, { recursive: true, force: true })
      await beginRound({ stale: [], limitsMs: {}, reach: { folder, paths } })
      setBail(0)
      vitest.state.filesMap.clear()
      const result = await vitest.runTestSpecifications(files.map((file) => byFile.get(file)!))
      setBail(1)
      return { ...readTests(result), reached: await readReached(folder) }
    },
    judge: async (judgement) => {
      let verdict = await runRound(judgement)
      // State left by an earlier change may fail a test, but not an assertion about a value.
      if (verdict.kind === 'killed' && !verdict.isAssertion && kept.wasReused()) {
        await endProcess()
        verdict = await runRound(judgement)
      }
      // A test that hangs goes on.
      if (verdict.kind === 'timeout') await endProcess()
      return verdict
    },
    [Symbol.asyncDispose]: async () => {
      await kept.end()
      await vitest.close()
    },
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

interface Failure {
  name: string
  /** Whether a value was not the expected one. */
  isAssertion: boolean
  /** Whether the test took longer than it may. */
  isLate: boolean
}

/** The first test that failed, or an error outside of tests. */
function findFailure({ testModules, unhandledErrors }: TestRunResult): Failure | undefined {
  for (const module of testModules) {
    const failure = findFailureOf(module)
    if (failure !== undefined) return failure
  }
  if (unhandledErrors.length === 0) return undefined
  return { name: 'an error outside of tests', isAssertion: false, isLate: false }
}

function findFailureOf(module: TestModule): Failure | undefined {
  for (const test of module.children.allTests()) {
    const { state, errors = [] } = test.result()
    if (state !== 'failed') continue
    return {
      name: `${module.relativeModuleId} > ${test.fullName}`,
      isAssertion: errors.some(({ name }) => name === 'AssertionError'),
      isLate: errors.some(({ message }) => message.startsWith('Test timed out in')),
    }
  }
  if (module.state() !== 'failed') return undefined
  return { name: module.relativeModuleId, isAssertion: false, isLate: false }
}
