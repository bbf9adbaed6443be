import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildMutex } from '../../base/semaphore.ts'
import { type Claim, nameClaim, type ReclaimRequest } from '../policy.ts'
import { JOIN_WAIT_MS, LEASE_MS } from '../worker-lease.ts'
import { buildRecovery, type RecoveryDeps } from './recovery.ts'

const BATCH = 500
const LOOK_MS = 1_000
const LOST = 'worker-lost'
const OWN = 'worker-own'

interface Asked {
  workerId: string
  agoMs: number
}

const claimsOf = (count: number, name = 'claim') =>
  Array.from({ length: count }, (_, index) => ({ id: `${name}-${index}`, fence: 1 }) as unknown as Claim)

/** A recovery beside these lost workers; `found` are the claims that each look at a worker finds. */
function open(
  given: { gone?: string[]; found?: Claim[][]; held?: Claim[]; isTrusted?: boolean; peers?: boolean } = {},
) {
  const { found = [], held = [], isTrusted = true } = given
  const clock = buildManualClock()
  const state = { gone: given.gone ?? [LOST], hasPeers: given.peers ?? false, renewals: 0, faults: 0 }
  const asked: Asked[] = []
  const settled: Claim[][] = []
  const mutex = buildMutex()
  const deps = {
    clock,
    mutex,
    workerId: OWN,
    logger: { warn: () => {}, error: () => {} },
    policy: {
      onSettled: () => {},
      queue: {
        reclaim: async ({ workerId, now, limit }: ReclaimRequest) => {
          expect(limit).toBe(workerId === OWN ? BATCH + held.length : BATCH)
          asked.push({ workerId, agoMs: clock.now() - now.getTime() })
          return found.shift() ?? []
        },
        settle: async (claims: Claim[]) => settled.push(claims),
      },
    },
    lease: {
      renew: async () => {
        state.renewals += 1
        if (state.faults > 0) {
          state.faults -= 1
          throw new Error('no database')
        }
        return state.gone
      },
      isTrusted: () => isTrusted,
      hasPeers: () => state.hasPeers,
      gone: () => state.gone,
    },
  } as unknown as RecoveryDeps<Claim, unknown>
  return { clock, state, asked, settled, mutex, recovery: buildRecovery(deps, () => new Set(held.map(nameClaim))) }
}

describe('a look', () => {
  test('ends the claims of lost workers, and no longer counts them among the others', async () => {
    const { recovery, asked, settled } = open({ gone: [LOST, 'other'], found: [claimsOf(2), []] })
    expect(recovery.mayOthersHold()).toBe(true)
    await recovery.run()
    expect(asked).toEqual([
      { workerId: LOST, agoMs: 0 },
      { workerId: 'other', agoMs: 0 },
    ])
    expect(settled).toEqual([claimsOf(2)])
    expect(recovery.mayOthersHold()).toBe(false)
  })

  test('ends no claim whose result this process has', async () => {
    const [first, second] = claimsOf(2) as [Claim, Claim]
    const { recovery, settled } = open({ gone: [], found: [[first, second]], held: [first] })
    recovery.expectLeak()
    await recovery.run()
    expect(settled).toEqual([[second]])
  })

  test('at the claims of this process waits for the statement that claims, whose answer may be on its way', async () => {
    const { recovery, mutex, asked } = open({ gone: [], found: [claimsOf(1)] })
    recovery.expectLeak()
    await mutex.take()
    const run = recovery.run()
    for (let turn = 0; turn < 30; turn += 1) await Promise.resolve()
    expect(asked).toEqual([])
    mutex.release()
    await run
    expect(asked).toHaveLength(1)
  })

  test('that found a full batch is not the last one', async () => {
    const { recovery, settled } = open({ found: [claimsOf(BATCH), claimsOf(BATCH - 1)] })
    await recovery.run()
    expect(recovery.mayOthersHold()).toBe(true)
    await recovery.run()
    expect(recovery.mayOthersHold()).toBe(false)
    expect(settled.map((claims) => claims.length)).toEqual([BATCH, BATCH - 1])
  })

  test('counts a worker again that came back and was lost once more', async () => {
    const { recovery, state } = open({ found: [[], claimsOf(BATCH)] })
    await recovery.run()
    state.gone = []
    await recovery.run()
    state.gone = [LOST]
    expect(recovery.mayOthersHold()).toBe(true)
    await recovery.run()
    expect(recovery.mayOthersHold()).toBe(true)
  })

  test('counts live workers among the others', async () => {
    const { recovery } = open({ gone: [], peers: true })
    await recovery.run()
    expect(recovery.mayOthersHold()).toBe(true)
  })

  test('ends nothing while the clocks differ', async () => {
    const { recovery, asked, state } = open({ isTrusted: false })
    await recovery.run()
    expect([asked, state.renewals]).toEqual([[], 1])
  })

  test('is due each second, also after the clock was set back', async () => {
    const { recovery, clock, state } = open()
    await recovery.runIfDue()
    clock.advance(LOOK_MS - 1)
    await recovery.runIfDue()
    expect(state.renewals).toBe(1)
    clock.advance(1)
    await recovery.runIfDue()
    expect(state.renewals).toBe(2)
    clock.set(clock.now() - LOOK_MS)
    await recovery.runIfDue()
    expect(state.renewals).toBe(3)
  })

  test('ends claims of this process that nobody has, for a while after an answer was lost', async () => {
    const { recovery, clock, asked } = open({ gone: [] })
    await recovery.run()
    expect([recovery.mayLeak(), asked]).toEqual([false, []])
    recovery.expectLeak()
    clock.advance(4 * LEASE_MS - 1)
    expect(recovery.mayLeak()).toBe(true)
    await recovery.run()
    expect(asked).toEqual([{ workerId: OWN, agoMs: 0 }])
    clock.advance(1)
    expect(recovery.mayLeak()).toBe(false)
    await recovery.run()
    expect(asked).toHaveLength(1)
  })
})

describe('a worker that joins', () => {
  /** Whether `join` is over once all that can run has run. */
  async function isOver(join: Promise<void>): Promise<boolean> {
    let over = false
    void join.then(() => {
      over = true
    })
    for (let turn = 0; turn < 30; turn += 1) await Promise.resolve()
    return over
  }

  test('alone claims at once, and beside others once they have seen it', async () => {
    const never = new AbortController().signal
    expect(await isOver(open({ gone: [] }).recovery.join(never))).toBe(true)
    const { recovery, clock } = open({ gone: [], peers: true })
    const join = recovery.join(never)
    expect(await isOver(join)).toBe(false)
    clock.advance(JOIN_WAIT_MS - 1)
    expect(await isOver(join)).toBe(false)
    clock.advance(1)
    expect(await isOver(join)).toBe(true)
  })

  test('without a database tries again each second, until it is stopped', async () => {
    const stopping = new AbortController()
    const { recovery, clock, state } = open({ gone: [] })
    state.faults = 3
    const join = recovery.join(stopping.signal)
    expect([await isOver(join), state.renewals]).toEqual([false, 1])
    clock.advance(LOOK_MS - 1)
    expect([await isOver(join), state.renewals]).toEqual([false, 1])
    clock.advance(1)
    expect([await isOver(join), state.renewals]).toEqual([false, 2])
    stopping.abort()
    expect([await isOver(join), state.renewals]).toEqual([true, 2])
  })
})
