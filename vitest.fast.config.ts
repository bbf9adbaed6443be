import { defineConfig, mergeConfig } from 'vitest/config'
import { SLOW_TESTS } from './test/harness/slow-tests.ts'
import config from './vitest.config.ts'

/** The tests of single modules and features, none of which waits for a process. */
export default mergeConfig(
  config,
  defineConfig({ test: { exclude: [...SLOW_TESTS], testTimeout: 60_000, hookTimeout: 120_000 } }),
)
