/** Rows that come at a rate and are deleted when they are old. */
export interface KeptRows {
  /** Present size, with indexes. */
  bytes: number
  ageDays: number
  bytesPerDay: number
  /** After how many days they are deleted; 0: never. */
  retentionDays: number
}

/** Horizon of the forecast: today's rate means nothing beyond. */
const HORIZON_DAYS = 3_650

/**
 * Days until `freeBytes` are used up at the current rate; null beyond ten years, when deletions keep up with inserts,
 * or without inserts. Until rows reach their retention none is deleted; then the existing ones are deleted at their
 * average rate, and from the retention on inserts and deletions are equal. PostgreSQL does not return freed space: the
 * forecast is for the first time at which the disk is full.
 */
export function forecastFullDisk(freeBytes: number, kept: readonly KeptRows[]): number | null {
  const usedAt = (day: number) => kept.reduce((sum, rows) => sum + growthOf(rows, day), 0)
  if (freeBytes <= 0) return 0
  // Growth is linear between these days.
  const bends = kept.flatMap(({ ageDays, retentionDays }) =>
    retentionDays === 0 ? [] : [Math.max(0, retentionDays - ageDays), retentionDays, endOfOld(ageDays, retentionDays)],
  )
  const days = [0, ...bends.filter((day) => day < HORIZON_DAYS), HORIZON_DAYS].sort((a, b) => a - b)
  for (const [index, to] of days.entries()) {
    if (usedAt(to) < freeBytes) continue
    const from = days[index - 1] ?? 0
    const share = (freeBytes - usedAt(from)) / (usedAt(to) - usedAt(from))
    return from + (to - from) * share
  }
  return null
}

/** Deletion of the last of the current rows. */
const endOfOld = (ageDays: number, retentionDays: number) => Math.max(0, retentionDays - ageDays) + ageDays

/** By how much these rows grow until `day`. */
function growthOf({ bytes, ageDays, bytesPerDay, retentionDays }: KeptRows, day: number): number {
  if (retentionDays === 0) return bytesPerDay * day
  const came = bytesPerDay * Math.min(day, retentionDays)
  const untilDeletion = Math.max(0, retentionDays - ageDays)
  const gone = ageDays === 0 ? 0 : bytes * Math.min(1, Math.max(0, day - untilDeletion) / ageDays)
  return came - gone
}
