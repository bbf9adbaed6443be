import { afterEach, inject } from 'vitest'
import { isKnownPair, type WrongOrder, watchEveryPool } from './lock-order.ts'

/**
 * Watches the locks of every pool that a process of tests opens, in every test: of requests, reads, workers, maintenance and
 * commands. Where the written order is broken (`LOCK_ORDER`), the statement fails, and with it the test, whatever became of
 * the error.
 */
interface Watch {
  refused: WrongOrder[]
}

declare global {
  /** Tests of one process share its modules and pools: they are watched once. */
  var lockWatch: Watch | undefined
}

function startWatch(): Watch {
  const watch: Watch = { refused: [] }
  watchEveryPool(new Map(inject('databaseFunctions')), (wrong) => {
    if (isKnownPair(wrong)) return
    watch.refused.push(wrong)
    throw new Error(`locks in the wrong order, ${wrong.pair}: see src/postgres/statement/locks.ts`)
  })
  return watch
}

globalThis.lockWatch ??= startWatch()
const { refused } = globalThis.lockWatch

afterEach(() => {
  const wrong = refused.splice(0)
  if (wrong.length > 0)
    throw new Error(
      `locks in the wrong order: ${wrong.map(({ pair, statement }) => `${pair} by ${statement}`).join(', ')}`,
    )
})
