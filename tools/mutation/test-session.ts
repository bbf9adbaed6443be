import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import {
  BaseSequencer,
  createVitest,
  type TestModule,
  type TestRunResult,
  type TestSpecification,
  type Vitest,
} from 'vitest/node'
import { type KeptProcess, keepProcess } from './kept-process.ts'
import type { ReachedCode, TestOfRun } from './reach.ts'

/** Result of the tests of a mutant; `timeout` when they did not end in time, which is noticed as well. */
export type Verdict = { kind: 'killed'; by: string } | { kind: 'timeout' } | { kind: 'survived' }

/** Input of the test process before each file. */
export interface Round {
  number: number
  /** Modules that it loads anew: the changed one, and those that load it. */
  stale: readonly string[]
  /** How long a test may take, by its id. */
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
  /** How long these tests may take together. Pure. */
  limitOf: (tests: readonly TestOfRun[]) => number
}

/** Note that the process of tests writes down before each file. */
export interface ProcessNote {
  pid: number
  /** Memory that it holds, in bytes. */
  held: number
  /** The test that took longer than it may: the process has ended. */
  late?: { id: string; name: string }
}

/** Runs tests of a copy of the repository again and again: one PostgreSQL, one process of tests at a time. */
export interface TestSession extends AsyncDisposable {
  /** The files of tests, from the root. */
  files: readonly string[]
  /** Runs these files of tests once as the code is. Returns those that passed, what each reached, and the names of the others. */
  look(files: readonly string[]): Promise<{ tests: TestOfRun[]; reached: ReachedCode[]; failed: string[] }>
  /** Runs some of the tests, in this order of files, until one fails twice. */
  judge(judgement: Judgement): Promise<Verdict>
}

/**
 * How long a test of a mutant may take at least, and as a multiple of what it took unchanged: one that waits for ever ends
 * then. One that was only slow passes at the second look, whose limits are longer.
 */
const TEST_LIMIT_MS = 1_500
const TEST_SLOWER = 5

/** Limits of the second look at a failure, as a multiple of those of the first: the machine may be busy. */
const AGAIN_SLOWER = 3

/** Memory of a process, in bytes, with which it judges no further change. What it loaded for each of them stays. */
const MOST_HELD = 1_200_000_000

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

/** Vitest as the repository runs it, with one process that is kept and what watches its tests. */
function openVitest(root: string, kept: KeptProcess): Promise<Vitest> {
  return createVitest(
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
}

/** The environment of the process of tests, which inherits it. */
function environmentOf(files: { processFile: string; roundFile: string; scratch: string }) {
  return {
    MUTATION_PROCESS: files.processFile,
    MUTATION_ROUND: files.roundFile,
    NODE_NO_WARNINGS: '1',
    NODE_COMPILE_CACHE: join(files.scratch, 'compiled'),
  }
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
  Object.assign(process.env, environmentOf({ processFile, roundFile, scratch }))
  const kept = keepProcess()
  const vitest = await openVitest(root, kept)
  await vitest.standalone()
  const specifications = await vitest.globTestSpecifications([...patterns])
  const byFile = new Map(specifications.map((entry) => [relative(root, entry.moduleId).replaceAll('\\', '/'), entry]))
  const setBail = (failures: number) => {
    vitest.config.bail = failures
    vitest.projects[0]!.config.bail = failures
  }
  /** Rounds of the process. Another one counts from the start, so that it finds what Node compiled of the same addresses. */
  let rounds = 0
  /** The process of the last round, which may hang before it begins the next one; 0 for none. */
  let lastPid = 0

  async function beginRound(round: Omit<Round, 'number'>): Promise<void> {
    const { pid, held } = rounds > 0 ? await readNote() : { pid: 0, held: 0 }
    if (pid > 0) lastPid = pid
    if (held > MOST_HELD) await endProcess()
    rounds += 1
    await writeFile(roundFile, JSON.stringify({ number: rounds, ...round } satisfies Round))
    // The process of the last round may have ended with a test that was late.
    await writeFile(processFile, JSON.stringify({ pid: 0, held: 0 } satisfies ProcessNote))
  }

  const readNote = async () => JSON.parse(await readFile(processFile, 'utf8')) as ProcessNote

  async function endProcess(): Promise<void> {
    await kept.end()
    rounds = 0
    lastPid = 0
  }

  /** Runs files of tests as the code is, and counts what they run. */
  async function lookOnce(files: readonly string[]) {
    await rm(folder, { recursive: true, force: true })
    await beginRound({ stale: [], limitsMs: {}, reach: { folder, paths } })
    setBail(0)
    vitest.state.filesMap.clear()
    const result = await vitest.runTestSpecifications(files.map((file) => byFile.get(file)!))
    setBail(1)
    return { ...readTests(result), reached: await readReached(folder) }
  }

  /** Runs tests beside a change until one fails. */
  async function runRound({ tests, stale, limitOf }: Judgement, slower: number): Promise<RoundResult> {
    const files = Map.groupBy(tests, ({ file }) => file)
    const limitsMs = Object.fromEntries(
      tests.map(({ id, durationMs }) => [id, slower * (TEST_LIMIT_MS + TEST_SLOWER * durationMs)]),
    )
    await beginRound({ stale, limitsMs })
    const chosen = [...files].map(([file, those]) =>
      vitest.projects[0]!.createSpecification(file, { testIds: those.map(({ id }) => id) }),
    )
    // It would answer with what files of an earlier run came to.
    vitest.state.filesMap.clear()
    let isLate = false
    const timer = setTimeout(async () => {
      isLate = true
      const pid = (await readNote()).pid || lastPid
      if (pid > 0) process.kill(pid, 'SIGKILL')
    }, slower * limitOf(tests))
    const result = await vitest.runTestSpecifications(chosen)
    clearTimeout(timer)
    const passed = new Set(readTests(result).tests.map(({ id }) => id))
    const { late } = await readNote()
    // A test that hung would go on.
    if (isLate || late) await endProcess()
    if (late) return { failure: { ...late, isAssertion: false, isLate: true }, passed }
    if (isLate) return { failure: { name: 'all', isAssertion: false, isLate }, passed }
    return { failure: findFailure(result), passed }
  }

  /**
   * A failed test runs once more, alone, with longer limits, and counts when it fails again: one that fails by chance, or for the
   * load of the machine, judges nothing. State left by an earlier change fails no assertion about a value: in a new process.
   */
  async function failsAgain(judgement: Judgement, failure: Failure): Promise<Failure | undefined> {
    if (!failure.isAssertion) await endProcess()
    const { tests } = judgement
    const those = tests.filter(({ id, file }) => (failure.id ? id === failure.id : (failure.file ?? file) === file))
    const { failure: again } = await runRound({ ...judgement, tests: those }, AGAIN_SLOWER)
    return again
  }

  return {
    files: [...byFile.keys()],
    look: async (files) => {
      const found = await lookOnce(files)
      // Leftovers of an earlier change in the process may have failed them.
      if (found.failed.length > 0 && rounds > 1) await endProcess()
      return rounds === 0 ? lookOnce(files) : found
    },
    judge: async (judgement) => {
      let open = judgement.tests
      while (open.length > 0) {
        const { failure, passed } = await runRound({ ...judgement, tests: open }, 1)
        if (failure === undefined) break
        const again = await failsAgain({ ...judgement, tests: open }, failure)
        if (again !== undefined) return again.isLate ? { kind: 'timeout' } : { kind: 'killed', by: again.name }
        if (failure.id === undefined && failure.file === undefined) break
        open = open.filter(({ id, file }) => !passed.has(id) && id !== failure.id && file !== failure.file)
      }
      return { kind: 'survived' }
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
      else failed.push(`${module.relativeModuleId} > ${test.fullName}${describeErrors(test.result().errors)}`)
    }
  }
  return { tests, failed }
}

const describeErrors = (errors: readonly { message: string }[] = []) =>
  errors.map(({ message }) => `\n    ${message.split('\n', 1)[0]}`).join('')

async function readReached(folder: string): Promise<ReachedCode[]> {
  await mkdir(folder, { recursive: true })
  const names = await readdir(folder)
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as ReachedCode))
}

interface Failure {
  name: string
  /** The test; absent for an error outside of tests. */
  id?: string
  /** The file of such an error. */
  file?: string
  /** Whether a value was not the expected one. */
  isAssertion: boolean
  /** Whether the test took longer than it may. */
  isLate: boolean
}

interface RoundResult {
  failure: Failure | undefined
  /** The ids of the tests that passed. */
  passed: ReadonlySet<string>
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
      id: test.id,
      isAssertion: errors.some(({ name }) => name === 'AssertionError'),
      isLate: false,
    }
  }
  if (module.state() !== 'failed') return undefined
  return { name: module.relativeModuleId, file: module.moduleId, isAssertion: false, isLate: false }
}
