import { setImmediate } from 'node:timers/promises'
import { COLLECT_MS } from '../../../src/realtime/authorization/subscription-guard.ts'
import type { TestAnswer, TestApp, TestCall } from '../app/app.ts'
import { countTraffic, type Traffic } from '../plan/round-trips.ts'
import { waitFor } from '../run/wait.ts'

/** How often a process proves its listening connection, in milliseconds of its clock. */
const PROOF_EVERY_MS = 250

/** A measured request. */
export interface Measured {
  answer: TestAnswer
  traffic: Traffic
  /** The statements, in order. */
  texts: readonly string[]
  /** Whether the caches were used to the end. False for a process that stood still for a second: it has read them again. */
  isHeld: boolean
}

/**
 * Measures the statements and round trips of a request whose caller, and the subscribed reads, are cached. `app` must have
 * been started. A process uses its caches for one second of real time after a proof that notifications arrive, so each
 * measurement begins with a new proof.
 */
export async function measureHeld(
  app: TestApp,
  caller: TestCall,
  request: () => Promise<TestAnswer>,
): Promise<Measured> {
  await renewProof(app)
  const warmed = await caller('GET', '/api/v3/auth/session')
  if (warmed.status !== 200) throw new Error(`the caller is not signed in: ${JSON.stringify(warmed.body)}`)
  await untilIdle(app)
  const count = countTraffic(app.database.pool)
  const answer = await request()
  return { answer, traffic: count.stop(), texts: count.texts, isHeld: app.app.isLive() }
}

/**
 * Makes the process send a proof, and waits until it has arrived, after the notes of every earlier change. Other timers of
 * the advanced clock, such as the exchange of rate limits, have ended then.
 */
async function renewProof(app: TestApp): Promise<void> {
  const startedAt = performance.now()
  await waitFor('a new proof that notifications arrive', () => {
    if (app.app.isLive(performance.now() - startedAt)) return true
    app.clock.advance(PROOF_EVERY_MS)
    return false
  })
  // Realtime grants are checked again after a change; that is no part of the next request.
  app.clock.advance(COLLECT_MS)
  await app.app.realtime.guard?.settled()
  await untilIdle(app)
}

async function untilIdle({ database: { pool } }: TestApp): Promise<void> {
  await waitFor('the pool to be idle', async () => {
    await setImmediate()
    return pool.idleCount === pool.totalCount && pool.waitingCount === 0
  })
}
