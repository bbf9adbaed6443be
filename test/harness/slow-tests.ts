/**
 * Tests that start processes, browsers or PostgreSQL servers, fill tables with tens of thousands of rows, or measure time.
 * `npm run test:fast` leaves them out (vitest.config.ts).
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
  'test/{bin,browser,command,concurrency,deploy,examples,operations,oracles,packages,simulation,snippets}/**/*.test.ts',
  'test/contract/identity.test.ts',
  'test/journeys/{delivery,documented-permissions,generate-a-client,hostile-input,receiver-guide}.test.ts',
  'test/{docs,tidy,worked-example}.test.ts',
]
