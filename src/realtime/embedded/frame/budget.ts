/** A rate that holds over time and allows a burst: a token bucket. */
export interface Budget {
  left: number
  filledAtMs: number
}

/** A full budget. */
export function openBudget(burst: number, nowMs: number): Budget {
  return { left: burst, filledAtMs: nowMs }
}

/** Takes one token; false when none is left. A clock that steps back adds none. */
export function spend(budget: Budget, rate: { perSecond: number; burst: number }, nowMs: number): boolean {
  const elapsedMs = Math.max(0, nowMs - budget.filledAtMs)
  budget.left = Math.min(rate.burst, budget.left + (elapsedMs * rate.perSecond) / 1000)
  budget.filledAtMs = nowMs
  if (budget.left < 1) return false
  budget.left -= 1
  return true
}
