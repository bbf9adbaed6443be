import { RETRY_DELAYS_MS } from '../../src/webhook/delivery/outcome.ts'

/** Lets the whole retry schedule pass: what fails at every attempt is exhausted after it. */
export async function passRetrySchedule(service: {
  clock: { advance(ms: number): void }
  settle(): Promise<void>
}): Promise<void> {
  for (const delayMs of RETRY_DELAYS_MS) {
    service.clock.advance(delayMs)
    await service.settle()
  }
}
