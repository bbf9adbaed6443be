import { mkdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { API_CASES, type ApiCase, CLIENTS } from './api-case.ts'
import { type CaseResult, formatCosts, formatRatios, listRatios, type Measurement } from './api-report.ts'
import { type ApiSide, type ApiSides, openSides, type SideOptions } from './api-sides.ts'
import { startProgram } from './child-process.ts'
import { untilInterrupted } from './interruption.ts'
import type { Load, LoadResult } from './load-generator.ts'
import { type Meter, openMeter, subtractUsage } from './meter.ts'
import { findMedian } from './quantile.ts'
import { POOL_SIZE } from './service-process.ts'

/** Before the first measurement of a side in a case, for the compiler of V8; and before each later one. */
const FIRST_WARM_UP_SECONDS = 2
const WARM_UP_SECONDS = 0.5

/** How long and how often to measure. */
export interface ApiBenchOptions {
  /** Of each measurement. */
  seconds: number
  /** Measurements of each side in each case. */
  rounds: number
}

/** Both sides as they run, and what measures them. */
interface Harness {
  sides: ApiSides
  meter: Meter
  run: (load: Load) => Promise<LoadResult>
}

/** Named cases, and the sides that they run on. */
export interface CaseSet {
  cases: Readonly<Record<string, ApiCase>>
  sides: Omit<SideOptions, 'nodeArguments'>
}

const API_SET: CaseSet = { cases: API_CASES, sides: {} }

/**
 * Measures the request path of the service beside bare Fastify routes that give the same answers from a copy of the same
 * database, and prints requests a second of both, their ratio, latency and cost. Machines differ: the ratio is what to
 * compare. `names` are cases of the set.
 */
export async function compareApi(
  names: readonly string[],
  options: ApiBenchOptions,
  set: CaseSet = API_SET,
): Promise<void> {
  await withHarness({ ...set.sides, nodeArguments: [] }, async (harness) => {
    const results: CaseResult[] = []
    for (const name of names) {
      const result = await compareCase(harness, { name, apiCase: set.cases[name]! }, options)
      results.push(result)
      console.log(`${name}: ratio ${findMedian(listRatios(result)).toFixed(2)}`)
    }
    const { seconds, rounds } = options
    console.log(`\nMedians of ${rounds} rounds of ${seconds} s, ${CLIENTS} clients, ${POOL_SIZE} connections.\n`)
    console.log(`${formatRatios(results)}\n\nWhat a request takes:\n\n${formatCosts(results)}`)
  })
}

/** Loads the service alone with one case and leaves its CPU profile, start included, in `directory`. */
export async function profileApi(name: string, directory: string, options: ApiBenchOptions): Promise<void> {
  const place = resolve(directory)
  await mkdir(place, { recursive: true })
  await withHarness({ nodeArguments: ['--cpu-prof', `--cpu-prof-dir=${place}`] }, async ({ sides, run }) => {
    const load = { origin: sides.service.origin, caseName: name, fixture: sides.fixture }
    for (let round = 1; round <= options.rounds; round += 1) {
      const { requests, seconds } = await run({ ...load, seconds: options.seconds })
      console.log(`${name}: ${Math.round(requests / seconds)} requests/s under the profiler`)
    }
  })
  console.log(`The CPU profile is in ${place}.`)
}

/** Starts everything, hands it to `work`, and ends everything: also after an error or a signal. Throws at a signal. */
function withHarness(sides: SideOptions, work: (harness: Harness) => Promise<void>): Promise<void> {
  return untilInterrupted(async (stack) => work(await openHarness(stack, sides)))
}

async function openHarness(stack: AsyncDisposableStack, sideOptions: SideOptions): Promise<Harness> {
  const sides = await openSides(stack, sideOptions)
  const meter = await openMeter(sides.service.connectionString)
  stack.defer(() => meter.close())
  const generator = startProgram<Load, LoadResult>('load-generator.ts')
  stack.defer(() => generator.stop())
  console.log(`${sides.database}.`)
  for (const gap of meter.gaps) console.log(gap)
  if (!sides.keepsIdempotencyKey)
    console.log('The service keeps no Idempotency-Key of a PATCH, so the bare change writes none either.')
  return { sides, meter, run: (load) => generator.ask(load) }
}

/** Measures both sides in turn; the side that begins changes with each round. */
async function compareCase(
  harness: Harness,
  { name, apiCase }: { name: string; apiCase: ApiCase },
  { seconds, rounds }: ApiBenchOptions,
): Promise<CaseResult> {
  const { goal, bare: bareWork } = apiCase
  const { service, bare } = harness.sides
  const measured = { service: [] as Measurement[], bare: [] as Measurement[] }
  for (let round = 1; round <= rounds; round += 1) {
    const warmUpSeconds = round === 1 ? FIRST_WARM_UP_SECONDS : WARM_UP_SECONDS
    const measure = async (side: ApiSide) => measureSide(harness, side, { name, seconds, warmUpSeconds })
    const measureService = async () => void measured.service.push(await measure(service))
    const measureBare = async () => void measured.bare.push(await measure(bare))
    for (const step of round % 2 === 1 ? [measureService, measureBare] : [measureBare, measureService]) await step()
  }
  return { name, goal, bareWork, ...measured }
}

async function measureSide(
  { sides, meter, run }: Harness,
  side: ApiSide,
  { name, seconds, warmUpSeconds }: { name: string; seconds: number; warmUpSeconds: number },
): Promise<Measurement> {
  const load = { origin: side.origin, caseName: name, fixture: sides.fixture }
  await run({ ...load, seconds: warmUpSeconds })
  await meter.waitForQuiet(side)
  const before = await meter.read(side)
  const result = await run({ ...load, seconds })
  const after = await meter.read(side)
  await meter.waitForQuiet(side)
  return { ...result, ...subtractUsage(after, before) }
}
