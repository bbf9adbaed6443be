import { defineConfig } from 'vitest/config'
import { SlowFirst } from './test/harness/slow-first.ts'

/** What starts processes, browsers or PostgreSQL servers, or runs long simulations. Each file gets a process of its own. */
const SLOW = [
  'packages/webhooks/test/built-package.test.ts',
  'src/app/logger.test.ts',
  'src/postgres/embedded.test.ts',
  'src/postgres/migrate.test.ts',
  'src/tracing/no-export.test.ts',
  'test/{bin,browser,command,concurrency,simulation,snippets}/**/*.test.ts',
  'test/contract/{identity,shell}.test.ts',
  'test/journeys/delivery.test.ts',
  'test/worked-example.test.ts',
]

const shared = { testTimeout: 60_000, hookTimeout: 120_000 }

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'fast',
          include: ['{src,test,packages,tools,bench}/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...SLOW],
          // Files share a process, and with it what is loaded and compiled: no test relies on the state of a module.
          isolate: false,
        },
      },
      { test: { ...shared, name: 'slow', include: SLOW } },
    ],
    reporters: ['default', './test/harness/closing-line.ts'],
    globalSetup: ['test/harness/global-setup.ts'],
    maxWorkers: 2,
    sequence: { sequencer: SlowFirst },
    // A test that leaves a promise rejected has failed, whatever its assertions said.
    dangerouslyIgnoreUnhandledErrors: false,
  },
})
