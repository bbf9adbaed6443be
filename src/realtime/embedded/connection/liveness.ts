import type { Connection } from '../application/state.ts'
import type { CloseName } from '../frame/close-reason.ts'
import type { RealtimeLimits } from '../frame/limits.ts'

/** The client pings after the activity timeout; the server does so this much later, for clients that do not. */
const CLIENT_FIRST_MS = 10_000

/** Action that is due for a connection. */
export type LivenessVerdict = 'nothing' | 'ping' | CloseName

/** Decides the due action by the last sign of life of a connection. Pure. */
export function decideLiveness(
  connection: Pick<Connection, 'lastSeenAtMs' | 'pingedAtMs' | 'openedAtMs' | 'isAuthorized'>,
  limits: RealtimeLimits,
  nowMs: number,
): LivenessVerdict {
  const { lastSeenAtMs, pingedAtMs, openedAtMs, isAuthorized } = connection
  const { authorizeWithinSeconds, activityTimeoutSeconds, pongTimeoutSeconds } = limits
  const isLate = authorizeWithinSeconds > 0 && nowMs - openedAtMs >= authorizeWithinSeconds * 1000
  if (isLate && !isAuthorized) return 'unauthorized'
  const isWaiting = pingedAtMs !== undefined && lastSeenAtMs < pingedAtMs
  if (isWaiting) return nowMs - pingedAtMs >= pongTimeoutSeconds * 1000 ? 'no-pong' : 'nothing'
  return nowMs - lastSeenAtMs >= activityTimeoutSeconds * 1000 + CLIENT_FIRST_MS ? 'ping' : 'nothing'
}
