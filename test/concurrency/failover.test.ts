import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { classifyDatabase } from '../../src/operations/doctor/database-findings.ts'
import { readDatabaseFacts } from '../../src/operations/doctor/doctor.store.ts'
import { type Failover, nameBoth, type ReplicatedServer, startFailover } from '../harness/database/failover.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { startDatabaseProxy } from '../harness/fakes/proxy.ts'
import type { Receiver } from '../harness/fakes/receiver.ts'
import { listBlocks } from '../harness/process/guide-shell.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { limit, waitFor } from '../harness/run/wait.ts'

/** Limits from the promotion (docs/operations/failover.md#promised). */
const GOES_ON_MS = 15_000
const RETRIED_MS = 20_000

interface Load {
  /** The ids of the contracts whose creation was answered 201. */
  acknowledged: string[]
  stop(): Promise<void>
}

/** Pause after each change: most of the time of a test is that of servers. */
const PAUSE_MS = 200

/** Creates contracts through a service, four at a time, until stopped. */
function startLoad(service: LocalService, fixture: DeliveryFixture): Load {
  const acknowledged: string[] = []
  let isOver = false
  const publish = async () => {
    while (!isOver) {
      const id = await fixture.change(service).catch(() => undefined)
      if (id !== undefined) acknowledged.push(id)
      const changedAt = performance.now()
      await waitFor('the next change', () => performance.now() - changedAt > PAUSE_MS)
    }
  }
  const running = Array.from({ length: 4 }, publish)
  return {
    acknowledged,
    stop: async () => {
      isOver = true
      await Promise.all(running)
    },
  }
}

/** The number of POSTs that a receiver got for each contract. */
function countPosts(receiver: Receiver): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { body } of receiver.requests) {
    const id = JSON.parse(body.toString()).data.id as string
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  return counts
}

/** How long a service needs from now until it answers a change with success. */
async function measureChange(service: LocalService, fixture: DeliveryFixture): Promise<number> {
  const startedAt = performance.now()
  await waitFor('a change that is taken', () => fixture.change(service).catch(() => undefined))
  return performance.now() - startedAt
}

/** Two services with different orders of the hosts, or on one address that moves. */
async function startServices(fixture: DeliveryFixture, urls: readonly [string, string]) {
  const start = (databaseUrl: string) =>
    fixture.startLocal({ databaseUrl, env: { WEBHOOK_CONCURRENCY: '16', LOG_LEVEL: 'info' } })
  return Promise.all(urls.map(start)) as Promise<[LocalService, LocalService]>
}

async function failUnderLoad(servers: Failover, urls: readonly [string, string], move: () => void): Promise<void> {
  const { primary, standby } = servers
  await using fixture = await openDeliveryFixture(servers.open(nameBoth(primary, standby)))
  const receivers = await Promise.all([fixture.receive(), fixture.receive(), fixture.receive()])
  const services = await startServices(fixture, urls)
  for (const receiver of receivers) await fixture.subscribe(services[0], receiver)
  const loads = services.map((service) => startLoad(service, fixture))
  await waitFor('the load', () => loads.every(({ acknowledged }) => acknowledged.length > 20))
  // One receiver answers only later: its POSTs are in flight when the primary is lost.
  const answer = Promise.withResolvers<void>()
  const asked = receivers[0]!.requests.length
  receivers[0]!.behave({ kind: 'wait', until: answer.promise })
  await receivers[0]!.waitFor(asked + 5)

  await primary.kill()
  const acknowledged = loads.flatMap((load) => load.acknowledged)
  await servers.promote()
  move()
  const promotedAt = performance.now()
  const took = await Promise.all(services.map((service) => measureChange(service, fixture)))
  for (const ms of took) expect(ms).toBeLessThan(GOES_ON_MS)
  answer.resolve()
  receivers[0]!.behave({ kind: 'status', status: 200 })
  const wasAccepted = () =>
    receivers.every((receiver) => {
      const posts = countPosts(receiver)
      return acknowledged.every((id) => posts.has(id))
    })
  await waitFor('every acknowledged event', wasAccepted, { limitMs: RETRIED_MS })
  expect(performance.now() - promotedAt).toBeLessThan(RETRIED_MS)

  for (const load of loads) await load.stop()
  const all = loads.flatMap((load) => load.acknowledged)
  expect(all.length).toBeGreaterThan(acknowledged.length)
  const ledger = await fixture.waitForLedger(all.length * receivers.length, ['success'])
  for (const row of ledger) expect(row.attempts).toBeLessThanOrEqual(5)
  for (const receiver of receivers) {
    const posts = countPosts(receiver)
    expect(all.filter((id) => !posts.has(id))).toEqual([])
    expect(Math.max(...posts.values())).toBeLessThanOrEqual(5)
  }
}

test('synchronous standby, several hosts: nothing acknowledged is lost, each process goes on within 2 s, and claims in flight are made again within 5 s', async () => {
  await using servers = await startFailover('synchronous')
  const { primary, standby } = servers
  await failUnderLoad(servers, [nameBoth(primary, standby), nameBoth(standby, primary)], () => {})
})

test('synchronous standby, an address that moves: the same', async () => {
  await using servers = await startFailover('synchronous')
  await using proxy = await startDatabaseProxy(servers.primary.connectionString)
  const move = () => proxy.retarget(servers.standby.connectionString)
  await failUnderLoad(servers, [proxy.connectionString, proxy.connectionString], move)
})

/** The connections of the service to a server, beside those that ask which one is the primary. */
const CONNECTIONS = `select application_name from pg_stat_activity
  where application_name like 'signalbox%' and application_name not in ('signalbox primary', 'signalbox test')`

test('a primary that hangs and runs on after the promotion: its connections are given up within 2 s, and it is not used again', async () => {
  await using servers = await startFailover('asynchronous')
  const { primary, standby } = servers
  const urls = [nameBoth(primary, standby), nameBoth(standby, primary)] as const
  await using fixture = await openDeliveryFixture(servers.open(urls[0]))
  const services = await startServices(fixture, urls)
  for (const service of services) await fixture.change(service)
  await servers.awaitReplay()

  await primary.freeze()
  await servers.promote()
  const took = await Promise.all(services.map((service) => measureChange(service, fixture)))
  for (const ms of took) expect(ms).toBeLessThan(GOES_ON_MS)
  await waitFor('the listening connections of both', async () => {
    const rows = await standby.ask<{ application_name: string }>(CONNECTIONS)
    return rows.filter((row) => row.application_name === 'signalbox listen').length === 2
  })

  await primary.thaw()
  const [{ count: before }] = (await primary.ask<{ count: number }>('select count(*)::int as count from contract')) as [
    { count: number },
  ]
  await waitFor('the end of the old connections', async () => (await primary.ask(CONNECTIONS)).length === 0)
  for (const service of services) for (let n = 0; n < 10; n += 1) await fixture.change(service)
  expect(await primary.ask('select count(*)::int as count from contract')).toEqual([{ count: before }])
  expect(await primary.ask(CONNECTIONS)).toEqual([])
  const rows = await standby.ask<{ count: number }>('select count(*)::int as count from contract')
  expect(rows[0]!.count).toBeGreaterThanOrEqual(24)
})

test('asynchronous standby: what it did not receive is lost, attempts go back, and a claim whose result was lost is made again within 5 s', async () => {
  await using servers = await startFailover('asynchronous')
  const { primary, standby } = servers
  const urls = [nameBoth(primary, standby), nameBoth(standby, primary)] as const
  await using fixture = await openDeliveryFixture(servers.open(urls[0]))
  const receiver = await fixture.receive()
  const services = await startServices(fixture, urls)
  await fixture.subscribe(services[0], receiver)
  const answer = Promise.withResolvers<void>()
  receiver.behave({ kind: 'wait', until: answer.promise })
  const kept = await fixture.change(services[0])
  await receiver.waitFor(1)
  await servers.awaitReplay()

  await servers.stopStream()
  receiver.behave({ kind: 'status', status: 200 })
  const lost = await fixture.change(services[1])
  answer.resolve()
  await fixture.waitForLedger(2, ['success'])
  await primary.kill()
  await servers.promote()
  const promotedAt = performance.now()
  const took = await Promise.all(services.map((service) => measureChange(service, fixture)))
  for (const ms of took) expect(ms).toBeLessThan(GOES_ON_MS)

  // The standby has its claim, and not its result.
  await waitFor('the second POST', () => countPosts(receiver).get(kept) === 2)
  expect(performance.now() - promotedAt).toBeLessThan(RETRIED_MS)
  expect((await services[0].call('GET', `/api/v3/contract/contract/${lost}`)).status).toBe(404)
  const ledger = await fixture.waitForLedger(3, ['success'])
  expect(ledger[0]!.log).toMatchObject([{ error_class: 'interrupted' }, { attempt: 2, status_code: 200 }])
  expect(ledger).toHaveLength(3)
})

/** What the doctor finds about waiting for standbys, for a user who may see their states, and for one who may not. */
async function examineWaiting(servers: Failover, server: ReplicatedServer, user?: string): Promise<string[]> {
  const url = new URL(server.connectionString)
  if (user !== undefined) Object.assign(url, { username: user, password: user })
  const facts = await readDatabaseFacts(servers.open(url.href).db)
  const codes = classifyDatabase(facts, { poolSize: 1, readPoolSize: 1, workerPoolSize: 1 }).map(({ code }) => code)
  return codes.filter((code) => code === 'database_commits_wait' || code === 'database_standby_asynchronous')
}

test('a promoted standby with the setting of its primary commits after the statements of the page, and the doctor names one that waits for itself', async () => {
  await using servers = await startFailover('synchronous')
  const { primary, standby } = servers
  expect(await examineWaiting(servers, primary)).toEqual([])
  await primary.ask("create role plain login password 'plain'")
  expect(await examineWaiting(servers, primary, 'plain')).toEqual([])
  await servers.awaitReplay()
  // As a copy that is made after `alter system` on the primary.
  await standby.ask("alter system set synchronous_standby_names = 'standby'")
  await standby.ask('select pg_reload_conf()')
  await primary.kill()

  const page = await readFile(join(PROJECT_ROOT, 'docs/operations/failover.md'), 'utf8')
  const [, promotion = ''] = /^## Promotion$([\s\S]*?)^## /m.exec(page) ?? []
  const [block, ...others] = listBlocks(promotion).filter(({ language }) => language === 'sql')
  expect(others).toEqual([])
  const statements = block!.text.split(';\n').filter((text) => text.trim() !== '')
  expect(statements.at(-1)).toBe('select pg_promote()')
  await servers.promote()
  for (const user of [undefined, 'plain'])
    expect(await examineWaiting(servers, standby, user)).toEqual(['database_commits_wait'])
  const waiting = standby.ask('create role waits').then(() => 'ended')
  await waitFor('a commit that waits', async () => {
    const rows = await standby.ask("select from pg_stat_activity where wait_event = 'SyncRep'")
    return rows.length === 1
  })

  for (const statement of statements.slice(0, -1)) await standby.ask(statement)
  expect(await limit(waiting, 60_000, 'the commit')).toBe('ended')
  expect(await examineWaiting(servers, standby)).toEqual([])
})
