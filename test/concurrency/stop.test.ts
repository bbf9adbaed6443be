import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { countSeen, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { startProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test.concurrent(`${signal} under a POST that hangs and a request that its client never finishes: ended in order with 0, the attempt counted as interrupted and due at once`, async () => {
    await using fixture = await openDeliveryFixture()
    const receiver = await fixture.receive()
    const service = await fixture.start()
    await fixture.subscribe(service, receiver)
    receiver.behaveNext({ kind: 'hang' })
    await fixture.change(service)
    await receiver.waitFor(1)
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write('POST /api/v3/contract/contract HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{')
    await waitFor('the connection', () => socket.bytesWritten > 0)

    // A stop that takes longer than the process gives itself ends with 1.
    expect(await service.stop(signal)).toEqual({ code: 0, signal: null })
    socket.destroy()
    expect(service.stdout()).toContain(`Stopping (${signal}).`)
    expect(service.stdout()).toContain('Stopped.')
    const [row] = await fixture.readLedger()
    expect(row).toMatchObject({ status: 'retrying', attempts: 1, isDue: true, leaseOwner: null })
    expect(row!.log).toMatchObject([{ attempt: 1, status_code: null, error_class: 'interrupted' }])

    // No lease to wait for: the next process has it at once.
    await fixture.startLocal()
    const [delivered] = await fixture.waitForLedger(1, ['success'])
    expect(delivered!.attempts).toBe(2)
    expect(countSeen(receiver).get(delivered!.id)).toEqual([1, 2])
  })
}

test.concurrent('a Ctrl-C during the stop ends the process at once, and others take over what was claimed', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const service = await fixture.start()
  await fixture.subscribe(service, receiver)
  receiver.behaveNext({ kind: 'hang' })
  await fixture.change(service)
  await receiver.waitFor(1)
  service.signal('SIGINT')
  await service.waitForOutput(/Stopping/)
  // Over a second later: within it both are the same one (src/command/stop-signal.test.ts).
  const saidAt = performance.now()
  await waitFor('the second wish', () => performance.now() - saidAt > 1_200)
  expect(await Promise.race([service.ended, 'still stopping'])).toBe('still stopping')
  service.signal('SIGINT')
  expect(await service.ended).toEqual({ code: 130, signal: null })
  await fixture.letLeasesRunOut()
  await fixture.startLocal()
  expect(await fixture.waitForLedger(1, ['success'])).toMatchObject([{ attempts: 2 }])
})

/** Starts a process that waits for what `hold` locks, until it is in that wait. */
async function startThatWaits(database: TestDatabase, hold: string, waits: string) {
  const holder = await database.pool.connect()
  await holder.query(hold)
  const service = startProcess({
    args: [await bundleProgram(), 'serve'],
    env: buildServiceEnvironment(database.connectionString),
  })
  const lock = `select 1 from pg_locks where not granted and ${waits}
    and database = (select oid from pg_database where datname = current_database())`
  await waitFor('the start that waits', async () => (await database.pool.query(lock)).rows.length === 1)
  return { service, release: () => holder.release(true) }
}

test.concurrent('SIGTERM ends a start that waits for the migration of another process in order, with 0', async () => {
  await using database = await createTestDatabase()
  // The lock under which one process migrates and the others wait.
  const lock = 'select pg_advisory_lock(7320114)'
  const { service, release } = await startThatWaits(database, lock, "locktype = 'advisory' and objid = 7320114")
  await using started = service
  started.signal('SIGTERM')
  // A stop that is given up, after 9.5 s, ends with 1.
  expect(await started.ended).toEqual({ code: 0, signal: null })
  expect(started.stdout()).toMatch(/Stopping \(SIGTERM\)\.\s+Stopped\./)
  release()
})

test.concurrent('a start that hangs (its table is locked for ever) is ended by SIGTERM within 10 s', async () => {
  await using database = await createTestDatabase()
  const lock = 'begin; lock table schema_migration in access exclusive mode'
  const { service, release } = await startThatWaits(database, lock, "relation = 'schema_migration'::regclass")
  await using started = service
  const askedAt = performance.now()
  started.signal('SIGTERM')
  expect(await started.ended).toEqual({ code: 1, signal: null })
  // Ten seconds, and what a busy machine takes to end a process; the lock is held for as long as the test runs.
  expect(performance.now() - askedAt).toBeLessThan(30_000)
  expect(started.stderr()).toContain('shutdown timed out')
  release()
})

test.concurrent('a reader of the output that goes away ends nothing', async () => {
  await using fixture = await openDeliveryFixture()
  const command = `"${process.execPath}" "${await bundleProgram()}" serve | head -n 0`
  await using shell = startProcess({
    command: '/bin/sh',
    args: ['-c', `${command}; echo over >&2`],
    env: buildServiceEnvironment(fixture.database.connectionString),
    isGroup: true,
  })
  const [, port] = await shell.waitForOutput(/Server listening at http:\/\/127\.0\.0\.1:(\d+)/)
  await waitFor('an answer', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200)
  expect(shell.stderr()).not.toContain('EPIPE')
  shell.signal('SIGTERM', 'group')
  await shell.ended
})
