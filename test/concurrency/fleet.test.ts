import { expect, test } from 'vitest'
import { countSeen, type DeliveryGround, openDeliveryGround } from '../harness/delivery/delivery-process.ts'
import type { ServiceProcess } from '../harness/process/service-process.ts'

type Caller = Pick<ServiceProcess, 'call'>

/** Makes `count` changes over the given processes, a few at a time. */
async function makeChanges(ground: DeliveryGround, services: Caller[], count: number): Promise<void> {
  let left = count
  const work = services
    .flatMap((service) => [service, service, service])
    .map(async (service) => {
      while (left-- > 0) await ground.change(service)
    })
  await Promise.all(work)
}

test('two API processes and two dispatchers: of 120 changes each is posted exactly once, and both dispatchers take part', async () => {
  await using ground = await openDeliveryGround()
  const receiver = await ground.receive()
  const services = await Promise.all([
    ground.startLocal({ roles: 'api' }),
    ground.startLocal({ roles: 'api' }),
    // Small caps, so that neither takes all of it in one claim.
    ground.startLocal({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '4' } }),
    ground.start({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '4' } }),
  ])
  await ground.subscribe(services[0]!, receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  await makeChanges(ground, services.slice(0, 2), 120)
  // As many as both have in flight together.
  await receiver.waitFor(8, 60_000)
  answer.resolve()

  const rows = await ground.waitForLedger(120, ['success'], 60_000)
  expect(rows).toHaveLength(120)
  const seen = countSeen(receiver)
  expect(receiver.requests).toHaveLength(120)
  expect(rows.filter((row) => row.attempts !== 1 || String(seen.get(row.id)) !== '1')).toEqual([])
  expect(new Set(rows.flatMap((row) => row.log.map((one) => one.worker))).size).toBe(2)
})

test('a dispatcher stopped with SIGTERM in the middle hands its work over: no lease to wait for, nothing lost', async () => {
  await using ground = await openDeliveryGround()
  const receiver = await ground.receive()
  const api = await ground.startLocal({ roles: 'api' })
  await ground.subscribe(api, receiver)
  const leaving = await ground.start({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '8' } })
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  await makeChanges(ground, [api], 24)
  await receiver.waitFor(8, 60_000)

  const ended = leaving.stop()
  await leaving.waitForOutput(/Stopping/)
  answer.resolve()
  const staying = await ground.startLocal({ roles: 'dispatcher' })
  expect(await ended).toEqual({ code: 0, signal: null })
  const rows = await ground.waitForLedger(24, ['success'])
  expect(rows.map((row) => row.attempts)).toEqual(rows.map(() => 1))
  // What was under way is recorded as what it was, and nothing new was begun.
  const left = rows.filter((row) => row.log[0]!.worker.includes(`:${leaving.pid}:`))
  expect(left).toHaveLength(8)
  expect(receiver.requests).toHaveLength(24)
  expect(staying.logged()).not.toContain('attempt lost')
})

test('processes started, stopped and killed at will during a run of changes: every event ends delivered, attempts are what was seen', async () => {
  await using ground = await openDeliveryGround()
  const receiver = await ground.receive()
  const api = await ground.startLocal({ roles: 'api' })
  await ground.subscribe(api, receiver)
  const changes = makeChanges(ground, [api], 120)
  const first = await ground.start({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '8' } })
  await receiver.waitFor(20, 60_000)
  const second = await ground.start({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '8' } })
  await first.kill()
  await receiver.waitFor(60, 60_000)
  const third = await ground.startLocal({ roles: 'dispatcher', env: { WEBHOOK_CONCURRENCY: '8' } })
  expect(await second.stop()).toEqual({ code: 0, signal: null })
  await changes
  const killed = await ground.readLedger()
  const heldByFirst = killed.filter((row) => row.leaseOwner?.includes(`:${first.pid}:`))
  await ground.letLeasesRunOut()
  const rows = await ground.waitForLedger(120, ['success'], 60_000)
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
