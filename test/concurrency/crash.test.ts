import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { countSeen, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

/** The points of an attempt at which a process may die, and whether the receiver has its POST then. */
const POINTS = [
  // The first: a later one would die in the record of the one before.
  { point: 'during-record', isPosted: true },
  { point: 'after-claim', isPosted: false },
  { point: 'after-post', isPosted: true },
  { point: 'before-record', isPosted: true },
]

test('dispatchers that are killed one after the other, at each point of an attempt: each makes the delivery of the one before again, and the last one ends it as success', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const api = await fixture.startLocal({ roles: 'api' })
  const webhook = await fixture.subscribe(api, receiver)
  // Then a success resets the count of failures, in the transaction that has the point during-record.
  await fixture.database.pool.query('update webhook set consecutive_failures = 1 where document_id = $1', [webhook])
  const seen: number[] = []
  for (const [index, { point, isPosted }] of POINTS.entries()) {
    const doomed = await fixture.start({ roles: 'dispatcher', env: { SIGNALBOX_CRASH_POINT: point } })
    if (index === 0) await fixture.change(api)
    expect(await doomed.ended, point).toEqual({ code: null, signal: 'SIGKILL' })
    const attempts = index + 1
    if (isPosted) seen.push(attempts)
    const [held] = await fixture.readLedger()
    // The recorded attempts are those before; of the dead process none is recorded.
    expect(held, point).toMatchObject({
      status: index === 0 ? 'pending' : 'retrying',
      attempts,
      leaseOwner: expect.stringContaining(`:${doomed.pid}:`),
    })
    expect(
      held!.log.map((line) => line.error_class),
      point,
    ).toEqual(Array.from({ length: index }, () => 'interrupted'))
    expect(countSeen(receiver).get(held!.id) ?? [], point).toEqual(seen)
    await fixture.letLeasesRunOut()
  }
  await fixture.startLocal({ roles: 'dispatcher' })
  const rows = await fixture.waitForLedger(1, ['success'])
  expect(rows).toHaveLength(1)
  expect(rows[0]!.attempts).toBe(5)
  expect(rows[0]!.log.map((line) => line.error_class)).toEqual([...POINTS.map(() => 'interrupted'), null])
  expect(countSeen(receiver).get(rows[0]!.id)).toEqual([...seen, 5])
})

test('the API killed between the change and its answer: the change and its event are both there, and the next process delivers', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const setUp = await fixture.startLocal({ roles: 'api' })
  await fixture.subscribe(setUp, receiver)
  await setUp.stop()
  // With the role of the API alone, so that it does not post what it is killed over.
  const doomed = await fixture.start({ roles: 'api', env: { SIGNALBOX_CRASH_POINT: 'after-change' } })

  await expect(fixture.change(doomed, { 'idempotency-key': 'one-change' })).rejects.toThrow('fetch failed')
  expect(await doomed.ended).toEqual({ code: null, signal: 'SIGKILL' })
  const { rows: contracts } = await fixture.database.pool.query('select document_id from contract')
  const { rows: events } = await fixture.database.pool.query(
    'select resource_id from event_occurrence where event = $1',
    ['contract.create'],
  )
  expect(contracts).toHaveLength(1)
  expect(events).toEqual([{ resource_id: contracts[0].document_id }])

  const next = await fixture.startLocal()
  const rows = await fixture.waitForLedger(1, ['success'])
  expect(rows.map((row) => row.attempts)).toEqual([1])
  // Who got no answer asks again with the same key, and learns what was made instead of making a second one.
  expect(await fixture.change(next, { 'idempotency-key': 'one-change' })).toBe(contracts[0].document_id)
  expect(receiver.requests).toHaveLength(1)
})

test('five automatic POSTs at most, whatever dies: after the fifth attempt was lost the row is exhausted and nothing is posted', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  receiver.behave({ kind: 'status', status: 500 })
  const api = await fixture.startLocal({ roles: 'api,dispatcher' })
  await fixture.subscribe(api, receiver)
  await fixture.change(api)
  for (let attempt = 1; attempt <= 4; attempt++) {
    await receiver.waitFor(attempt)
    await fixture.waitForLedger(1, ['retrying'])
    if (attempt === 4) break
    await fixture.letRetriesComeDue()
  }
  await api.stop()
  const doomed = await fixture.start({ roles: 'dispatcher', env: { SIGNALBOX_CRASH_POINT: 'after-post' } })
  await fixture.letRetriesComeDue()
  await doomed.ended
  await fixture.letLeasesRunOut()
  await fixture.startLocal({ roles: 'dispatcher' })
  const rows = await fixture.waitForLedger(1, ['exhausted'])
  expect(rows[0]!.attempts).toBe(5)
  expect(rows[0]!.log.map((line) => line.error_class)).toEqual([
    'http_5xx',
    'http_5xx',
    'http_5xx',
    'http_5xx',
    'interrupted',
  ])
  expect(countSeen(receiver).get(rows[0]!.id)).toEqual([1, 2, 3, 4, 5])
})

test('a process that is killed as soon as it is ready leaves what it compiled to the next start', async () => {
  const cache = await mkdtemp(join(tmpdir(), 'signalbox compiled '))
  try {
    await using fixture = await openDeliveryFixture()
    const doomed = await fixture.start({ root: PROJECT_ROOT, roles: 'api', env: { NODE_COMPILE_CACHE: cache } })
    await doomed.kill()
    const entries = await readdir(cache, { recursive: true })
    expect(entries.length).toBeGreaterThan(500)
  } finally {
    await rm(cache, { recursive: true, force: true })
  }
})
