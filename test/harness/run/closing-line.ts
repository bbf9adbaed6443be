import type { Reporter, TestModule } from 'vitest/node'

/** Length of the list of the slowest files. */
const SLOWEST_COUNT = 10

/** Ends every run with its slowest files, then one line for users and programs: `N passed, N failed`. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    if (modules.length > 1) process.stdout.write(`\nThe slowest files:\n${listSlowest(modules).join('\n')}\n`)
    let passed = 0
    let skipped = 0
    // An error outside any test, or a file that could not be loaded, is a failure too.
    let failed = errors.length
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1
      // Hooks around tests: a failed hook leaves its tests untested.
      for (const suite of module.children.allSuites()) if (suite.errors().length > 0) failed += 1
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed') passed += 1
        // Excluded by a filter on the command line. The repository rules forbid skipped tests.
        else if (state === 'skipped') skipped += 1
        else failed += 1
      }
    }
    process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`)
  }
}

/** The files that took longest, loading included: seconds and path, the slowest first. */
function listSlowest(modules: readonly TestModule[]): string[] {
  return modules
    .map((module) => {
      const { duration, collectDuration } = module.diagnostic()
      return { seconds: (duration + collectDuration) / 1000, path: module.relativeModuleId }
    })
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST_COUNT)
    .map(({ seconds, path }) => `${seconds.toFixed(1).padStart(7)} s  ${path}`)
}
