import type { Command } from 'commander'
import { readConfig } from '../app/config.ts'
import type { StopRequest } from '../app/serve.ts'
import { systemClock } from '../clock.ts'

/** Adds `signalbox serve`. */
export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the service, with the roles of SIGNALBOX_ROLES')
    .option('--demo', 'demonstrate a delivery after the start (development only)', false)
    .option('--lost-secret-key', 'start although SECRET_KEY opens no stored secret, to rotate every secret', false)
    .action(async ({ demo, lostSecretKey: isKeyLost }: { demo: boolean; lostSecretKey: boolean }) => {
      const config = readConfig()
      const stopRequested = waitForSignal()
      const [{ buildLogger }, { serve }] = await Promise.all([import('../app/logger.ts'), import('../app/serve.ts')])
      const isTerminal = process.stderr.isTTY === true
      // The demonstration prints on standard output; the log then shows warnings and errors only.
      const level = demo && !config.isLogLevelGiven ? 'warn' : config.logLevel
      const logger = buildLogger({ level, isTerminal })
      // A closed standard output (`npm start | head`, a closed terminal) does not end the service.
      process.stdout.on('error', () => {})
      process.on('uncaughtExceptionMonitor', (error) =>
        logger.fatal({ err: error }, 'unexpected error: the process ends'),
      )
      const print = (line: string) => process.stdout.write(`${line}\n`)
      const code = await serve({ config, logger, demo, isKeyLost, print }, stopRequested)
      process.exit(code)
    })
}

/** One Ctrl-C may arrive twice, from the terminal and from npm; only a later signal counts as a second one. */
const REPEAT_MS = 1_000

/**
 * Resolves at the first SIGINT, SIGTERM or SIGHUP. A second SIGINT, over a second later, exits at once; other processes
 * take over its claims when their leases expire.
 */
function waitForSignal(): Promise<StopRequest> {
  let firstAtMs: number | undefined
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => {
        if (firstAtMs === undefined) {
          firstAtMs = systemClock.now()
          resolve({ reason: signal, isFailure: false })
        } else if (signal === 'SIGINT' && systemClock.now() - firstAtMs >= REPEAT_MS) {
          process.exit(130)
        }
      })
  })
}
