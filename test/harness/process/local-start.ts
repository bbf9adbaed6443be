import pino from 'pino'
import { readConfig } from '../../../src/app/config/config.ts'
import { buildLogOptions } from '../../../src/app/log/logger.ts'
import { type ServeOptions, type StopRequest, serve } from '../../../src/app/serve.ts'
import { prepareDemonstration } from '../../../src/command/demo/demonstrate.ts'
import { addSample } from '../../../src/command/sample/add-sample.ts'
import { SMALL_HASH_ENVIRONMENT } from '../app/small-hash.ts'
import { waitFor } from '../run/wait.ts'

/** `signalbox serve` in the process of the tests: its start, what it prints, and its stop. Stopped at the end of its scope. */
export interface LocalStart extends AsyncDisposable {
  /** Output so far. */
  stdout(): string
  /** The lines that it logged so far. */
  logged(): string
  /** The first match of `pattern` in what it printed or logged; rejects when it ends before. */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray>
  /** Stops it in order, once. Resolves with the exit code. */
  stop(): Promise<number>
}

/**
 * Starts the service as its command does, with the demonstration if `demo`, and sample data if
 * `sample`. It takes a tenth of the processor time of a
 * process of its own, so it stands where no test kills it. `env` is all of its environment, besides a small cost of
 * password hashes.
 */
export function startHere(
  env: Record<string, string>,
  {
    demo = false,
    sample = false,
    ...more
  }: Pick<ServeOptions, 'machine' | 'onShown'> & Partial<Record<'demo' | 'sample', boolean>> = {},
): LocalStart {
  const config = readConfig({ ...SMALL_HASH_ENVIRONMENT, ...env }, '/nowhere')
  const written = { out: '', log: '' }
  const write = (line: string) => {
    written.log += line
  }
  const logger = pino(buildLogOptions(demo && !config.isLogLevelGiven ? 'warn' : config.logLevel), { write })
  const print = (line: string) => {
    written.out += `${line}\n`
  }
  const stop = Promise.withResolvers<StopRequest>()
  let failure: unknown
  const ended = serve(
    {
      ...{ config, logger, print, ...more },
      ...(demo && { prepareDemonstration }),
      ...(sample && { fillDatabase: addSample }),
    },
    stop.promise,
  )
  ended.catch((error: unknown) => {
    failure = error
  })
  const stopInOrder = () => {
    stop.resolve({ reason: 'the end of the test', isFailure: false })
    return ended
  }
  return {
    stdout: () => written.out,
    logged: () => written.log,
    waitForOutput: (pattern) =>
      waitFor(
        `output ${pattern}`,
        () => {
          if (failure !== undefined) throw failure
          return pattern.exec(written.out) ?? pattern.exec(written.log) ?? undefined
        },
        { limitMs: 180_000, describe: () => `It wrote:\n${written.out}\n${written.log}` },
      ),
    stop: stopInOrder,
    [Symbol.asyncDispose]: async () => {
      await stopInOrder().catch(() => {})
    },
  }
}
