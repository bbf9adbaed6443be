import type { AccountId, ConnectionId } from '../../base/id.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { AccountName, SessionDescription } from './session.store.ts'

/** The connection by which a user signed in: the session is for its account, and ends at `endsAt` at the latest. */
export interface ProvenByConnection {
  connection: ConnectionId
  account: AccountId
  endsAt: Date
  /** The account of a user whom this transaction has locked and found active. Default: the user is locked here. */
  locked?: AccountName
}

/** The path at which a signed-in user proves its session by a connection (docs/contract/connections.md#proof-of-a-session). */
export const ENTER_PATH = '/auth/organization/enter'

/** The same for one connection. */
export const buildEnterPath = (connection: string) => `${ENTER_PATH}?${new URLSearchParams({ connection })}`

/** Refusal of a sign-in method that an account closed (docs/contract/connections.md#closed-ways-in). */
export function buildConnectionRequired(connection: ConnectionId): Problem {
  const start = `/api/v3/auth/login/oauth/${connection}`
  return new Problem('connection_required', 'Your account signs its members in by its own provider. Sign in there.', {
    errors: [{ path: 'connection', code: 'required', message: start }],
    reason: 'connection_required',
  })
}

/** An account of a user that its token lacks. */
export interface ClosedAccount extends AccountName {
  connection: ConnectionId
  /** The path at which the session is proven; null for an API key. */
  enterPath: string | null
}

/** The accounts of a caller that its token reaches, and those that it lacks. Pure. */
export function divideAccounts<Described extends Pick<SessionDescription, 'accounts'>>(
  described: Described,
  { narrowing }: Pick<Caller, 'narrowing'>,
): Described & { closed: ClosedAccount[] } {
  if (narrowing?.provenUntil !== null) return { ...described, closed: [] }
  const { account, connection, enterPath } = narrowing
  const closed = described.accounts.filter(({ id }) => id === account)
  return {
    ...described,
    accounts: described.accounts.filter(({ id }) => id !== account),
    closed: closed.map((name) => ({ ...name, connection, enterPath })),
  }
}
