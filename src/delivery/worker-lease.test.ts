import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { shadowDatabaseClock, stepDatabaseClock } from '../../test/harness/database/database-time.ts'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../test/harness/run/wait.ts'
import { systemClock } from '../base/clock.ts'
import { type DatabaseClock, followDatabaseClock } from '../base/database-clock.ts'
import { buildListener } from '../postgres/connection/listener.ts'
import { buildWorkerLease, LEASE_MS, LOCK_LOST_MS, measureLost } from './worker-lease.ts'

async function openLeases() {
  const database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  /** A worker; `lock.isHeld` is what its process believes of its lock. */
  const join = (workerId: string, lock = { isHeld: false }) =>
    buildWorkerLease({ db, clock, workerId, hasLock: () => lock.isHeld })
  const listWorkers = async () => {
    const rows = await db.selectFrom('delivery_worker').selectAll().orderBy('worker_id').execute()
    return rows.map((row) => [row.worker_id, row.lease_until.getTime() - clock.now(), row.has_lock])
  }
  /** Holds the lock of a worker as its process does, on the connection that listens. */
  const holdLock = async (workerId: string) => {
    let isListening = false
    const listener = buildListener({
      connectionString: database.connectionString,
      applicationName: 'signalbox test',
      clock: systemClock,
      channels: ['test'],
      lock: workerId,
      onNotification: () => {},
      onListening: () => {
        isListening = true
      },
      onLost: () => {},
      onError: () => {},
    })
    const running = listener.run()
    await waitFor('the lock', () => isListening)
    return async () => {
      await listener.stop()
      await running
      await waitFor('the end of the connection', async () => {
        const { rows } = await database.pool.query(
          `select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
        )
        return rows.length === 0
      })
    }
  }
  const rest = { database, db, clock, join, listWorkers, holdLock }
  return { ...rest, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

describe('the lease of a worker', () => {
  test('runs for 30 s from each renewal, and ends with the worker', async () => {
    await using t = await openLeases()
    const lease = t.join('a')
    expect(await lease.renew()).toEqual([])
    expect(await t.listWorkers()).toEqual([['a', LEASE_MS, false]])
    t.clock.advance(1_000)
    expect(await lease.renew()).toEqual([])
    expect(await t.listWorkers()).toEqual([['a', 30_000, false]])
    await lease.end()
    expect(await t.listWorkers()).toEqual([])
  })

  test('makes a worker that is silent gone at its last millisecond, not one sooner', async () => {
    await using t = await openLeases()
    const [a, b] = [t.join('a'), t.join('b')]
    await b.renew()
    expect(await a.renew()).toEqual([])
    expect(a.hasPeers()).toBe(true)
    t.clock.advance(LEASE_MS - 1)
    expect(await a.renew()).toEqual([])
    t.clock.advance(1)
    expect(await a.renew()).toEqual(['b'])
    expect([a.hasPeers(), a.gone()]).toEqual([false, ['b']])
    // A pause, not an end: it is there again with its next renewal.
    await b.renew()
    expect(await a.renew()).toEqual([])
    expect(a.hasPeers()).toBe(true)
  })

  test('never takes the worker itself for gone, however long it did not renew', async () => {
    await using t = await openLeases()
    const a = t.join('a')
    await a.renew()
    t.clock.advance(86_400_000)
    expect(await a.renew()).toEqual([])
  })

  test('keeps a worker whose lease runs on when the clock steps back', async () => {
    await using t = await openLeases()
    const [a, b] = [t.join('a'), t.join('b')]
    await b.renew()
    t.clock.set(t.clock.now() - 60_000)
    expect(await a.renew()).toEqual([])
    expect(a.hasPeers()).toBe(true)
  })
})

describe('the lease of a worker that follows the clock of the database', () => {
  /** Two workers, each on a machine with a clock of its own, and a database whose clock a test steps. */
  async function openMachines() {
    const database = await createTestDatabase({ isOwn: true })
    await shadowDatabaseClock(database.pool)
    const machines = { a: buildManualClock(Date.now()), b: buildManualClock(Date.now()) }
    const join = (workerId: 'a' | 'b') => {
      const time = followDatabaseClock(machines[workerId], () => performance.now())
      return { time, lease: buildWorkerLease({ db: database.db, clock: time, time, workerId, hasLock: () => false }) }
    }
    const step = (ms: number) => stepDatabaseClock(database.pool, ms)
    return { machines, a: join('a'), b: join('b'), step, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
  }

  test('gets the time of the database with each renewal', async () => {
    await using t = await openMachines()
    // The clock of the machine stands, so that the skew falls by what the renewals take.
    const setAt = performance.now()
    const fallen = () => performance.now() - setAt + 10
    t.machines.a.set(Date.now() + 7_000)
    await t.a.lease.renew()
    expect(Math.abs(t.a.time.skewMs() - 7_000)).toBeLessThan(fallen())
    expect(t.a.lease.isTrusted()).toBe(true)
    await t.step(-3_600_000)
    await t.a.lease.renew()
    expect(Math.abs(t.a.time.skewMs() - 3_607_000)).toBeLessThan(fallen())
    expect(t.a.lease.isTrusted()).toBe(false)
  })

  test.each([40_000, 3_600_000, 45 * 86_400_000])(
    'takes nothing from the living on a machine that is %s ms ahead',
    async (aheadMs) => {
      await using t = await openMachines()
      t.machines.a.set(Date.now() + aheadMs)
      await t.b.lease.renew()
      await t.a.lease.renew()
      expect(await t.a.lease.renew()).toEqual([])
      expect([t.a.lease.isTrusted(), t.b.lease.isTrusted()]).toEqual([false, true])
      // It says that it lives, so that nothing is taken from it either.
      expect(await t.b.lease.renew()).toEqual([])
      expect(t.b.lease.hasPeers()).toBe(true)
    },
  )

  test('takes nothing from the living when the clocks of database and machines step, or all rested together', async () => {
    await using t = await openMachines()
    await t.b.lease.renew()
    expect(await t.a.lease.renew()).toEqual([])
    await t.step(3_600_000)
    for (const machine of Object.values(t.machines)) machine.set(Date.now() + 3_600_000)
    // The renewal that brings the new time, and the next, which judges by it.
    expect(await t.a.lease.renew()).toEqual([])
    expect(t.a.lease.isTrusted()).toBe(true)
    expect(await t.a.lease.renew()).toEqual([])
  })
})

describe('the lock of a worker', () => {
  test('makes a worker gone 2 s after its connection ended, long before its lease ends', async () => {
    await using t = await openLeases()
    const [a, b] = [t.join('a'), t.join('b', { isHeld: true })]
    const dropLock = await t.holdLock('b')
    await b.renew()
    expect(await a.renew()).toEqual([])
    await dropLock()
    expect(await a.renew()).toEqual([])
    expect(a.hasPeers()).toBe(true)
    t.clock.advance(LOCK_LOST_MS - 1)
    expect(await a.renew()).toEqual([])
    t.clock.advance(1)
    expect(await a.renew()).toEqual(['b'])
    expect(a.hasPeers()).toBe(false)
  })

  test('counts the 2 s anew when the worker has connected again meanwhile', async () => {
    await using t = await openLeases()
    const [a, b] = [t.join('a'), t.join('b', { isHeld: true })]
    const dropFirst = await t.holdLock('b')
    await b.renew()
    await dropFirst()
    expect(await a.renew()).toEqual([])
    t.clock.advance(LOCK_LOST_MS - 1)
    const dropSecond = await t.holdLock('b')
    expect(await a.renew()).toEqual([])
    await dropSecond()
    t.clock.advance(1)
    expect(await a.renew()).toEqual([])
    t.clock.advance(LOCK_LOST_MS)
    expect(await a.renew()).toEqual(['b'])
  })

  test('counts the 2 s by a clock that nobody sets', async () => {
    await using t = await openLeases()
    let monotonicMs = 0
    const time = {
      ...{ monotonicMs: () => monotonicMs, stepAgeMs: () => LEASE_MS, verdict: () => 'trusted', observe: () => {} },
    } as unknown as DatabaseClock
    const a = buildWorkerLease({ db: t.db, clock: t.clock, time, workerId: 'a', hasLock: () => false })
    const dropLock = await t.holdLock('b')
    await t.join('b', { isHeld: true }).renew()
    await dropLock()
    await a.renew()
    t.clock.advance(LOCK_LOST_MS)
    expect(await a.renew()).toEqual([])
    monotonicMs += LOCK_LOST_MS
    expect(await a.renew()).toEqual(['b'])
  })

  test('is none where the worker believes in a connection that the server has ended', async () => {
    await using t = await openLeases()
    const b = t.join('b', { isHeld: true })
    await b.renew()
    expect(await t.listWorkers()).toEqual([['b', LEASE_MS, false]])
    const dropLock = await t.holdLock('b')
    await b.renew()
    expect(await t.listWorkers()).toEqual([['b', LEASE_MS, true]])
    await dropLock()
  })

  test('means nothing of a worker that says it has none: its connection broke, and its lease runs', async () => {
    await using t = await openLeases()
    const lock = { isHeld: true }
    const [a, b] = [t.join('a'), t.join('b', lock)]
    const dropLock = await t.holdLock('b')
    await b.renew()
    await a.renew()
    await dropLock()
    await a.renew()
    lock.isHeld = false
    await b.renew()
    t.clock.advance(LEASE_MS - 1)
    expect(await a.renew()).toEqual([])
  })

  test('is of this database: the lock of a worker of the same name in another one is another', async () => {
    await using t = await openLeases()
    await using other = await openLeases()
    const [a, b] = [t.join('a'), t.join('b', { isHeld: true })]
    const dropHere = await t.holdLock('b')
    const dropThere = await other.holdLock('b')
    await b.renew()
    await dropHere()
    await a.renew()
    t.clock.advance(LOCK_LOST_MS)
    expect(await a.renew()).toEqual(['b'])
    await dropThere()
  })
})

describe('workers that come and go', () => {
  test('see each other, at least one of two, when they join at the same moment', async () => {
    await using t = await openLeases()
    for (let round = 0; round < 20; round += 1) {
      const [a, b] = [t.join(`a-${round}`), t.join(`b-${round}`)]
      await Promise.all([a.renew(), b.renew()])
      expect(a.hasPeers() || b.hasPeers()).toBe(true)
      await Promise.all([a.end(), b.end()])
    }
  })

  test('take nobody for expired until a lease has passed since the clock of the database stepped', async () => {
    await using t = await openLeases()
    await t.join('gone').renew()
    t.clock.advance(LEASE_MS)
    const renewAfter = (stepAgeMs: number, verdict = 'trusted') => {
      const time = { monotonicMs: t.clock.now, stepAgeMs: () => stepAgeMs, verdict: () => verdict, observe: () => {} }
      const rest = { db: t.db, clock: t.clock, time: time as unknown as DatabaseClock }
      return buildWorkerLease({ ...rest, workerId: 'a', hasLock: () => false }).renew()
    }
    expect([await renewAfter(LEASE_MS - 1), await renewAfter(LEASE_MS)]).toEqual([[], ['gone']])
    expect(await renewAfter(LEASE_MS, 'distrusted')).toEqual([])
  })

  test('look twice as they join, each time behind their own row, and once with each renewal after', async () => {
    await using t = await openLeases()
    let looks = 0
    const time = {
      ...{ monotonicMs: t.clock.now, stepAgeMs: () => LEASE_MS, verdict: () => 'trusted' },
      observe: () => {
        looks += 1
      },
    } as unknown as DatabaseClock
    const lease = buildWorkerLease({ db: t.db, clock: t.clock, time, workerId: 'a', hasLock: () => false })
    await lease.renew()
    expect(looks).toBe(2)
    await lease.renew()
    expect(looks).toBe(3)
  })
})

test('an attempt that was lost took as long as it may have run: nothing at least, a lease at most', () => {
  const measure = (ms: number) => measureLost(new Date(1_000_000), new Date(1_000_000 + ms))
  expect([measure(-1), measure(0), measure(5), measure(LEASE_MS + 1)]).toEqual([0, 0, 5, LEASE_MS])
})
