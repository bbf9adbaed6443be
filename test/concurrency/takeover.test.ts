import { expect, test } from 'vitest'
import { LOCK_LOST_MS } from '../../src/delivery/worker-lease.ts'
import { countSeen, type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { freezeWorker } from '../harness/delivery/frozen-worker.ts'
import { waitFor } from '../harness/run/wait.ts'

/** Much longer than a lost lock keeps the work of a process. */
const TAKEOVER_MS = LOCK_LOST_MS + 3_000

/** Waits until this many workers are known, each with its lock: from then on they watch each other. */
async function waitForWorkers({ database }: DeliveryFixture, count: number): Promise<void> {
  const text = 'select count(*)::int as n from delivery_worker where has_lock'
  await waitFor(`${count} workers`, async () => (await database.pool.query(text)).rows[0].n === count)
}

test.concurrent('kill -9 of one of two processes: the other repeats its POST while the lease of the killed one still runs', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const api = await fixture.startLocal({ roles: 'api' })
  await fixture.subscribe(api, receiver)
  const doomed = await fixture.start({ roles: 'dispatcher' })
  await waitForWorkers(fixture, 1)
  receiver.behaveNext({ kind: 'hang' })
  await fixture.change(api)
  await receiver.waitFor(1)
  await freezeWorker(fixture.database, doomed)
  await fixture.startLocal({ roles: 'dispatcher' })
  await waitForWorkers(fixture, 2)
  expect(receiver.requests).toHaveLength(1)

  const killedAt = performance.now()
  await doomed.kill()
  // How soon a lost lock is acted on is measured by src/delivery/worker-lease.test.ts.
  await receiver.waitFor(2)
  const tookMs = performance.now() - killedAt
  process.stdout.write(`from kill -9 to the repeated POST: ${Math.round(tookMs)} ms\n`)
  const [row] = await fixture.waitForLedger(1, ['success'])
  expect(row!.log.map((line) => line.error_class)).toEqual(['interrupted', null])
  expect(countSeen(receiver).get(row!.id)).toEqual([1, 2])
})

test.concurrent('a process that loses its listening connection alone keeps its work: no second POST', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const api = await fixture.startLocal({ roles: 'api' })
  await fixture.subscribe(api, receiver)
  // Both in the process of the tests: what keeps one from its work keeps the other from taking it.
  await fixture.startLocal({ roles: 'dispatcher' })
  await fixture.startLocal({ roles: 'dispatcher' })
  await waitForWorkers(fixture, 2)
  const answer = Promise.withResolvers<void>()
  receiver.behaveNext({ kind: 'wait', until: answer.promise })
  await fixture.change(api)
  await receiver.waitFor(1)
  const [held] = await fixture.readLedger()
  const worker = held!.leaseOwner

  const { rows: ended } = await fixture.database.pool.query(
    `select pg_terminate_backend(l.pid) as is_ended from pg_locks l
     join delivery_worker w on (l.classid::bigint << 32) | l.objid::bigint = hashtextextended(w.worker_id, 0)
     where l.locktype = 'advisory' and l.objsubid = 1 and w.worker_id = $1`,
    [worker],
  )
  expect(ended).toEqual([{ is_ended: true }])
  // Longer than after a kill: were the work taken over, the second POST would have come.
  const cutAt = performance.now()
  await waitFor('the time of a takeover', () => performance.now() - cutAt > TAKEOVER_MS)
  await waitForWorkers(fixture, 2)
  answer.resolve()
  const [row] = await fixture.waitForLedger(1, ['success'])
  expect(row!.log).toMatchObject([{ attempt: 1, status_code: 200, worker }])
  expect(receiver.requests).toHaveLength(1)
})
