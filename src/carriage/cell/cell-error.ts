import { CodedError } from '../../base/coded-error.ts'

/** Why a database cannot be a cell, or a step of a cell failed (docs/operations/cells.md#codes). */
export type CellErrorCode =
  | 'log_off'
  | 'home_is_cell'
  | 'home_wal_level'
  | 'home_rights'
  | 'home_slots'
  | 'home_slot_used'
  | 'cell_unreachable'
  | 'cell_version'
  | 'cell_rights'
  | 'cell_is_home'
  | 'cell_of_another_service'
  | 'cell_of_another_name'
  | 'cell_not_empty'
  | 'name_taken'
  | 'home_unreachable_from_cell'
  | 'reference_slow'
  | 'unknown_cell'
  | 'cell_state'
  | 'cell_has_accounts'
  | 'home_busy'

/** A failure with what to do, and without a secret. */
export class CellError extends CodedError<CellErrorCode> {
  constructor(code: CellErrorCode, message: string, options?: ErrorOptions) {
    super(code, `${message} (${code}: see docs/operations/cells.md, codes)`, options)
  }
}
