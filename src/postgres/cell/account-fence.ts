import type { AccountId } from '../../base/id.ts'

/** The SQLSTATE of a statement that writes for an account that is not in its database (`refuse_accounts`). */
const REFUSED = 'SB001'

/** How long an account is refused while it moves, by experience, in seconds: for `Retry-After`. */
export const MOVING_RETRY_SECONDS = 5

/** The accounts that the fence of a database refused (docs/decisions/0062-cells.md): they are elsewhere, or move. */
export function readRefusedAccounts(error: unknown): readonly AccountId[] {
  const { code, detail } = (error ?? {}) as { code?: unknown; detail?: unknown }
  return code === REFUSED && typeof detail === 'string' ? (detail.split(',') as AccountId[]) : []
}

/** Whether the fence of a database refused a statement. */
export function isAccountRefused(error: unknown): boolean {
  return readRefusedAccounts(error).length > 0
}
