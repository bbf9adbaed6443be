import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listNearest } from './areas.ts'
import { EXPLAINED, type Explained } from './explained.ts'
import { buildImporters } from './importers.ts'
import { applyMutant, type NamedMutant, nameMutant } from './mutant.ts'
import { buildReach, type ReachedCode, rankTestFiles, type TestOfRun } from './reach.ts'
import { listMutants } from './source-mutants.ts'
import { openTestSession, type Verdict } from './test-session.ts'

/** Files to run. */
export interface MutationRequest {
  /** A copy of the repository, which is changed and mended again and again. */
  root: string
  /** A folder for notes, which the caller removes. */
  scratch: string
  /** Files of programs, from the root. */
  paths: readonly string[]
  /** The 1-based lines on which the mutants of a file begin; without an entry all of them. */
  lines?: ReadonlyMap<string, readonly number[]>
  /** Parts of the paths of the tests that judge them. */
  tests: readonly string[]
  /** How many mutants, drawn by `seed`; undefined for all. */
  sample: number | undefined
  seed: string
  /** How long the tests of a mutant may take at least. */
  patienceMs: number
  /** How long the tests of a mutant took unchanged at most; of more, those are left out that are called last. */
  judgedMs: number
  /** Whether only the nearest tests judge. */
  isNear: boolean
  /** When to stop, by `performance.now()`; the others were not run. */
  untilMs: number
  /** Takes a line for the terminal. */
  print: (line: string) => void
  explained?: readonly Explained[]
}

/** Result of a mutant: `unreached` when no test runs its code. */
export type Outcome = Verdict['kind'] | 'unreached' | 'explained' | 'not-run'

/** Result of each mutant. */
export interface MutationResult {
  mutants: readonly { mutant: NamedMutant; outcome: Outcome }[]
}

/** The share of noticed mutants from which survivors need no explanation. */
export const GOAL = 0.95

/** Time limit for the tests of a mutant, as a multiple of their unchanged duration: the machine may be busy. */
const SLOWER = 5

/** Makes the mutants of the files one after the other, and lets the tests judge each. */
export async function runMutants(request: MutationRequest): Promise<MutationResult> {
  const { root, scratch, paths, print } = request
  const texts = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))
  const all = [...texts]
    .flatMap(([path, text]) => listMutants(path, text).map((mutant) => nameMutant(mutant, text)))
    .filter(({ path, line }) => request.lines?.get(path)?.includes(line) ?? true)
  const outcomes = new Map<NamedMutant, Outcome>()
  for (const mutant of all) outcomes.set(mutant, isExplained(mutant, request.explained) ? 'explained' : 'not-run')
  const open = all.filter((mutant) => outcomes.get(mutant) === 'not-run')
  const drawn = draw(open, request)
  print(`${all.length} mutants of ${paths.length} files, ${drawn.length} to run (seed ${request.seed}).`)
  if (drawn.length > 0) await judgeEach(drawn)
  return { mutants: all.map((mutant) => ({ mutant, outcome: outcomes.get(mutant)! })) }

  /** The nearest files of tests judge first. What they leave is judged by all others, which run once unchanged for it. */
  async function judgeEach(mutants: readonly NamedMutant[]): Promise<void> {
    await using session = await openTestSession({ root, scratch }, request.tests, paths)
    const findImporters = buildImporters(readPrograms(root))
    const known = { tests: [] as TestOfRun[], reached: [] as ReachedCode[], files: new Set<string>() }
    const look = async (files: readonly string[]) => {
      const unknown = files.filter((file) => !known.files.has(file))
      if (unknown.length === 0) return
      for (const file of unknown) known.files.add(file)
      const { tests, reached, failed } = await session.look(unknown)
      for (const name of failed) print(`left out, for it fails without a change: ${name}`)
      known.tests.push(...tests)
      known.reached.push(...reached)
    }
    const judge = async (mutant: NamedMutant): Promise<Verdict | undefined> => {
      const reach = buildReach(known.tests, known.reached, findImporters)
      const ran = judged.get(mutant)
      const judges = limitTests(
        reach.findTests(mutant).filter(({ id }) => !ran?.has(id)),
        request.judgedMs,
      )
      if (judges.length === 0) return ran && { kind: 'survived' }
      judged.set(mutant, new Set([...(ran ?? []), ...judges.map(({ id }) => id)]))
      const text = texts.get(mutant.path)!
      writeFileSync(join(root, mutant.path), applyMutant(mutant, text))
      const limitOf = (tests: readonly TestOfRun[]) =>
        request.patienceMs + SLOWER * tests.reduce((sum, item) => sum + item.durationMs, 0)
      const verdict = await session.judge({ tests: judges, stale: findImporters(mutant.path), limitOf })
      writeFileSync(join(root, mutant.path), text)
      return verdict
    }
    const judged = new Map<NamedMutant, ReadonlySet<string>>()
    const rank = (path: string) =>
      rankTestFiles(path, session.files, { importers: findImporters(path), named: listNearest(path) })
    /** One of the nearest files after the other, so that those behind the first run only for what it leaves. */
    const judgeNear = async (mutant: NamedMutant): Promise<Verdict | undefined> => {
      let verdict: Verdict | undefined
      for (const file of rank(mutant.path).slice(0, NEAR_FILES + listNearest(mutant.path).length)) {
        const isKnown = known.files.has(file)
        if (isKnown && judged.has(mutant)) continue
        await look([file])
        verdict = await judge(mutant)
        if (verdict && verdict.kind !== 'survived') return verdict
      }
      return verdict
    }
    const left: NamedMutant[] = []
    for (const mutant of mutants) {
      if (performance.now() > request.untilMs) return
      const verdict = await judgeNear(mutant)
      if (request.isNear || (verdict && verdict.kind !== 'survived')) note(mutant, verdict)
      else left.push(mutant)
    }
    if (left.length === 0) return
    print(`${left.length} are left to other tests than the nearest.`)
    await look([...new Set(left.flatMap(({ path }) => rank(path)))])
    for (const mutant of left) {
      if (performance.now() > request.untilMs) return
      note(mutant, await judge(mutant))
    }
  }

  function note(mutant: NamedMutant, verdict: Verdict | undefined): void {
    const outcome = verdict?.kind ?? 'unreached'
    outcomes.set(mutant, outcome)
    const by = verdict?.kind === 'killed' ? ` | ${verdict.by}` : ''
    const text = outcome === 'survived' || outcome === 'unreached' ? `\n    ${mutant.lineText}` : by
    print(`${outcome}: ${mutant.path}:${mutant.line}  ${mutant.change}${text}`)
  }
}

/** Files of tests that judge a change first, beside those that are named for it. */
const NEAR_FILES = 3

/** The texts of all programs of the repository. */
function readPrograms(root: string): Map<string, string> {
  const paths = globSync('**/*.ts', { cwd: root, exclude: ['node_modules', '**/node_modules'] })
  return new Map(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(root, path), 'utf8')]))
}

/** The first tests that take so long together; at least one. Pure. */
function limitTests(tests: readonly TestOfRun[], mostMs: number): TestOfRun[] {
  let sum = 0
  return tests.filter(({ durationMs }, index) => {
    sum += durationMs
    return index === 0 || sum <= mostMs
  })
}

function isExplained(mutant: NamedMutant, explained: readonly Explained[] = EXPLAINED): boolean {
  return explained.some(
    ({ path, lineText, change }) => path === mutant.path && lineText === mutant.lineText && change === mutant.change,
  )
}

/** A sample in the order of the files; the same seed draws the same of the same mutants. Pure. */
function draw(
  mutants: readonly NamedMutant[],
  { sample, seed }: Pick<MutationRequest, 'sample' | 'seed'>,
): NamedMutant[] {
  if (sample === undefined || sample >= mutants.length) return [...mutants]
  const ranked = mutants.map((mutant) => {
    const key = `${seed} ${mutant.path} ${mutant.lineText} ${mutant.change} ${mutant.start}`
    return { mutant, rank: createHash('sha256').update(key).digest('hex') }
  })
  const least = ranked.toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, sample)
  const chosen = new Set(least.map(({ mutant }) => mutant))
  return mutants.filter((mutant) => chosen.has(mutant))
}

/** The figures of each folder, as lines of a table. Pure. */
export function buildReport({ mutants }: MutationResult): { lines: string[]; isGood: boolean } {
  const folders = Map.groupBy(mutants, ({ mutant }) => mutant.path.split('/').slice(0, -1).join('/') || '.')
  const width = Math.max(...[...folders.keys()].map((name) => name.length), 'all'.length)
  const count = (of: typeof mutants, ...kinds: Outcome[]) => of.filter(({ outcome }) => kinds.includes(outcome)).length
  const row = (name: string, of: typeof mutants) => {
    const figures = [
      of.length,
      count(of, 'killed', 'timeout'),
      count(of, 'explained'),
      count(of, 'survived', 'unreached'),
      count(of, 'not-run'),
    ]
    return `${name.padEnd(width)} ${figures.map((figure) => `${figure}`.padStart(12)).join('')}`
  }
  const head = `${''.padEnd(width)} ${['mutants', 'noticed', 'explained', 'unexplained', 'not run'].map((text) => text.padStart(12)).join('')}`
  const unexplained = count(mutants, 'survived', 'unreached')
  const noticed = count(mutants, 'killed', 'timeout')
  const isGood = unexplained === 0 || noticed / (noticed + unexplained) >= GOAL
  return { lines: [head, ...[...folders].map(([name, of]) => row(name, of)), row('all', mutants)], isGood }
}
