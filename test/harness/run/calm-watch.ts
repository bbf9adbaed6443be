import type { LoopWatch } from '../../../src/outbound/own-fault/loop-watch.ts'

/** An event loop that never stands still, for tests of short limits: a busy machine makes a real one stall for longer. */
export const calmWatch: LoopWatch = { stalledMs: () => 0, stop: () => {} }
