import { defineConfig } from 'vitest/config'
import { SlowFirst } from './test/harness/slow-first.ts'
import { SLOW_TESTS } from './test/harness/slow-tests.ts'

const EVERY_TEST = '{src,test,packages,tools,bench}/**/*.test.ts'

// On a busy machine the start of one process alone may take many seconds.
const limits = { testTimeout: 60_000, hookTimeout: 120_000 }

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...limits,
          name: 'fast',
          include: [EVERY_TEST],
          exclude: ['**/node_modules/**', ...SLOW_TESTS],
          // Loading and compiling cost more than most of these tests, so their files share a process, and what it keeps in memory.
          isolate: false,
        },
      },
      { test: { ...limits, name: 'slow', include: [...SLOW_TESTS] } },
    ],
    reporters: ['default', './test/harness/closing-line.ts'],
    globalSetup: ['test/harness/global-setup.ts'],
    maxWorkers: 2,
    sequence: { sequencer: SlowFirst },
    // A test that leaves a promise rejected has failed, whatever its assertions said.
    dangerouslyIgnoreUnhandledErrors: false,
  },
})
