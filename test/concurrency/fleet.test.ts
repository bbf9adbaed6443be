import { expect, test } from 'vitest'
import { countSeen, type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { ServiceProcess } from '../harness/process/service-process.ts'

type Caller = Pick<ServiceProcess, 'call'>

/** Makes `count` changes over the given processes, a few at a time. */
async function makeChanges(fixture: DeliveryFixture, services: Caller[], count: number): Promise<void> {
  let left = count
  const work = services
    .flatMap((service) => [service, service, service])
    .map(async (service) => {
      while (left-- > 0) await fixture.change(service)
    })
  await Promise.all(work)
}

test('two API processes and two dispatchers: of 60 changes each is posted exactly once, and both dispatchers take part', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const services = await Promise.all([
    fixture.startLocal({ roles: 'api' }),
    fixture.startLocal({ roles: 'api' }),
    // Small caps, so that neither takes all of it in one claim.
    fixture.startLocal({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '4' } }),
    fixture.startLocal({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '4' } }),
  ])
  await fixture.subscribe(services[0]!, receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  await makeChanges(fixture, services.slice(0, 2), 60)
  // As many as both have in flight together.
  await receiver.waitFor(8)
  answer.resolve()

  const rows = await fixture.waitForLedger(60, ['success'], 60_000)
  expect(rows).toHaveLength(60)
  const seen = countSeen(receiver)
  expect(receiver.requests).toHaveLength(60)
  expect(rows.filter((row) => row.attempts !== 1 || String(seen.get(row.id)) !== '1')).toEqual([])
  expect(new Set(rows.flatMap((row) => row.log.map((line) => line.worker))).size).toBe(2)
})

test('a dispatcher stopped with SIGTERM in the middle hands its work over: no lease to wait for, nothing lost', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const api = await fixture.startLocal({ roles: 'api' })
  await fixture.subscribe(api, receiver)
  const leaving = await fixture.start({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '8' } })
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  await makeChanges(fixture, [api], 24)
  await receiver.waitFor(8)

  const ended = leaving.stop()
  await leaving.waitForOutput(/Stopping/)
  answer.resolve()
  // Before the next one starts: that keeps this process, and the receiver with it, from answering within the grace of a stop.
  expect(await ended).toEqual({ code: 0, signal: null })
  const staying = await fixture.startLocal({ roles: 'dispatcher' })
  const rows = await fixture.waitForLedger(24, ['success'])
  expect(rows.map((row) => row.attempts)).toEqual(rows.map(() => 1))
  // Attempts in flight are recorded with their outcome, and no new one is begun.
  const left = rows.filter((row) => row.log[0]!.worker.includes(`:${leaving.pid}:`))
  expect(left).toHaveLength(8)
  expect(receiver.requests).toHaveLength(24)
  expect(staying.logged()).not.toContain('attempt lost')
})

test('processes started, stopped and killed at will during a run of changes: every event ends delivered, attempts are what was seen', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const api = await fixture.startLocal({ roles: 'api' })
  await fixture.subscribe(api, receiver)
  const changes = makeChanges(fixture, [api], 120)
  const first = await fixture.start({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '8' } })
  await receiver.waitFor(20)
  const second = await fixture.start({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '8' } })
  await first.kill()
  await receiver.waitFor(60)
  const third = await fixture.startLocal({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '8' } })
  expect(await second.stop()).toEqual({ code: 0, signal: null })
  await changes
  const killed = await fixture.readLedger()
  const heldByFirst = killed.filter((row) => row.leaseOwner?.includes(`:${first.pid}:`))
  await fixture.letLeasesRunOut()
  const rows = await fixture.waitForLedger(120, ['success'], 60_000)
  await third.stop()

  expect(rows).toHaveLength(120)
  expect(new Set(rows.map((row) => row.id)).size).toBe(120)
  const seen = countSeen(receiver)
  const unequal = rows.filter((row) => seen.get(row.id)?.length !== row.attempts).map((row) => row.id)
  // A POST that its process did not live to send was counted and not seen; only what the killed one held can be such.
  expect(heldByFirst.map((row) => row.id)).toEqual(expect.arrayContaining(unequal))
  expect(Math.max(...rows.map((row) => row.attempts))).toBeLessThanOrEqual(2)
  expect(rows.map((row) => row.log.length)).toEqual(rows.map((row) => row.attempts))
})
