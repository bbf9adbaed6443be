/** Waits before the next try to connect: the client library alone would wait up to 46 s after an outage of 20 s. */
const WAITS_MS = [2_000, 4_000, 8_000, 15_000] as const

/** The wait before try number `tries` (from 0 on), up to a quarter longer, so that clients do not return at once. Pure. */
export function decideWait(tries: number, random: number): number {
  const wait = WAITS_MS[Math.min(tries, WAITS_MS.length - 1)] ?? 0
  return Math.round(wait * (1 + random / 4))
}

/** The close code after which connecting again with the same settings is of no use: the application or the protocol is wrong. */
export function isFinalClose(code: number | null): boolean {
  return code !== null && code >= 4000 && code < 4100 && code !== TERMINATED && code !== OVER_QUOTA
}

/** Too many connections, which ends by itself. */
const OVER_QUOTA = 4004

/** The provider ended the connections of the user. The channels that are left may be joined again. */
export const TERMINATED = 4009
