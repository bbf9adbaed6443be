import type { Application, Connection, RecentRevocations } from './state.ts'

/** Retention of a revocation. A permission decided before it, in another process, may arrive after it. */
const REMEMBERED_MS = 5_000

/** No revocation. */
export function buildRecentRevocations(): RecentRevocations {
  return { withdrawals: new Map(), terminations: new Map() }
}

/** A user id has no control character, so that no two pairs are alike. */
const keyOf = (user: string, channel: string) => `${user}\n${channel}`

/** Remembers a withdrawal. */
export function noteWithdrawal(
  { revocations }: Application,
  access: { user: string; channel: string },
  nowMs: number,
): void {
  revocations.withdrawals.set(keyOf(access.user, access.channel), nowMs)
}

/** Remembers a termination. */
export function noteTermination({ revocations }: Application, user: string, nowMs: number): void {
  revocations.terminations.set(user, nowMs)
}

/** Whether the access of a user to a channel was recently withdrawn. */
export function wasWithdrawn({ revocations }: Application, user: string, channel: string): boolean {
  return revocations.withdrawals.has(keyOf(user, channel))
}

/** Whether the connections of a user were recently terminated, while this one was open. */
export function wasTerminated({ application, openedAtMs }: Connection, user: string): boolean {
  const terminatedAtMs = application.revocations.terminations.get(user)
  return terminatedAtMs !== undefined && openedAtMs <= terminatedAtMs
}

/** Removes older revocations. */
export function forgetRevocations({ revocations }: Application, nowMs: number): void {
  for (const kept of [revocations.withdrawals, revocations.terminations])
    for (const [key, atMs] of kept) if (nowMs - atMs >= REMEMBERED_MS) kept.delete(key)
}
