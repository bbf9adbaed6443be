import type { ProviderErrorClass, ProviderVerdict } from '../provider/provider-outcome.ts'

export type OutcomeSource = 'probe' | 'publish'

export interface Verdict {
  status: 'operational' | 'degraded' | 'down'
  lastSuccessAt: Date | null
  lastError: ProviderErrorClass | null
  lastErrorAt: Date | null
  /** Status of the last refusal (4xx): it does not affect the verdict, but shows a wrong secret. */
  lastWarningCode: number | null
  lastWarningAt: Date | null
}

export interface Observations {
  /** The latest ones, the newest last. */
  conclusive: readonly { source: OutcomeSource; isSuccess: boolean; atMs: number }[]
  facts: Omit<Verdict, 'status'>
}

/** No outcome yet. */
export const NOTHING_SEEN: Observations = {
  conclusive: [],
  facts: { lastSuccessAt: null, lastError: null, lastErrorAt: null, lastWarningCode: null, lastWarningAt: null },
}

const KEPT = 20

/** Publishes in a row whose failure means `down`, though the probe succeeds. */
const FAILED_PUBLISHES = 3

/** Time for which a failure among the latest outcomes means `degraded`. */
const DEGRADED_FOR_MS = 300_000

/** Adds an outcome. Pure. */
export function observe(
  seen: Observations,
  outcome: ProviderVerdict,
  { source, now }: { source: OutcomeSource; now: Date },
): Observations {
  if (outcome.kind === 'rejected') {
    const facts = { ...seen.facts, lastWarningCode: outcome.statusCode, lastWarningAt: now }
    return { ...seen, facts }
  }
  const isSuccess = outcome.kind === 'ok'
  const facts = isSuccess
    ? { ...seen.facts, lastSuccessAt: now }
    : { ...seen.facts, lastError: outcome.errorClass, lastErrorAt: now }
  return { conclusive: [...seen.conclusive, { source, isSuccess, atMs: now.getTime() }].slice(-KEPT), facts }
}

/**
 * The verdict (docs/contract/realtime.md#health-probe): `down` when the last outcome is a failure, or the last three
 * publishes are; `degraded` when one of the latest outcomes was, within five minutes. Pure.
 */
export function decideVerdict({ conclusive, facts }: Observations, now: Date): Verdict {
  const publishes = conclusive.filter((item) => item.source === 'publish').slice(-FAILED_PUBLISHES)
  const allFailed = publishes.length === FAILED_PUBLISHES && publishes.every((publishe) => !publishe.isSuccess)
  if (conclusive.at(-1)?.isSuccess === false || allFailed) return { status: 'down', ...facts }
  const isShaken = conclusive.some((item) => !item.isSuccess && now.getTime() - item.atMs < DEGRADED_FOR_MS)
  return { status: isShaken ? 'degraded' : 'operational', ...facts }
}
