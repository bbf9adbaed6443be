import { mergeConfig } from 'vitest/config'
import { SLOW_TESTS } from './test/harness/slow-tests.ts'
import everyTest from './vitest.config.ts'

/** `npm run test:fast`. Not a project beside that of the slow tests: a worker would load the service once for each project. */
export default mergeConfig(everyTest, { test: { exclude: [...SLOW_TESTS] } })
