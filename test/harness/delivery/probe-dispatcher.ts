import { buildMutex } from '../../../src/base/semaphore.ts'
import type { Dispatcher } from '../../../src/delivery/dispatcher/dispatcher.ts'
import type { ClaimRequest } from '../../../src/delivery/policy.ts'

/** Reports of a dispatcher under test, and its options. */
export interface DispatcherProbe {
  slots: number
  hasRoom: boolean
  accepted: unknown[]
  notified: number
  leaks: number
}

/** Builds a dispatcher that attempts nothing: it has the room of `probe`, and counts its calls there. */
export function buildProbeDispatcher(probe: DispatcherProbe, policy: Dispatcher['policy']): Dispatcher {
  const measureRoom = (): ClaimRequest => ({
    workerId: 'worker-a',
    now: new Date(0),
    fastSlots: probe.slots,
    slowSlots: 0,
    slowGroups: [],
    lateGroups: [],
    inFlight: new Map(),
    perGroup: 10,
    hasPeers: false,
  })
  return {
    policy,
    mutex: buildMutex(),
    notify: () => {
      probe.notified += 1
    },
    inFlight: () => 0,
    measureRoom,
    hasRoom: () => probe.hasRoom,
    accept: async (rows) => {
      probe.accepted.push(...rows)
    },
    expectLeak: () => {
      probe.leaks += 1
    },
    mayLeak: () => probe.leaks > 0,
    drain: async () => 0,
    stop: async () => {},
    run: async () => {},
  }
}
