import { request } from 'undici'
import { CLIENTS, EVENT_TYPE } from '../api-case.ts'
import { makeMany } from '../api-client.ts'
import type { BenchProgram } from '../child-process.ts'
import { waitForQuiet } from '../meter.ts'
import type { EventLoad, EventLoadResult, Pace } from '../publisher.ts'
import { findQuantile } from '../quantile.ts'
import type { SinkQuestion, SinkState } from '../sink.ts'
import { compareArrivals, type DeliveryOutcome } from '../table/delivery-outcome.ts'
import { ENDPOINTS, RATE as HANG_RATE, HANGING } from '../table/hang.ts'
import { SUBSCRIBERS } from '../table/saturation.ts'
import { STALL_MS } from '../table/stage-load.ts'
import { RATE as STEADY_RATE } from '../table/steady.ts'
import type { ProductFigures } from './figures.ts'
import type { CallProduct } from './product.ts'
import { PRODUCTS, type ProductName } from './products.ts'

/** A running server of a product, and what sends and takes the load. */
export interface ProductSide {
  product: ProductName
  /** `http://127.0.0.1:<port>` */
  origin: string
  /** Bearer token of its API. */
  token: string
  /** Convoy: id of the project. */
  project?: string | undefined
  /** Processor time of the service and its stores so far, ms; undefined where it is not read. */
  readCpuMs(): Promise<number | undefined>
  publisher: BenchProgram<EventLoad, EventLoadResult>
  sink: BenchProgram<SinkQuestion, SinkState>
  sinkOrigin: string
  nextRun(): number
}

/** Seconds of full load before each measurement; a shorter measurement has a shorter one. */
const WARM_UP_SECONDS = 2

/** The three loads of docs/benchmarks.md, one after the other; rows that they make are removed. */
export async function measureProduct(side: ProductSide, seconds: number): Promise<ProductFigures> {
  const warmUp = { clients: CLIENTS, seconds: Math.min(WARM_UP_SECONDS, seconds) }
  const { saturation, steady } = await withEndpoints(side, { count: SUBSCRIBERS, hanging: 0 }, async (targets) => {
    await run(side, { targets, pace: warmUp })
    return {
      saturation: await run(side, { targets, pace: { clients: CLIENTS, seconds } }),
      steady: await run(side, { targets, pace: { rate: STEADY_RATE, seconds } }),
    }
  })
  const hang = await withEndpoints(side, { count: ENDPOINTS, hanging: HANGING }, async (targets) => {
    await run(side, { targets: targets.slice(HANGING), pace: warmUp })
    const isCounted = (n: number) => n % ENDPOINTS >= HANGING
    // Twice as long: a request that hangs ends after 15 s here, after 30 s elsewhere.
    return run(side, { targets, pace: { rate: HANG_RATE, seconds: 2 * seconds }, isCounted })
  })
  const all = [saturation, steady, hang]
  const sum = (member: 'lost' | 'duplicates') => all.reduce((total, outcome) => total + outcome[member], 0)
  return {
    perSecond: saturation.perSecond,
    cpuMs: saturation.cpuMs,
    steadyP50Ms: findQuantile(steady.latenciesMs, 0.5),
    steadyP99Ms: findQuantile(steady.latenciesMs, 0.99),
    steadyCpuMs: steady.cpuMs,
    hangP50Ms: findQuantile(hang.latenciesMs, 0.5),
    hangP99Ms: findQuantile(hang.latenciesMs, 0.99),
    lost: sum('lost'),
    duplicates: sum('duplicates'),
  }
}

interface Outcome extends DeliveryOutcome {
  cpuMs: number | undefined
}

async function run(
  side: ProductSide,
  {
    targets,
    pace,
    isCounted = () => true,
  }: { targets: readonly string[]; pace: Pace; isCounted?: (n: number) => boolean },
): Promise<Outcome> {
  const { origin, token, product } = side
  await waitForQuiet(side.readCpuMs)
  const before = await side.readCpuMs()
  const number = side.nextRun()
  await side.sink.ask({ do: 'begin', run: number, numberedBy: 'event' })
  const load = await side.publisher.ask({
    ...{ origin, jwt: token, product, pace, run: number },
    ...{ eventType: EVENT_TYPE, accounts: targets },
  })
  if (load.firstError !== undefined) throw new Error(`${load.refused} requests were refused: ${load.firstError}`)
  const counted = load.acceptedAtMs.reduce((sum, at, n) => sum + (at > 0 && isCounted(n) ? 1 : 0), 0)
  const arrivals = await side.sink.ask({ do: 'wait', arrivals: counted, repeats: 0, stallMs: STALL_MS })
  await waitForQuiet(side.readCpuMs)
  const after = await side.readCpuMs()
  const outcome = compareArrivals(load, arrivals, isCounted)
  const isRead = before !== undefined && after !== undefined && outcome.delivered > 0
  return { ...outcome, cpuMs: isRead ? (after - before) / outcome.delivered : undefined }
}

async function withEndpoints<Result>(
  side: ProductSide,
  { count, hanging }: { count: number; hanging: number },
  work: (targets: readonly string[]) => Promise<Result>,
): Promise<Result> {
  const { makeEndpoint, removeEndpoint } = PRODUCTS[side.product]
  const call = buildCall(side)
  const name = String(side.nextRun())
  const targets = await makeMany(count, (n) => {
    const url = `${side.sinkOrigin}/${n < hanging ? 'hang' : 'ok'}/${n}`
    return makeEndpoint(call, { n, run: name, url, eventType: EVENT_TYPE, project: side.project })
  })
  try {
    return await work(targets)
  } finally {
    await makeMany(count, (n) => removeEndpoint(call, targets[n]!))
  }
}

function buildCall({ origin, token }: ProductSide): CallProduct {
  return async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
    const answer = await request(`${origin}${path}`, { method, headers, body: body ? JSON.stringify(body) : null })
    const text = await answer.body.text()
    if (answer.statusCode >= 300) throw new Error(`${method} ${path} answered ${answer.statusCode}: ${text}`)
    return text === '' ? null : JSON.parse(text)
  }
}
