import type { SessionId, UserId } from '../../../base/id.ts'
import { deletionOfOld } from '../../../postgres/retention.ts'
import { closingStatement, rowStatement } from '../../../postgres/statement/statement.ts'

/** Inserts the encrypted token of a session that the same transaction opens, with its last statement. */
export const insertEngineSession = closingStatement<{
  sessionId: SessionId
  userId: UserId
  token: string
  expiresAt: Date
}>(`
  new_engine_session as (
    insert into engine_session (session, "user", token, expires_at) values ($sessionId, $userId, $token, $expiresAt))`)

/** The encrypted token of a session, until it expires. */
export const findSealedEngineToken = rowStatement<{ token: string }, { sessionId: SessionId; now: Date }, string>(
  'select token from engine_session where session = $sessionId and expires_at > $now',
  ({ token }) => token,
)

/** Deletes the token of a session, with the last statement of the transaction. */
export const deleteEngineSession = closingStatement<{ sessionId: SessionId }>(
  'ended_engine_session as (delete from engine_session where session = $sessionId)',
)

/** Deletes tokens that expired before `before`, at most `limit`. Returns their number. */
export const deleteExpiredEngineSessions = deletionOfOld('engine_session', { key: 'session', time: 'expires_at' })
