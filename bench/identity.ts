import { compareApi } from './api.ts'
import { IDENTITY_CASES } from './identity-case.ts'
import { fillIdentity } from './identity-fill.ts'
import { measureStorm } from './sign-in-storm.ts'

/** The name of the measurement that is no comparison of requests. */
const STORM = 'storm'

/**
 * Measures bearer check, refresh and exchange, each beside a bare route in the same run, and what a storm of wrong
 * passwords does to the latency of other requests. `names` are cases of `IDENTITY_CASES`, or `STORM`.
 */
export async function measureIdentity(
  names: readonly string[],
  options: { seconds: number; rounds: number },
): Promise<void> {
  const cases = names.filter((name) => name !== STORM)
  const set = { cases: IDENTITY_CASES, sides: { fill: fillIdentity, checksBearer: true } }
  if (cases.length > 0) await compareApi(cases, options, set)
  if (names.includes(STORM)) await measureStorm(options)
}
