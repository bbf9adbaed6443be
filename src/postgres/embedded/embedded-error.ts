import { CodedError } from '../../base/coded-error.ts'

/** Codes of a failed start of the embedded PostgreSQL. Stable: tests and callers decide on them. */
export type EmbeddedPostgresErrorCode =
  | 'platform_unsupported'
  | 'binaries_missing'
  | 'no_unprivileged_user'
  | 'data_dir_unreadable'
  | 'data_dir_in_use'
  | 'data_dir_version'
  | 'disk_full'
  | 'postgres_failed_to_start'

/** A failed start of the embedded PostgreSQL that a user can fix. `message` is one sentence. */
export class EmbeddedPostgresError extends CodedError<EmbeddedPostgresErrorCode> {}

/** The remedy on a machine that cannot run the embedded server. */
export const USE_DATABASE_URL = 'set DATABASE_URL to use a PostgreSQL of your own'

/** The `code` of a Node system error (`EACCES`, `ENOENT`, ...), or undefined for any other value. */
export function findSystemErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** Maps a file system error of the data directory to an `EmbeddedPostgresError`; returns others unchanged. */
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
        { cause: error },
      )
    default:
      return error
  }
}

function buildDiskFullError(dataDir: string, cause: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'disk_full',
    `The disk that holds the data directory ${dataDir} is full: free some space and start again.`,
    { cause: cause },
  )
}

/** Lines of the server's log in the error of a failed start. */
const SHOWN_LOG_LINES = 8

/** A run of initdb or of the server that ended too early. */
export interface FailedRun {
  /** The program that failed: `initdb` or `postgres`. */
  program: string
  dataDir: string
  /** Result of the program: `exit code 1`, `signal SIGKILL`. */
  ending: string
  output: string
}

/** Builds the error of a failed initdb or server from its output. Pure. */
export function buildFailedRunError(run: FailedRun): EmbeddedPostgresError {
  if (run.output.includes('No space left on device')) return buildDiskFullError(run.dataDir, run.output)
  if (run.output.includes('could not look up effective user ID')) {
    return new EmbeddedPostgresError(
      'no_unprivileged_user',
      'PostgreSQL needs a user with a name in /etc/passwd, and the current user has none: ' +
        `run signalbox as a named user, or ${USE_DATABASE_URL}.`,
      { cause: run.output },
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
