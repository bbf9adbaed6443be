import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { SlowFirst } from './test/harness/run/slow-first.ts'

/** Every test: `npm test`. Those of `npm run test:fast` are in vitest.fast.config.ts. */
export default defineConfig({
  test: {
    include: ['{src,test,packages,console,site,tools,bench}/**/*.test.ts'],
    // On a busy machine the start of one process alone may take many seconds.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // One second by default, which a request takes on a machine that is busy enough.
    expect: { poll: { timeout: 60_000 } },
    // To load the service costs more than most files of tests, so they share a process for each worker, with its modules.
    isolate: false,
    // The loader of Node reads tests as it reads the service, and keeps what it compiled: Vite would transform each module.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    reporters: ['default', './test/harness/run/closing-line.ts'],
    globalSetup: ['test/harness/run/global-setup.ts'],
    setupFiles: [
      'test/harness/plan/watch-locks.ts',
      'test/harness/run/watch-process.ts',
      'test/browser/explain-failures.ts',
    ],
    // Most objects of a test die young: with room for them a worker collects less, by a twelfth of its work.
    execArgv: ['--min-semi-space-size=32'],
    // Two for each processor, because the slow tests wait half of their time; at most as many as one PostgreSQL serves.
    maxWorkers: Math.min(2 * availableParallelism(), 4),
    sequence: { sequencer: SlowFirst },
    // A test that leaves a promise rejected has failed, whatever its assertions said.
    dangerouslyIgnoreUnhandledErrors: false,
  },
})
