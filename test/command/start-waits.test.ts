import { Agent, request } from 'node:http'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../harness/database/database.ts'
import { startPrimaryAndStandby } from '../harness/database/standby.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { startDatabaseProxy } from '../harness/fakes/proxy.ts'
import { bundleProgram } from '../harness/process/bundled-program.ts'
import { startHere } from '../harness/process/local-start.ts'
import { startProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment, isReady } from '../harness/process/service-process.ts'
import { BUSY_MS, waitFor } from '../harness/run/wait.ts'

test('a start before its database waits, says so, and starts when the database is there', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  await using proxy = await startDatabaseProxy(database.connectionString)
  proxy.set('refusing')
  await using started = startHere(buildServiceEnvironment(proxy.connectionString))
  await started.waitForOutput(/waiting for the database: see docs\/operations\.md, database/)
  expect(started.logged()).toMatch(/"reason":"The database of DATABASE_URL cannot be reached\./)
  expect(started.logged()).not.toContain('service started')
  proxy.set('open')
  await started.waitForOutput(/service started/)
})

test('a start on a standby waits for a server that takes changes', async () => {
  await using servers = await startPrimaryAndStandby()
  await using proxy = await startDatabaseProxy(servers.standby)
  await using started = startHere(buildServiceEnvironment(proxy.connectionString))
  await started.waitForOutput(/"reason":"The database of DATABASE_URL is read-only or a standby\./)
  proxy.retarget(servers.primary.connectionString)
  await started.waitForOutput(/service started/)
})

test('a stop ends the wait for a database in order', async () => {
  await using started = startHere(buildServiceEnvironment('postgres://nobody@127.0.0.1:1/none'))
  await started.waitForOutput(/waiting for the database/)
  expect(await started.stop()).toBe(0)
})

test('a start that waits while another process migrates says so every few seconds', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const holder = await database.pool.connect()
  await holder.query('select pg_advisory_lock(7320114)')
  await using started = startHere(buildServiceEnvironment(database.connectionString))
  await started.waitForOutput(/waiting for another process that migrates: see docs\/operations\.md, waiting migrations/)
  holder.release(true)
  await started.waitForOutput(/service started/)
})

test('a start whose rows another process holds for longer than a statement waits goes on when they are free', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const holder = await database.pool.connect()
  await holder.query('begin; lock table permission in exclusive mode')
  await using started = startHere(buildServiceEnvironment(database.connectionString))
  try {
    await started.waitForOutput(/preparing the database once more: see docs\/operations\.md, database/)
    expect(started.logged()).toContain('"reason":"canceling statement due to lock timeout"')
  } finally {
    holder.release(true)
  }
  await started.waitForOutput(/service started/)
})

test('three first starts at once on an empty database all start, also in development, where one creates the administrator', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const buildEnvironment = (number: number) => ({
    ...buildServiceEnvironment(database.connectionString),
    ...{ APP_ENV: 'development', BASE_URL: `http://localhost:${3_000 + number}` },
  })
  await using process = startProcess({ args: [await bundleProgram(), 'serve'], env: buildEnvironment(0) })
  await using here = startHere(buildEnvironment(1))
  await using beside = startHere(buildEnvironment(2))
  for (const start of [process, here, beside]) await start.waitForOutput(/service started/)
  const { rows } = await database.pool.query('select count(*)::int as count from "user"')
  expect(rows).toEqual([{ count: 1 }])
})

/** One GET over a connection of `agent`. */
function get(url: string, agent?: Agent): Promise<{ status: number | undefined; connection: string | undefined }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: agent ?? new Agent() }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve({ status: answer.statusCode, connection: answer.headers.connection }))
    })
    sent.on('error', reject)
    sent.end()
  })
}

test('a process that is to stop is not ready first and closes kept connections, still takes requests for SHUTDOWN_DELAY_SECONDS, and then ends with 0', async () => {
  await using fixture = await openDeliveryFixture()
  await using started = startHere({
    ...buildServiceEnvironment(fixture.database.connectionString),
    SHUTDOWN_DELAY_SECONDS: '4',
  })
  const [, port] = await started.waitForOutput(/Server listening at http:\/\/127\.0\.0\.1:(\d+)/)
  const url = `http://127.0.0.1:${port}`
  await waitFor('readiness', () => isReady(url))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  expect(await get(`${url}/livez`, agent)).toEqual({ status: 200, connection: 'keep-alive' })

  const askedAt = performance.now()
  const stopped = started.stop()
  await started.waitForOutput(/Stopping/)
  expect(await get(`${url}/readyz`)).toMatchObject({ status: 503 })
  expect(await get(`${url}/livez`, agent)).toEqual({ status: 200, connection: 'close' })
  // A balancer that has not looked yet: each new connection and request is served until the delay is over.
  let served = 0
  await waitFor('the end of the delay', async () => {
    const answer = await get(`${url}/livez`).catch(() => undefined)
    if (answer) expect(answer.status).toBe(200)
    served += answer ? 1 : 0
    return answer === undefined
  })
  expect(performance.now() - askedAt).toBeGreaterThanOrEqual(4_000)
  expect(served).toBeGreaterThan(0)
  expect(await stopped).toBe(0)
  await expect(get(`${url}/livez`)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  agent.destroy()
})

test('without SHUTDOWN_DELAY_SECONDS a stop does not wait', async () => {
  await using fixture = await openDeliveryFixture()
  await using started = startHere(buildServiceEnvironment(fixture.database.connectionString))
  await started.waitForOutput(/service started/)
  const askedAt = performance.now()
  expect(await started.stop()).toBe(0)
  expect(performance.now() - askedAt).toBeLessThan(BUSY_MS)
})
