/**
 * Tests that start processes, browsers or PostgreSQL servers, fill tables with tens of thousands of rows, or measure time.
 * Each of these files gets a process of its own; all other tests share two (vitest.config.ts).
 */
export const SLOW_TESTS: readonly string[] = [
  'packages/sso/test/built-package.test.ts',
  'packages/webhooks/test/built-package.test.ts',
  'src/app/logger.test.ts',
  'src/webhook/delivery/claim-plan.test.ts',
  'src/demo/demo.test.ts',
  'src/health/health-plan.test.ts',
  'src/postgres/embedded.test.ts',
  'src/postgres/migrate.test.ts',
  'src/tracing/no-export.test.ts',
  'test/{bin,browser,command,concurrency,examples,oracles,simulation,snippets}/**/*.test.ts',
  'test/contract/identity.test.ts',
  'test/journeys/{delivery,documented-permissions,hostile-input}.test.ts',
  'test/{docs,tidy,worked-example}.test.ts',
]
