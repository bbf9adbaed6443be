import { stripVTControlCharacters } from 'node:util'
import type { Reporter, TestCase, TestModule } from 'vitest/node'

/** Length of the list of the slowest files. */
const SLOWEST_COUNT = 10

/** Lines of a stack below the message of a failure. */
const STACK_LINES = 6

/**
 * Ends every run with its slowest files, the tests that passed at the second try only, then one line for persons and programs: `N passed, N failed`.
 */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    if (modules.length > 1) process.stdout.write(`\nThe slowest files:\n${listSlowest(modules).join('\n')}\n`)
    const retried = listRetried(modules)
    if (retried.length > 0) process.stdout.write(`\nPassed at the second try, look into them:\n${retried.join('\n')}\n`)
    let passed = 0
    let skipped = 0
    // An error outside any test, or a file that could not be loaded, is a failure too.
    let failed = errors.length
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1
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
    .sort((one, other) => other.seconds - one.seconds)
    .slice(0, SLOWEST_COUNT)
    .map(({ seconds, path }) => `${seconds.toFixed(1).padStart(7)} s  ${path}`)
}

/** The tests that failed once and then passed, and how they failed: they may not do so again for weeks. */
function listRetried(modules: readonly TestModule[]): string[] {
  return modules.flatMap((module) =>
    [...module.children.allTests()]
      .filter((test) => test.diagnostic()?.flaky)
      .flatMap((test) => [`  ${module.relativeModuleId} > ${test.fullName}`, ...describeFailures(test)]),
  )
}

function describeFailures(test: TestCase): string[] {
  return (test.result().errors ?? []).flatMap(({ message, diff, stacks }) => {
    const places = (stacks ?? []).slice(0, STACK_LINES).map(({ file, line, column }) => `at ${file}:${line}:${column}`)
    const text = [message, ...(diff === undefined ? [] : [diff]), ...places].join('\n')
    return stripVTControlCharacters(text)
      .split('\n')
      .map((line) => `      ${line}`)
  })
}
