import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AreaReport } from '../../src/operations/doctor/finding.ts'
import { buildLogEnvironment, manageStreams, readWholeLog, STREAM } from '../harness/carriage/event-log-service.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { type NatsServers, startNatsServers } from '../harness/nats/nats-servers.ts'
import { runCommand } from '../harness/process/command-line.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const program = await findNatsServer('the commands of the event log are not run')

let servers: NatsServers
let database: TestDatabase
let fixture: DeliveryFixture
let service: LocalService

beforeAll(async () => {
  if (!program) return
  servers = await startNatsServers({ program })
  database = await createTestDatabase({ content: 'prepared', isOwn: true })
  fixture = await openDeliveryFixture(database)
  service = await fixture.startLocal({ env: buildLogEnvironment(servers.url) })
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
  await servers?.[Symbol.asyncDispose]()
})

const run = (args: string[], env: Record<string, string> = buildLogEnvironment(servers.url)) =>
  runCommand(args, { env: { ...buildServiceEnvironment(database.connectionString), ...env } })

const readStatus = async () => {
  const { stdout, code } = await run(['log', 'status'])
  return { code, ...JSON.parse(stdout) }
}

const settle = () =>
  waitFor('an empty outbox', async () => {
    const { rows } = await database.pool.query<{ n: number }>(
      'select (select count(*) from event_outbox)::int + (select count(republish_after) from event_log)::int as n',
    )
    return rows[0]?.n === 0
  })

const listIds = async () => (await readWholeLog(servers.url)).map(({ id }) => id)

const readAudit = async (action: string) =>
  (await database.pool.query('select detail from audit_log where action = $1', [action])).rows

async function askDoctor(env: Record<string, string>): Promise<string[]> {
  const { stdout } = await run(['doctor', '--json'], env)
  const { areas } = JSON.parse(stdout) as { areas: AreaReport[] }
  return areas.find(({ area }) => area === 'event_log')?.findings.map(({ code }) => code) ?? []
}

/** A service whose realtime server has a bus. */
const BUS = {
  ...{ INTEGRATION_REALTIME_APP_ID: 'app', INTEGRATION_REALTIME_KEY: 'key', INTEGRATION_REALTIME_SECRET: 'secret' },
  ...{ INTEGRATION_REALTIME_CLUSTER: 'embedded', REALTIME_BUS_SUBJECT: 'test.realtime' },
}

test('log status and log read show what the log holds, and change nothing', async () => {
  if (!program) return
  const since = new Date(Date.now() - 60_000).toISOString()
  await fixture.change(service)
  await fixture.change(service)
  await settle()
  const status = await readStatus()
  expect(status).toMatchObject({ code: 0, waiting: 0, has_relay: true, loss: null, remedy: null })
  expect(status.log).toMatchObject({ incarnation: status.confirmed.incarnation, sequence: status.confirmed.sequence })
  expect(JSON.stringify(status).match(/"\w*[A-Z]\w*":/g)).toBeNull()
  const typed = ['--account', fixture.account, '--type', 'contract.create']
  const { stdout } = await run(['log', 'read', '--since', since, ...typed, '--limit', '2'])
  const envelopes = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(envelopes.map(({ type, data }) => [type, data.account])).toEqual([
    ['contract.create', fixture.account],
    ['contract.create', fixture.account],
  ])
  const none = await run(['log', 'read', '--since', since, '--account', '0190a5c0-0000-7000-8000-0000000000ff'])
  expect(none).toMatchObject({ stdout: '', code: 0 })
  const elsewhere = { EVENT_LOG_URL: servers.url, EVENT_LOG_STREAM: 'OTHER' }
  expect((await run(['log', 'status'], elsewhere)).code).toBe(1)
  expect(
    await manageStreams(servers.url, async ({ streams }) =>
      (await streams.list().next()).map(({ config }) => config.name),
    ),
  ).toEqual([STREAM])
  for (const wrong of [
    ['--since', 'yesterday'],
    ['--since', since, '--type', 'ev.>'],
    ['--since', since, '--account', '*'],
  ])
    expect((await run(['log', 'read', ...wrong])).code).toBe(1)
})

test('log republish appends events again with their ids, and is audited', async () => {
  if (!program) return
  await settle()
  const before = await listIds()
  const since = new Date(Date.now() - 60_000).toISOString()
  expect((await run(['log', 'republish', '--since', since])).code).toBe(0)
  await waitFor('the events', async () => (await listIds()).length >= 2 * before.length)
  await settle()
  const after = await listIds()
  expect(after.slice(0, before.length)).toEqual(before)
  expect(new Set(after)).toEqual(new Set(before))
  expect(await readAudit('event-log.republish')).toEqual([
    { detail: expect.objectContaining({ command: 'log republish', since, actor: 'command line' }) },
  ])
})

test('a stream that an operator deleted is created anew, alarms, and has every event again', async () => {
  if (!program) return
  await settle()
  const known = await readWholeLog(servers.url)
  await manageStreams(servers.url, ({ streams }) => streams.delete(STREAM))
  const own = await fixture.change(service)
  await waitFor('the loss', async () => /event log lost events/.test(service.logged()))
  await settle()
  const entries = await readWholeLog(servers.url)
  for (const account of [fixture.account, 'none']) {
    const of = (list: typeof known) =>
      new Set(list.filter(({ subject }) => subject.split('.')[1] === account).map(({ id }) => id))
    expect(of(known).difference(of(entries))).toEqual(new Set())
  }
  expect(entries.some(({ body }) => body.includes(own))).toBe(true)
  const health = await service.call('GET', '/api/v3/health')
  const component = health.body.data.components.find((item: { component: string }) => item.component === 'event-log')
  expect(component).toMatchObject({ status: 'operational', details: { loss: 'replaced', waiting: 0 } })
})

test('doctor reads at the servers whether they write each event to disk', async () => {
  if (!program) return
  await settle()
  const log = buildLogEnvironment(servers.url)
  expect(await askDoctor({ ...log, EVENT_LOG_MONITOR_URLS: servers.monitorUrls })).toEqual([])
  expect(await askDoctor(log)).toEqual(['event_log_durability_unknown'])
  expect(await askDoctor({})).toEqual(['event_log_left_on'])
  expect(await askDoctor({ ...log, EVENT_LOG_MONITOR_URLS: servers.monitorUrls, ...BUS })).toEqual([])
  const lines = `authorization { users: [{ user: app, password: p, permissions: { publish: ["$JS.API.>", "ev.>"] } }] }`
  await using narrow = await startNatsServers({ program, lines })
  const narrowed = { EVENT_LOG_URL: narrow.url.replace('nats://', 'nats://app:p@') }
  const monitored = { ...narrowed, EVENT_LOG_MONITOR_URLS: narrow.monitorUrls }
  expect(await askDoctor({ ...monitored, ...BUS })).toEqual(['realtime_bus_closed'])
  await using careless = await startNatsServers({ program, syncInterval: '2m' })
  const late = { EVENT_LOG_URL: careless.url, EVENT_LOG_MONITOR_URLS: careless.monitorUrls }
  expect(await askDoctor(late)).toEqual(['event_log_not_durable'])
  expect(await askDoctor({ ...log, EVENT_LOG_URL: 'nats://127.0.0.1:1' })).toEqual([
    'event_log_unreachable',
    'event_log_durability_unknown',
  ])
  expect(await manageStreams(careless.url, async ({ streams }) => (await streams.list().next()).length)).toBe(0)
})

test('log off ends the recording, is audited, and needs the setting to be gone', async () => {
  if (!program) return
  expect((await run(['log', 'off'])).code).toBe(1)
  await service.stop()
  expect((await run(['log', 'off'], {})).code).toBe(0)
  expect((await run(['log', 'status'], {})).code).toBe(1)
  expect((await run(['log', 'republish', '--since', '2026-01-01T00:00:00Z'], {})).code).toBe(1)
  expect(await askDoctor({})).toEqual([])
  expect(await readAudit('event-log.off')).toHaveLength(1)
  await fixture.recordEvents(2)
  expect((await database.pool.query('select from event_outbox')).rowCount).toBe(0)
})

test('a start whose database user may not create the trigger ends, and says what to do', async () => {
  if (!program) return
  await using own = await createTestDatabase({ content: 'prepared', isOwn: true })
  const url = new URL(own.connectionString)
  const role = `narrow_${url.pathname.slice(1)}`
  await own.pool.query(`create role ${role} login password 'p'`)
  await own.pool.query(
    `grant usage, create on schema public to ${role}; grant all on all tables in schema public to ${role}`,
  )
  await own.pool.query(`grant all on all sequences in schema public to ${role}`)
  await own.pool.query(`revoke trigger on event_occurrence from ${role}`)
  url.username = role
  url.password = 'p'
  try {
    const env = { ...buildServiceEnvironment(url.href), ...buildLogEnvironment(servers.url) }
    const { code, stderr } = await runCommand(['serve'], { env })
    expect(code).toBe(1)
    expect(stderr).toMatch(/may not create the trigger of the event log: see docs\/operations\/event-log\.md/)
  } finally {
    await own.pool.query(`drop owned by ${role}; drop role ${role}`)
  }
})
