import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Runs the slow project first, and in it the longest files of the last run, so that both workers end together. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isSlow = ({ project }: TestSpecification) => project.name === 'slow'
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))]
  }
}
