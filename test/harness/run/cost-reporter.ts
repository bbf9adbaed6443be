import type { Reporter, TestModule } from 'vitest/node'
import { buildSums, PROCESS_KINDS, type ProcessTree, type Sums, watchProcessTree } from './process-tree.ts'

/** How often the processes are looked at, in milliseconds: each look reads some hundred files. */
const LOOK_MS = 1_000

/** Processor seconds of a file, by kind, and the processes that it started. */
interface Cost {
  path: string
  seconds: Sums
  started: Sums
  /** Seconds that passed. Where they are many more than those of processors, the file waits. */
  passed: number
}

/**
 * Ends a run with one worker (`npm run test:cost`) with the processor time of each test file, the dearest first: of its
 * worker, and of every process that it started. The first file has the load of the modules and the start of what files share.
 */
export default class CostReporter implements Reporter {
  readonly #tree: ProcessTree = watchProcessTree(process.pid)
  readonly #costs: Cost[] = []
  #timer: NodeJS.Timeout | undefined
  #before: Omit<Cost, 'path'> = { seconds: buildSums(), started: buildSums(), passed: 0 }

  onTestRunStart(): void {
    if (process.platform !== 'linux') throw new Error('The cost of tests is read from /proc, which Linux alone has.')
    this.#timer = setInterval(() => this.#tree.look(), LOOK_MS)
    this.#take()
  }

  onTestModuleEnd({ relativeModuleId: path }: TestModule): void {
    const { seconds, started, passed } = this.#before
    this.#take()
    const cost = {
      path,
      seconds: subtract(this.#before.seconds, seconds),
      started: subtract(this.#before.started, started),
      passed: this.#before.passed - passed,
    }
    this.#costs.push(cost)
  }

  onTestRunEnd(): void {
    clearInterval(this.#timer)
    process.stdout.write(`${renderCosts(this.#costs).join('\n')}\n`)
  }

  #take(): void {
    this.#tree.look()
    this.#before = { seconds: this.#tree.seconds(), started: this.#tree.count(), passed: performance.now() / 1000 }
  }
}

function subtract(later: Sums, earlier: Sums): Sums {
  const sums = buildSums()
  for (const kind of PROCESS_KINDS) sums[kind] = Math.max(0, later[kind] - earlier[kind])
  return sums
}

const totalOf = ({ seconds }: Pick<Cost, 'seconds'>) => PROCESS_KINDS.reduce((sum, kind) => sum + seconds[kind], 0)

/** A line for each file and one for all: total, what passed, kinds with the number of their processes where it says something, path. */
function renderCosts(costs: readonly Cost[]): string[] {
  const all: Cost = { path: 'all files', seconds: buildSums(), started: buildSums(), passed: 0 }
  for (const { seconds, started, passed } of costs) {
    all.passed += passed
    for (const kind of PROCESS_KINDS) {
      all.seconds[kind] += seconds[kind]
      all.started[kind] += started[kind]
    }
  }
  const columns = PROCESS_KINDS.map((kind) => kind.padStart(14)).join('')
  const lines = [...costs].sort((a, b) => totalOf(b) - totalOf(a)).map(renderCost)
  return [
    `\nProcessor seconds, the seconds that passed, and the processes started:\n${'total'.padStart(8)}${'passed'.padStart(8)}${columns}`,
    ...lines,
    renderCost(all),
  ]
}

function renderCost(cost: Cost): string {
  const cells = PROCESS_KINDS.map((kind) => {
    const started = cost.started[kind] > 0 ? ` / ${cost.started[kind]}` : ''
    return `${cost.seconds[kind].toFixed(1)}${started}`.padStart(14)
  })
  return `${totalOf(cost).toFixed(1).padStart(8)}${cost.passed.toFixed(1).padStart(8)}${cells.join('')}  ${cost.path}`
}
