import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { buildLogger } from '../logger.ts'
import { type StopRequest, serve } from '../serve.ts'

/** Adds `signalbox serve`. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the service; what this process does is decided by SIGNALBOX_ROLES')
    .option('--demo', 'show the main job working after the start (development only)', false)
    .action(async ({ demo }: { demo: boolean }) => {
      const config = readConfig()
      const isTerminal = process.stderr.isTTY === true
      // The demonstration tells its story on standard output; the log joins in only with what needs attention.
      const level = demo && !config.isLogLevelGiven ? 'warn' : config.logLevel
      const logger = buildLogger({ level, isTerminal })
      const print = (line: string) => process.stdout.write(`${line}\n`)
      const code = await serve({ config, logger, demo, print }, waitForSignal())
      process.exit(code)
    })
}

/** Resolves at the first SIGINT, SIGTERM or SIGHUP. A second SIGINT ends the process at once, for who does not want to wait. */
function waitForSignal(): Promise<StopRequest> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => resolve({ reason: signal, isFailure: false }))
  })
}
