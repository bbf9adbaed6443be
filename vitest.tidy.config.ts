import everyTest from './vitest.config.ts'

/** The rules that read the repository alone: `npm run tidy`. Without PostgreSQL, whose start takes as long as they do. */
export default {
  ...everyTest,
  test: {
    ...everyTest.test,
    include: ['test/tidy.test.ts', 'test/docs.test.ts'],
    globalSetup: [],
    setupFiles: [],
    maxWorkers: 1,
  },
}
