/**
 * The slow tests: those of the whole service, which stand in `test/`; and beside the code those that start processes or
 * PostgreSQL servers, fill tables with tens of thousands of rows, measure time, or take more than two seconds of a processor.
 * `npm run test:fast` leaves them out (vitest.fast.config.ts).
 */
export const SLOW_TESTS: readonly string[] = [
  'test/**/*.test.ts',
  '{src,packages,console,site,tools,bench}/**/*.slow.test.ts',
]
