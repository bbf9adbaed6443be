import { matchesGlob, relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { PROJECT_ROOT } from '../process/process.ts'
import { SLOW_TESTS } from './slow-tests.ts'

/** Runs the slow tests first, and of them the longest files of the last run, so that all workers end together. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isSlow = ({ moduleId }: TestSpecification) =>
      SLOW_TESTS.some((glob) => matchesGlob(relative(PROJECT_ROOT, moduleId), glob))
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))]
  }
}
