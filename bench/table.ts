import { untilInterrupted } from './interruption.ts'
import { backlog } from './table/backlog.ts'
import { batches } from './table/batches.ts'
import { fanOut } from './table/fan-out.ts'
import { faults } from './table/faults.ts'
import { growth } from './table/growth.ts'
import { hang } from './table/hang.ts'
import { isolation } from './table/isolation.ts'
import { processes } from './table/processes.ts'
import { recovery } from './table/recovery.ts'
import { saturation } from './table/saturation.ts'
import { steady } from './table/steady.ts'
import { subscribers } from './table/subscribers.ts'
import { formatFigures, formatRemarks, type NamedResult } from './table/table-report.ts'
import type { TableRow } from './table/table-row.ts'
import { openTestbed, type TableOptions } from './table/testbed.ts'
import { throttle } from './table/throttle.ts'

/** Every row, in the order they run. */
const ROWS: readonly TableRow[] = [
  saturation,
  steady,
  hang,
  isolation,
  throttle,
  subscribers,
  batches,
  fanOut,
  backlog,
  processes,
  growth,
  recovery,
  faults,
]

/** Values of `--only`. */
export const ROW_NAMES = ROWS.map((row) => row.name)

/**
 * Measures the delivery engine from outside (HTTP, CPU time, counters of PostgreSQL) and prints each figure beside its
 * baseline of the same run and its goal. `names` are rows; a row that fails is reported and the others still run.
 * Resolves with whether every row was measured.
 */
export async function measureTable(names: readonly string[], options: TableOptions): Promise<boolean> {
  const results: NamedResult[] = []
  const failed: string[] = []
  await untilInterrupted(async (stack) => {
    const testbed = await openTestbed(stack, options)
    console.log(`${testbed.server.description}. ${options.seconds} s a measurement.`)
    for (const gap of testbed.meter.gaps) console.log(gap)
    for (const row of ROWS.filter(({ name }) => names.includes(name))) {
      console.log(`\n${row.name}: ${row.title}`)
      // Part of the whole stack, so that an interruption ends what the row started.
      const rowStack = stack.use(new AsyncDisposableStack())
      try {
        const named = { name: row.name, result: await row.measure(testbed, rowStack) }
        results.push(named)
        console.log(`${formatFigures([named])}\n${formatRemarks(named)}`)
      } catch (error) {
        failed.push(row.name)
        console.log(`  not measured: ${(error as Error).message}`)
      } finally {
        await rowStack.disposeAsync()
      }
    }
  })
  console.log(`\nThe whole table:\n\n${formatFigures(results)}`)
  if (failed.length > 0) console.log(`\nNot measured: ${failed.join(', ')}`)
  return failed.length === 0
}
