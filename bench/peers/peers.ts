import { untilInterrupted } from '../interruption.ts'
import { sumFamily } from '../process-times.ts'
import { openBareSide } from '../table/bare-side.ts'
import { makeAccounts, measureAnswers } from '../table/saturation.ts'
import { openStage, type Stage } from '../table/stage.ts'
import { openTestbed, type Testbed } from '../table/testbed.ts'
import { formatTable } from '../text-table.ts'
import { listFigures, type ProductFigures } from './figures.ts'
import { measureProduct, type ProductSide } from './load.ts'
import type { ProductName } from './products.ts'

/** Options of `npm run bench -- peers`. */
export interface PeersOptions {
  product: ProductName
  /** The running server. Default, for Signalbox alone: one that the measurement starts. */
  server?: { origin: string; token: string; project?: string | undefined; pids: readonly number[] } | undefined
  seconds: number
}

/** Measures one product beside the bare route and prints its figures, as a table and as JSON for `figures.json`. */
export async function measurePeer({ product, server, seconds }: PeersOptions): Promise<void> {
  if (server && !isLoopback(server.origin)) throw new Error('--origin must be http://127.0.0.1:<port>: loopback only.')
  if (!server && product !== 'signalbox') throw new Error(`${product} needs --origin and --token of a running server.`)
  await untilInterrupted(async (stack) => {
    const testbed = await openTestbed(stack, { seconds, isFull: false })
    // Of the product, or of the Signalbox whose accounts the bare route is asked with.
    const stage = await openStage(testbed, stack)
    const accounts = await makeAccounts(stage)
    const bareSide = await openBareSide(testbed, stack, { jwt: stage.jwt, delivers: false })
    const measureBare = (length: number) => measureAnswers(bareSide, accounts, length)
    const side = buildSide(testbed, { product, server, stage })
    await measureBare(1)
    // Half of the yardstick on each side, so that a change of the machine's speed meets both.
    const early = await measureBare(seconds / 2)
    const measured = await measureProduct(side, seconds)
    const late = await measureBare(seconds / 2)
    print(product, { ...measured, barePerSecond: (early + late) / 2 })
  })
}

/** Whether an origin is of this machine's loopback interface. Pure. */
function isLoopback(origin: string): boolean {
  return /^http:\/\/(127\.0\.0\.1|localhost|\[::1\]):\d+$/.test(origin)
}

function buildSide(
  { publisher, sink, sinkOrigin, nextRun, meter }: Testbed,
  { product, server, stage }: { product: ProductName; server: PeersOptions['server']; stage: Stage },
): ProductSide {
  const load = { product, publisher, sink, sinkOrigin, nextRun }
  if (server) return { ...load, ...server, readCpuMs: () => sumFamilies(server.pids) }
  const readCpuMs = async () => {
    const { processMs, postgresMs } = await meter.read(stage)
    return processMs === undefined || postgresMs === undefined ? undefined : processMs + postgresMs
  }
  return { ...load, origin: stage.origin, token: stage.jwt, readCpuMs }
}

/** Processor time of these processes and their children, ms; undefined without any, or where it cannot be read. */
async function sumFamilies(pids: readonly number[]): Promise<number | undefined> {
  const times = await Promise.all(pids.map(sumFamily))
  if (times.length === 0 || times.includes(undefined)) return undefined
  return times.reduce<number>((sum, time) => sum + (time ?? 0), 0)
}

function print(product: ProductName, figures: ProductFigures): void {
  console.log(formatTable([product, 'value'], listFigures(figures)))
  const rounded = Object.entries(figures).map(([name, value]) => [name, value && Number(value.toPrecision(3))])
  console.log(`\n${JSON.stringify(Object.fromEntries(rounded))}`)
}
