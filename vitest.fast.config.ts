import { configDefaults, mergeConfig } from 'vitest/config'
import { SLOW_TESTS } from './test/harness/run/slow-tests.ts'
import everyTest from './vitest.config.ts'

/** The fast tests: all but the slow ones (test/harness/run/slow-tests.ts). */
export default mergeConfig(everyTest, {
  test: { exclude: [...configDefaults.exclude, ...SLOW_TESTS], testTimeout: 60_000, hookTimeout: 120_000 },
})
