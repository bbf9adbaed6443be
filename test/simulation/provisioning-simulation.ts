import pino from 'pino'
import { buildIdMaker, type UserId } from '../../src/base/id.ts'
import { buildKeyring } from '../../src/base/keyring.ts'
import { buildSecretCache } from '../../src/delivery/post/secret-cache.ts'
import { inTransaction } from '../../src/postgres/statement/database.ts'
import type { ClaimedDelivery } from '../../src/provisioning/claim/claimed-delivery.ts'
import { buildProvisioningPolicy } from '../../src/provisioning/delivery/provisioning-policy.ts'
import type { EndedDelivery } from '../../src/provisioning/delivery/settle.ts'
import { startJob } from '../../src/provisioning/job/job.ts'
import type { JobKind } from '../../src/provisioning/job/job-record.ts'
import { buildProvisioningJobWorker } from '../../src/provisioning/job/job-worker.ts'
import { replayDelivery } from '../../src/provisioning/ledger/replay.ts'
import type { TargetId } from '../../src/provisioning/target/target.store.ts'
import { targetSecretContextOf } from '../../src/provisioning/target/target.ts'
import { buildContextTracer } from '../../src/tracing/tracer.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { buildProvisioningLedger } from '../harness/provisioning/provisioning-ledger.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { buildDice, buildSeededRandom } from './seed.ts'

/** One attempt that a worker makes. */
export interface Flight {
  worker: string
  claimed: ClaimedDelivery
  hasLanded: boolean
}

/** A state of a user as a target has it. */
interface HeldUser {
  email: string
  name: string | null
  status: string
}

/** The real queue, jobs and replays on a real database; time, chance and the targets by hand. */
export async function openProvisioningSimulation(seed: number) {
  const dice = buildDice(seed)
  const random = buildSeededRandom(dice)
  const clock = buildManualClock()
  const database = await createTestDatabase()
  const { db } = database
  const ledger = buildProvisioningLedger(db, clock)
  const logger = pino({ level: 'silent' })
  const ids = buildIdMaker(clock, random)
  const keyring = buildKeyring(['a-secret-key-of-at-least-32-bytes-long'], random)
  const noRequest = () => Promise.reject(new Error('the simulation posts nothing'))
  const { queue } = buildProvisioningPolicy({
    ...{ db, clock, ids, random, logger, enableApiEventQueue: true, workerId: 'unused', userAgent: 'test' },
    tracer: buildContextTracer(random),
    secrets: buildSecretCache(keyring, targetSecretContextOf),
    sender: { post: noRequest, idleConnectionCount: () => 0, close: async () => {} },
    scim: { fetch: noRequest, now: () => 0, openToken: () => '', isHeldByOther: noRequest, userAgent: 'test' },
    concurrency: 10,
    perTarget: 10,
  })
  const jobs = buildProvisioningJobWorker({
    db,
    clock,
    logger,
    isEnabled: true,
    isTrusted: () => true,
    onQueued: () => {},
  })
  const targets: TargetId[] = [await ledger.addTarget(), await ledger.addTarget()]
  const users: UserId[] = []
  const flights: Flight[] = []
  const faults: string[] = []
  const landed = new Map<string, number>()
  const held = new Map<string, HeldUser>()
  const now = () => new Date(clock.now())
  let workers = 2

  async function land(flight: Flight, isApplied: boolean): Promise<void> {
    const { id, target, change } = flight.claimed
    flight.hasLanded = true
    const stream = `${target.id} ${change.user.id}`
    const { position } = await ledger.readDelivery(id)
    const before = landed.get(stream) ?? 0
    if (position < before) faults.push(`${stream}: state ${position} landed after ${before}`)
    landed.set(stream, position)
    if (!isApplied) return
    const { email, name, status } = change.user
    if (status === 'deleted') held.delete(stream)
    else held.set(stream, { email, name, status })
  }

  function end({ claimed, worker }: Flight, result: EndedDelivery['result']): EndedDelivery {
    const { id, fence, attempt, trigger, target, change } = claimed
    return {
      ...{ id, fence, attempt, trigger, result, type: change.type },
      ...{ target: target.id, generation: target.generation, user: change.user.id },
      ...{ workerId: worker, traceId: null, startedAt: now(), endedAt: now(), durationMs: 1 },
      ...{ responseExcerpt: null, responseHeaders: null, timings: null },
    }
  }

  async function claim(worker: string, slots: number): Promise<void> {
    const inFlight = new Map<string, number>()
    for (const owned of flights.filter((flight) => flight.worker === worker))
      inFlight.set(owned.claimed.group, (inFlight.get(owned.claimed.group) ?? 0) + 1)
    const room = {
      fastSlots: slots,
      slowSlots: 0,
      slowGroups: [],
      lateGroups: [],
      inFlight,
      perGroup: 10,
      hasPeers: true,
    }
    for (const claimed of await queue.claim({ workerId: worker, now: now(), ...room })) {
      const stream = `${claimed.target.id} ${claimed.change.user.id}`
      const other = flights.find((flight) => `${flight.claimed.target.id} ${flight.claimed.change.user.id}` === stream)
      if (other) faults.push(`${stream}: two attempts at once`)
      flights.push({ worker, claimed, hasLanded: false })
    }
  }

  /** A worker is gone: what it had in flight is taken back, and a late result of it is void. */
  async function lose(worker: string): Promise<void> {
    const gone = flights.filter((flight) => flight.worker === worker)
    for (const flight of gone) flights.splice(flights.indexOf(flight), 1)
    await queue.settle(await queue.reclaim({ workerId: worker, now: now(), limit: 100 }))
    const { recorded } = await queue.settle(gone.map((item) => end(item, { statusCode: 204 })))
    if (recorded.some((result) => result.isRecorded)) faults.push(`${worker}: a late result was recorded`)
  }

  return {
    ...{ dice, clock, ledger, queue, targets, users, flights, faults, held, database },
    land,
    end,
    claim,
    lose,
    listWorkers: () => Array.from({ length: workers }, (_, n) => `worker-${n}`),
    /** Another worker stands in for one that is gone. */
    addWorker: () => {
      workers += 1
    },
    replay: (id: string) =>
      inTransaction(db, (tx) =>
        replayDelivery({ enableApiEventQueue: true }, tx, id, { confirmDuplicate: true, now: now() }),
      ).catch(() => undefined),
    startJob: (target: TargetId, kind: JobKind) =>
      inTransaction(db, (tx) =>
        startJob({ ids, enableApiEventQueue: true }, tx, { target, kind, by: null, now: now() }),
      ).catch(() => undefined),
    drainJobs: () => jobs.drain(),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

export type ProvisioningSimulation = Awaited<ReturnType<typeof openProvisioningSimulation>>
