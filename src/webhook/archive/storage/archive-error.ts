import { CodedError } from '../../../base/coded-error.ts'

/** Why an archive cannot be written or read (docs/operations/ledger.md#codes). */
export type ArchiveErrorCode =
  | 'before_too_late'
  | 'credentials_missing'
  | 'export_running'
  | 'file_damaged'
  | 'file_missing'
  | 'manifest_invalid'
  | 'place_invalid'
  | 'storage_refused'
  | 'storage_unreachable'
  | 'verification_failed'

/** A failure with what to do, and without a secret. */
export class ArchiveError extends CodedError<ArchiveErrorCode> {
  constructor(code: ArchiveErrorCode, message: string, options?: ErrorOptions) {
    super(code, `${message} (${code}: see docs/operations/ledger.md, codes)`, options)
  }
}
