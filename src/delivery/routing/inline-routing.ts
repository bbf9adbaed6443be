import type { Clock } from '../../base/clock.ts'
import type { RoutedPolicies } from './routed-policies.ts'
import type { NamedPart, RoutedRows } from './routing.store.ts'

/** Wait of a statement of the request path for the claim mutex. */
const INLINE_WAIT_MS = 5

/** The right to route in the recording statement; ends with `accept` or `fail`. */
export interface InlineRouting {
  policies: readonly NamedPart[]
  /** Passes on the claims of the statement, once it is durable. */
  accept(byPolicy: readonly RoutedRows[]): Promise<void>
  /** Reports a failed statement, which may have claimed: its answer can be lost. */
  fail(): void
}

/** Takes the right to route in a recording statement. Undefined without a free slot, or while another one has it. */
export async function takeInlineRouting(
  policies: RoutedPolicies,
  rest: Clock['sleep'],
): Promise<InlineRouting | undefined> {
  if (policies.countSlots() === 0) return undefined
  const limit = new AbortController()
  const releaseTurns = await policies
    .takeTurns(() => rest(INLINE_WAIT_MS, limit.signal))
    .finally(() => limit.abort('over'))
  if (!releaseTurns) return undefined
  let parts: NamedPart[] | undefined
  try {
    // Others may have claimed meanwhile.
    parts = policies.countSlots() > 0 ? policies.buildParts() : undefined
  } finally {
    if (!parts) releaseTurns()
  }
  if (!parts) return undefined
  return {
    policies: parts,
    accept: async (byPolicy) => {
      try {
        await policies.accept(byPolicy)
      } catch (error) {
        // Claimed rows that were not accepted are searched.
        policies.expectLeaks()
        throw error
      } finally {
        releaseTurns()
      }
    },
    fail: () => {
      policies.expectLeaks()
      releaseTurns()
    },
  }
}
