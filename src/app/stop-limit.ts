import type { Logger } from 'pino'
import type { Config } from './config/config.ts'

/** Time limit of an orderly stop; then the process exits. */
const STOP_LIMIT_MS = 9_500

/** The time limit of a stop. */
export interface StopLimit {
  /** Exits when the stop takes too long since the first call. Other processes take over the expired leases. */
  start(): void
  end(): void
}

/** Builds the time limit of a stop: longer by the delay of the settings. */
export function buildStopLimit({ logger, config }: { logger: Logger; config: Config }): StopLimit {
  let timer: NodeJS.Timeout | undefined
  return {
    start: () => {
      timer ??= setTimeout(
        () => {
          logger.error('shutdown timed out: see docs/operations.md, stopping')
          process.exit(1)
        },
        config.shutdownDelaySeconds * 1000 + STOP_LIMIT_MS,
      )
      timer.unref()
    },
    end: () => clearTimeout(timer),
  }
}
