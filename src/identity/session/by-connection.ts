import type { AccountId, ConnectionId } from '../../base/id.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { AccountName } from './session.store.ts'

/** The connection by which a user signed in: the session is for its account, and ends at `endsAt` at the latest. */
export interface ProvenByConnection {
  connection: ConnectionId
  account: AccountId
  endsAt: Date
  /** The account of a user whom this transaction has locked and found active. Default: the user is locked here. */
  locked?: AccountName
}

/** The path at which a signed-in user proves its session by a connection (docs/contract/pages.md#account-of-an-organization). */
export const ENTER_PATH = '/auth/organization/enter'

/** The same for one connection. */
export const buildEnterPath = (connection: string) => `${ENTER_PATH}?${new URLSearchParams({ connection })}`

/**
 * The refusal of a sign-in method that an account closed to its members (docs/contract/connections.md#closed-ways-in).
 */
export function buildConnectionRequired(connection: ConnectionId): Problem {
  const start = `/api/v3/auth/login/oauth/${connection}`
  return new Problem('connection_required', 'Your account signs its members in by its own provider. Sign in there.', {
    errors: [{ path: 'connection', code: 'required', message: start }],
    reason: 'connection_required',
  })
}
