/** Why the embedded PostgreSQL could not start. Stable: the command line prints the sentence and tests read the code. */
export type EmbeddedPostgresErrorCode =
  | 'platform_unsupported'
  | 'binaries_missing'
  | 'no_unprivileged_user'
  | 'data_dir_unreadable'
  | 'data_dir_in_use'
  | 'data_dir_version'
  | 'disk_full'
  | 'postgres_failed_to_start'

/** A start of the embedded PostgreSQL that failed for a reason a person can act on. `message` is one plain sentence. */
export class EmbeddedPostgresError extends Error {
  readonly code: EmbeddedPostgresErrorCode

  constructor(code: EmbeddedPostgresErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'EmbeddedPostgresError'
    this.code = code
  }
}

/** What every message offers to a machine that cannot run the embedded server. */
export const USE_DATABASE_URL = 'set DATABASE_URL to use a PostgreSQL of your own'

/** The `code` of a Node system error (`EACCES`, `ENOENT`, ...), or undefined for any other value. */
export function findSystemErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/**
 * Turns what went wrong below the data directory into the error a person can act on. Pure.
 * An error that already is one passes unchanged; anything unknown stays as it is, because a guess would mislead.
 */
export function buildDataDirError(dataDir: string, error: unknown): unknown {
  if (error instanceof EmbeddedPostgresError) return error
  const code = findSystemErrorCode(error)
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return buildDiskFullError(dataDir, error)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOTDIR':
    case 'EEXIST':
    case 'ELOOP':
    case 'ENAMETOOLONG':
    case 'EIO':
      return new EmbeddedPostgresError(
        'data_dir_unreadable',
        `The data directory ${dataDir} cannot be read and written (${code}): give it to the user who runs signalbox, ` +
          `choose another with SIGNALBOX_DATA_DIR, or ${USE_DATABASE_URL}.`,
        error,
      )
    default:
      return error
  }
}

function buildDiskFullError(dataDir: string, cause: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'disk_full',
    `The disk that holds the data directory ${dataDir} is full: free some space and start again.`,
    cause,
  )
}

/** How many lines of the server's own log a failed start shows. */
const SHOWN_LOG_LINES = 8

/** What is known of a run of initdb or of the server that ended too early. */
export interface FailedRun {
  /** The program that failed: `initdb` or `postgres`. */
  program: string
  dataDir: string
  /** How it ended, in words: `exit code 1`, `signal SIGKILL`. */
  ending: string
  /** Everything it wrote. */
  output: string
}

/** Reads the output of a failed initdb or server and says what happened. Pure. */
export function buildFailedRunError(run: FailedRun): EmbeddedPostgresError {
  if (run.output.includes('No space left on device')) return buildDiskFullError(run.dataDir, run.output)
  if (run.output.includes('could not look up effective user ID')) {
    return new EmbeddedPostgresError(
      'no_unprivileged_user',
      'PostgreSQL needs the user who runs it to have a name in /etc/passwd, and this one has none: ' +
        `run signalbox as a named user, or ${USE_DATABASE_URL}.`,
      run.output,
    )
  }
  const lines = run.output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .slice(-SHOWN_LOG_LINES)
  const said = lines.length === 0 ? 'It wrote nothing.' : `Its last lines:\n  ${lines.join('\n  ')}`
  return new EmbeddedPostgresError(
    'postgres_failed_to_start',
    `The embedded PostgreSQL did not start (${run.program} ended with ${run.ending}). ${said}`,
  )
}
