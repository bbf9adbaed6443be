import { FACTS_LIFETIME_MS } from '../../src/operations/health/webhook-out.ts'
import type { ManualClock } from '../harness/run/manual-clock.ts'
import type { MakeRequest } from './route-requests.ts'

/** Input of a successful request to each route of the health. */
export function buildHealthRouteRequests(
  clock: () => Pick<ManualClock, 'advance'>,
): Record<string, MakeRequest | undefined> {
  /** Components answer from memory for a while. */
  const whenCheckIsOld = () => {
    clock().advance(FACTS_LIFETIME_MS)
    return {}
  }
  return {
    'health.webhook-out': whenCheckIsOld,
    'health.realtime': whenCheckIsOld,
    'health.provisioning': whenCheckIsOld,
    'health.stored-secrets': whenCheckIsOld,
    'health.clock': whenCheckIsOld,
    'health.connections': whenCheckIsOld,
    'health.find-all': whenCheckIsOld,
    'health.service': undefined,
  }
}
