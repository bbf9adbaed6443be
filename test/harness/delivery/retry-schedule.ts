import { RETRY_DELAYS_MS } from '../../../src/webhook/delivery/outcome.ts'

/** Advances the clock over the whole retry schedule: a delivery that fails at every attempt is exhausted after it. */
export async function passRetrySchedule(service: {
  clock: { advance(ms: number): void }
  settle(): Promise<void>
}): Promise<void> {
  for (const delayMs of RETRY_DELAYS_MS) {
    service.clock.advance(delayMs)
    await service.settle()
  }
}
