import { mergeConfig } from 'vitest/config'
import everyTest from './vitest.config.ts'

/** The processor time of each test file: `npm run test:cost`. With one worker, so that what runs belongs to one file. */
export default mergeConfig(everyTest, {
  test: { maxWorkers: 1, reporters: ['./test/harness/run/cost-reporter.ts'] },
})
