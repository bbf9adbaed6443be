import { execFileSync } from 'node:child_process'
import {
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { listTestPatterns } from './mutation/areas.ts'
import { buildReport, GOAL, runMutants } from './mutation/run.ts'

/** `npm run mutate`: changes the code of a copy in small steps, and lists the changes that no test notices. */

/** Files that declare rather than decide: routes and wire schemas. */
const LEFT_OUT = /\.(?:test|routes|schema|generated)\.ts$/

interface Options {
  sample?: number
  seed: string
  tests?: string[]
  minutes?: number
  patience: number
  judges: number
  root: string
  near?: boolean
}

await new Command('mutate')
  .description(
    'Changes a copy of the code in one place at a time, runs the tests that reach the place, and lists the changes that no test notices.',
  )
  .argument(
    '<path...>',
    'files or folders of src/, such as src/delivery; src/identity/user/user.ts:12,15 for these lines alone',
  )
  .option('--sample <count>', 'so many mutants only, drawn by the seed', readCount)
  .option('--seed <text>', 'the seed of the sample', '1')
  .option(
    '--tests <part...>',
    'parts of the paths of the tests that judge (default: those of the folder, see tools/mutation/areas.ts)',
  )
  .option(
    '--judges <seconds>',
    'tests of one change that take longer together are left out, slow ones first',
    readCount,
    60,
  )
  .option('--patience <seconds>', 'how long the tests of one change may take at least', readCount, 10)
  .option('--root <folder>', 'the repository', join(import.meta.dirname, '..'))
  .option('--near', 'only the three nearest files of tests judge: what survives may be noticed by others')
  .option('--minutes <count>', 'stop after so many minutes', readCount)
  .action(mutate)
  .parseAsync()

function readCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1) throw new InvalidArgumentError('It must be a whole number from 1.')
  return count
}

async function mutate(given: readonly string[], options: Options) {
  const { sample, seed, tests, patience, judges, minutes = Number.POSITIVE_INFINITY, root: checkout } = options
  const { places, lines: lineOf } = readPlaces(given)
  const paths = [...new Set(places.flatMap((place) => listPrograms(checkout, place)))]
  const root = copyRepository(checkout)
  const scratch = mkdtempSync(join(tmpdir(), 'signalbox-mutation-'))
  // The processes of the tests may still write what they compiled.
  const remove = (folder: string) => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  process.once('exit', () => [root, scratch].forEach(remove))
  const result = await runMutants({
    ...{ root, scratch, paths, sample, seed },
    lines: lineOf,
    tests: tests ?? listTestPatterns(paths),
    isNear: options.near ?? false,
    judgedMs: judges * 1000,
    patienceMs: patience * 1000,
    untilMs: performance.now() + minutes * 60_000,
    print: (line) => console.log(line),
  })
  const { lines, isGood } = buildReport(result)
  console.log(`\n${lines.join('\n')}`)
  // Vitest sets it for the tests that noticed a change.
  process.exitCode = isGood ? 0 : 1
  if (isGood) return
  console.error(
    `\nLess than ${GOAL * 100} % are noticed: add tests, or explain survivors in tools/mutation/explained.ts.`,
  )
}

/** Splits `src/a.ts:12,15` into the file and its lines. */
function readPlaces(given: readonly string[]): { places: string[]; lines: Map<string, number[]> } {
  const lines = new Map<string, number[]>()
  const places = given.map((place) => {
    const [, path = place, list] = /^(.*\.ts):([\d,]+)$/.exec(place) ?? []
    if (list !== undefined) lines.set(path, list.split(',').map(Number))
    return path
  })
  return { places, lines }
}

/** The programs of a path, from the root of the repository, with slashes. */
function listPrograms(checkout: string, given: string): string[] {
  const path = resolve(checkout, given)
  if (!existsSync(path)) throw new Error(`There is no ${given}.`)
  const isFolder = statSync(path).isDirectory()
  const found = isFolder ? globSync('**/*.ts', { cwd: path }).map((name) => join(path, name)) : [path]
  return found
    .map((row) => relative(checkout, row).replaceAll('\\', '/'))
    .filter((item) => !LEFT_OUT.test(item))
    .sort()
}

/** Copies what git tracks or would track to a new folder, beside the packages of the repository. */
function copyRepository(checkout: string): string {
  const root = mkdtempSync(join(tmpdir(), 'signalbox-mutants-'))
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const paths = execFileSync('git', list, { cwd: checkout, encoding: 'utf8' }).split('\0')
  const present = [...new Set(paths)].filter((path) => path !== '' && existsSync(join(checkout, path)))
  for (const folder of new Set(present.map((path) => dirname(path)))) mkdirSync(join(root, folder), { recursive: true })
  for (const path of present) {
    const [from, to] = [join(checkout, path), join(root, path)]
    if (lstatSync(from).isFile()) copyFileSync(from, to, constants.COPYFILE_FICLONE)
    else cpSync(from, to, { recursive: true, verbatimSymlinks: true })
  }
  symlinkSync(join(checkout, 'node_modules'), join(root, 'node_modules'), 'dir')
  return root
}
