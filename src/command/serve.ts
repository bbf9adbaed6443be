import type { Command } from 'commander'
import type { Logger } from 'pino'
import { type Config, readConfig } from '../app/config/config.ts'
import type { FillDatabase, PrepareDemonstration, StopRequest } from '../app/serve.ts'
import { readMonotonicMs } from '../base/clock.ts'
import type { Launcher } from './launcher.ts'
import { toPrintableLine } from './print/printable.ts'
import { buildStopSignals, STOP_SIGNALS } from './stop-signal.ts'

interface ServeFlags {
  demo: boolean
  sample: boolean
  lostSecretKey: boolean
}

const SAMPLE = '--sample'
const SAMPLE_TEXT = 'add a month of sample data once, before the service is ready (development only)'

/** Adds `signalbox serve` and `signalbox start`. `launcher`: the process that started this one, where there is one. */
export function addServeCommand(program: Command, launcher: Launcher | undefined): void {
  program
    .command('start')
    .description('run the service and demonstrate a delivery, to look around (development only): serve --demo')
    .option(SAMPLE, SAMPLE_TEXT, false)
    .action(({ sample }: Pick<ServeFlags, 'sample'>) => run({ demo: true, sample, lostSecretKey: false }, launcher))
  program
    .command('serve')
    .description('run the service, with the roles of SIGNALBOX_ROLES')
    .option('--demo', 'demonstrate a delivery after the start (development only)', false)
    .option(SAMPLE, SAMPLE_TEXT, false)
    .option('--lost-secret-key', 'start although SECRET_KEY decrypts no stored secret, to rotate every secret', false)
    .action((flags: ServeFlags) => run(flags, launcher))
}

async function run(flags: ServeFlags, launcher: Launcher | undefined): Promise<never> {
  const { demo, sample, lostSecretKey: isKeyLost } = flags
  const config = readConfig()
  const stopRequested = waitForSignal(launcher)
  const [{ openLog }, { serve }] = await Promise.all([import('../app/log/logger.ts'), import('../app/serve.ts')])
  const isTerminal = process.stderr.isTTY === true
  // The demonstration prints on standard output; until it has ended the log shows warnings and errors only.
  const isQuiet = demo && !config.isLogLevelGiven
  const level = isQuiet ? 'warn' : config.logLevel
  const log = openLog({ level, isTerminal, successesPerSecond: config.logSuccessesPerSecond })
  const { logger } = log
  // In a terminal each request is shown.
  const onShown = () => {
    if (isQuiet && isTerminal) logger.level = config.logLevel
    if (config.roles.includes('api')) void provideConsole(config, logger, stopRequested)
  }
  // A closed standard output (`npm start | head`, a closed terminal) does not end the service.
  process.stdout.on('error', () => {})
  process.on('uncaughtExceptionMonitor', (error) =>
    logger.fatal({ err: error }, 'unexpected error, the process ends: see docs/operations.md, unexpected errors'),
  )
  const print = (line: string) => process.stdout.write(`${toPrintableLine(line)}\n`)
  const prepareDemonstration = demo ? loadDemonstration : undefined
  const code = await serve(
    {
      ...{ config, logger, logCounts: log.counts, prepareDemonstration, isKeyLost, print, onShown },
      fillDatabase: sample ? loadSample : undefined,
    },
    stopRequested,
  )
  await log.drain()
  process.exit(code)
}

/** Last, because no user waits for it: builds the console of a checkout in development. Elsewhere it must be built. */
async function provideConsole(
  { appEnv }: Pick<Config, 'appEnv'>,
  logger: Logger,
  stopRequested: Promise<StopRequest>,
): Promise<void> {
  const stop = new AbortController()
  void stopRequested.then(() => stop.abort())
  const { buildConsoleInBackground, warnWithoutConsole } = await import('../operations/console/build-console.ts')
  if (appEnv === 'development') await buildConsoleInBackground(logger, stop.signal)
  else warnWithoutConsole(logger)
}

/** Loads the demonstration when the service listens: the start does not wait for its modules. */
const loadDemonstration: PrepareDemonstration = async (parts) =>
  (await import('./demo/demonstrate.ts')).prepareDemonstration(parts)

/** The same for the sample. */
const loadSample: FillDatabase = async (parts) => (await import('./sample/add-sample.ts')).addSample(parts)

/** Resolves at the first signal that ends the service, or SIGINT of the launcher; a second Ctrl-C exits at once. */
function waitForSignal(launcher: Launcher | undefined): Promise<StopRequest> {
  const signals = buildStopSignals(readMonotonicMs)
  return new Promise((resolve) => {
    launcher?.takeInterrupts(() => {
      signals.takeOfLauncher()
      resolve({ reason: 'SIGINT', isFailure: false })
    })
    for (const signal of STOP_SIGNALS)
      process.on(signal, () => {
        if (signals.take(signal) === 'exit') process.exit(130)
        resolve({ reason: signal, isFailure: false })
      })
  })
}
