import type { Reporter, TestModule } from 'vitest/node'

/** Ends every run with one plain line, `N passed, N failed`: what a person and a machine look for first. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    let passed = 0
    let skipped = 0
    // An error outside any test, or a file that could not be loaded, is a failure too.
    let failed = errors.length
    for (const module of modules) {
      if (module.errors().length > 0) failed += 1
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state === 'passed') passed += 1
        // Not asked for by a filter on the command line. The rules of the repository let no test skip itself.
        else if (state === 'skipped') skipped += 1
        else failed += 1
      }
    }
    process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`)
  }
}
