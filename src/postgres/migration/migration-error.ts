import { CodedError } from '../../base/coded-error.ts'

/** Reason for which a schema cannot be used or migrated. Stable; each has a section in docs/operations.md. */
export type MigrationErrorCode =
  | 'postgres_too_old'
  | 'schema_ahead'
  | 'schema_diverged'
  | 'migration_edited'
  | 'migration_failed'

/** A migration that cannot run, or a schema that this program cannot run on; the message names it and the remedy. */
export class MigrationError extends CodedError<MigrationErrorCode> {
  constructor(code: MigrationErrorCode, message: string, options?: ErrorOptions) {
    super(code, `${message} (${code}: see docs/operations.md, ${code})`, options)
  }
}
