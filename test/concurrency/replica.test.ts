import { expect, test } from 'vitest'
import { examineReplica } from '../../src/app/doctor/examine-replica.ts'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { type Failover, nameBoth, startFailover } from '../harness/database/failover.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { callService } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const LIST = '/api/v3/contract/contract'

/** Two processes on the primary that read the standby, and wait for it up to `lagMs`. */
async function openReplicated({
  lagMs,
  nameServers = ({ primary }) => primary.connectionString,
}: {
  lagMs: number
  nameServers?: (servers: Failover) => string
}) {
  const servers = await startFailover('asynchronous')
  const fixture = await openDeliveryFixture(servers.open(nameServers(servers)))
  const env = { DATABASE_READ_URL: servers.standby.connectionString, DATABASE_READ_LAG_MS: String(lagMs) }
  const start = () => fixture.startLocal({ env })
  const services = (await Promise.all([start(), start()])) as [LocalService, LocalService]
  return {
    servers,
    fixture,
    services,
    [Symbol.asyncDispose]: async () => {
      await fixture[Symbol.asyncDispose]()
      await servers[Symbol.asyncDispose]()
    },
  }
}

async function readMetric(service: LocalService, series: string): Promise<number> {
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  const text = await (await fetch(`${service.url}/metrics`, { headers })).text()
  const line = text.split('\n').find((part) => part.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1))
}

const countReads = async (service: LocalService) => ({
  replica: await readMetric(service, 'database_replica_reads_total{server="replica"}'),
  primary: await readMetric(service, 'database_replica_reads_total{server="primary"}'),
})

const readReplicaStatus = async (service: LocalService) =>
  (await (await fetch(`${service.url}/readyz`)).json()) as { status: string; replica: string }

async function listNewest(service: LocalService): Promise<string> {
  const answer = await service.call('GET', LIST)
  expect(answer.status).toBe(200)
  return answer.body.data[0].document_id
}

/** What the doctor finds about the replica for an ordinary user, who is made at the first call. */
async function examineAs({ primary, standby, awaitReplay }: Failover, user: string): Promise<string[]> {
  await primary.ask(`do $$ begin if not exists (select from pg_roles where rolname = '${user}') then
    create role ${user} login password '${user}'; end if; end $$`)
  await awaitReplay()
  const url = new URL(standby.connectionString)
  Object.assign(url, { username: user, password: user })
  const [row] = await primary.ask<{ id: string }>('select system_identifier::text as id from pg_control_system()')
  return (await examineReplica(url.href, { systemId: row!.id })).map(({ code }) => code)
}

test('a reader of its own write gets it, through each process at once, while lists and dashboards read the replica; when it hangs or is lost, no list fails', async () => {
  await using t = await openReplicated({ lagMs: 10_000 })
  const [first, second] = t.services
  for (let round = 0; round < 15; round += 1) {
    // From here on a change is visible before it is flushed.
    if (round === 10) await t.servers.primary.ask('alter system set synchronous_commit = off')
    if (round === 10) await t.servers.primary.ask('select pg_reload_conf()')
    const id = await t.fixture.change(first)
    expect(await listNewest(first)).toBe(id)
    expect(await listNewest(second)).toBe(id)
  }
  const summary = await first.call('GET', '/api/v3/webhook/dashboard/summary')
  expect(summary.status).toBe(200)
  for (const service of t.services) {
    const { replica, primary } = await countReads(service)
    expect(replica + primary).toBeGreaterThanOrEqual(service === first ? 16 : 15)
    // One that does not answer within a second, as on a busy machine, is left for the next second.
    expect(replica).toBeGreaterThan(0)
    await waitFor('the use of the replica', async () => {
      await listNewest(service)
      const { status, replica: use } = await readReplicaStatus(service)
      return (
        status === 'ok' && use === 'used' && (await readMetric(service, 'database_replica_used{status="used"}')) === 1
      )
    })
  }
  // One that is older than a second is closed after its read: the next one may lead to another server.
  await waitFor('a connection to the replica', async () => {
    await listNewest(first)
    const rows = await t.servers.standby.ask(
      "select from pg_stat_activity where application_name = 'signalbox replica'",
    )
    return rows.length > 0
  })

  expect(await examineAs(t.servers, 'plain')).toEqual(['replica_unproven'])
  await t.servers.primary.ask('grant pg_read_all_stats to plain')
  expect(await examineAs(t.servers, 'plain')).toEqual([])

  const listOften = async (service: LocalService) => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => service.call('GET', LIST)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(await readReplicaStatus(service)).toEqual({ status: 'ok', replica: 'unavailable' })
  }
  await t.servers.standby.freeze()
  await listOften(first)
  await waitFor(
    'its metric',
    async () => (await readMetric(first, 'database_replica_used{status="unavailable"}')) === 0,
  )
  // No list waited until a silent connection is closed, which takes 10 s.
  expect(await readMetric(first, 'database_silent_connections_total{pool="replica"}')).toBe(0)
  await t.servers.standby.thaw()
  await t.servers.standby.kill()
  await listOften(second)
})

test('a replica that lags: the primary answers, with what was just written, and an access that ended stays ended', async () => {
  await using t = await openReplicated({ lagMs: 300 })
  const [first, second] = t.services
  await t.fixture.change(first)
  await listNewest(first)
  await listNewest(second)
  const made = await first.call('POST', '/api/v3/identity/api-key', {
    name: 'To be deleted',
    permissions: ['contract:find-all'],
  })
  expect(made.status).toBe(201)
  const token = made.body.data.key
  const listWithKey = (service: LocalService) => callService({ url: service.url, token }, { method: 'GET', path: LIST })
  expect((await listWithKey(second)).status).toBe(200)

  await t.servers.setReplay('paused')
  const id = await t.fixture.change(first)
  expect(await listNewest(second)).toBe(id)
  expect(await listNewest(first)).toBe(id)
  // On a busy machine it may be `unavailable` before: its answer takes a second.
  await waitFor('a replica that is behind', async () => {
    expect(await listNewest(second)).toBe(id)
    const { status, replica } = await readReplicaStatus(second)
    const used = await readMetric(second, 'database_replica_used{status="behind"}')
    return status === 'ok' && replica === 'behind' && used === 0
  })
  await second.waitForLog(/"status":"behind".*the read replica is not used: see docs\/operations\.md, replica/)
  // The replica still has the key.
  expect((await first.call('DELETE', `/api/v3/identity/api-key/${made.body.data.document_id}`)).status).toBe(200)
  await waitFor('the end of the key', async () => (await listWithKey(second)).status === 401)
  expect((await listWithKey(first)).status).toBe(401)

  await t.servers.setReplay('running')
  await waitFor('the use of the replica', async () => {
    await listNewest(second)
    return (await readReplicaStatus(second)).replica === 'used'
  })
  await second.waitForLog(/the read replica is used again/)
})

test('a replica that is promoted: lists read it as the primary that it is, and see what is written there', async () => {
  await using t = await openReplicated({
    lagMs: 300,
    nameServers: ({ primary, standby }) => nameBoth(primary, standby),
  })
  const [first, second] = t.services
  await t.fixture.change(first)
  await listNewest(second)
  await t.servers.awaitReplay()
  await t.servers.primary.kill()
  await t.servers.promote()
  const id = await waitFor('a change that is taken', () => t.fixture.change(first).catch(() => undefined))
  expect(await waitFor('a list', () => listNewest(second).catch(() => undefined))).toBe(id)
  const [now] = await t.servers.standby.ask<{ now: string }>('select clock_timestamp()::text as now')
  await waitFor('the use of the replica', async () => {
    expect(await listNewest(second)).toBe(id)
    const reads = `select from pg_stat_activity where application_name = 'signalbox replica' and query_start > '${now!.now}'`
    const { status, replica } = await readReplicaStatus(second)
    return (await t.servers.standby.ask(reads)).length > 0 && status === 'ok' && replica === 'primary'
  })
})
