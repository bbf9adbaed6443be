import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { startDatabaseProxy } from '../../../test/harness/fakes/proxy.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { systemClock } from '../../base/clock.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import type { InlineRouting } from '../../delivery/routing/inline-routing.ts'
import { INLINE_ROWS } from '../../delivery/routing/routing.store.ts'
import { openDatabase } from '../../postgres/statement/database.ts'
import { buildEvents } from '../occurrence/event.ts'
import { buildAuditRecords } from './audit.ts'
import type { Publications } from './publication-batch.store.ts'
import { buildPublicationBatch, type PublicationBatchDeps } from './publication-batch.ts'

const ids = buildIdMaker(systemClock, systemRandom)
const now = new Date('2026-11-21T10:00:00Z')

const database = await openForFile(createTestDatabase())
await database.pool.query(
  `insert into event (document_id, internal, source, account_scope, created_at, updated_at)
     values (gen_random_uuid(), 'order.create', 'external', 'none', $1, $1)`,
  [now],
)

/** One request that publishes one event about `resourceId`. */
function publish(resourceId: string, type = 'order.create'): Publications {
  const draft = { type, accountScope: 'none', account: null, resource: 'order', action: 'create', url: null } as const
  const events = buildEvents({ ids, enableApiEventQueue: true }, [{ ...draft, resourceId }], now)
  const entry = { action: 'event.publish', outcome: 'success', userId: null, sessionId: null, apiKeyId: null } as const
  const rest = { account: null, target: null, address: '127.0.0.1', requestId: resourceId }
  return {
    events,
    pairs: [{ event: type, account: null, isOfTenant: false }],
    auditEntries: buildAuditRecords(ids, [{ ...entry, ...rest }], now),
  }
}

/** A batch whose process posts nothing, unless `change` says so. */
function build(change: Partial<PublicationBatchDeps> = {}) {
  const { db } = database
  return buildPublicationBatch({
    logger: pino({ enabled: false }),
    db,
    workerDb: db,
    takeInline: async () => undefined,
    onRecorded: () => {},
    ...change,
  })
}

/**
 * A process with room that routes each event to `rows` rows, claims them all, and what it was told. `rowsOfEvent`: those that
 * its policy writes of one event at most.
 */
function buildInline(rows: number, rowsOfEvent?: number) {
  const told = { accepted: [] as unknown[], failed: 0, queued: [] as boolean[] }
  const part = {
    matched: `select document_id, n from routed, generate_series(1, ${rows}) n`,
    ...(rowsOfEvent !== undefined && { rowsOfEvent }),
    written: {
      name: `probe${rows}`,
      text: `probe_opened as (select document_id as id from probe_matched),
        probe_work as (select json_build_array(document_id, n) as work from probe_matched),
        probe_next as (select null::timestamptz as due_at)`,
      values: [],
    },
  }
  const takeInline = async (): Promise<InlineRouting> => ({
    policies: [{ name: 'probe', part }],
    accept: async (byPolicy) => void told.accepted.push(...byPolicy.flatMap((item) => item.work)),
    fail: () => {
      told.failed += 1
    },
  })
  const batch = build({ takeInline, onRecorded: (isQueued) => void told.queued.push(isQueued) })
  return { told, batch }
}

async function listRouted(names: readonly string[]) {
  const { rows } = await database.pool.query(
    `select resource_id from event_occurrence where resource_id = any($1) and routed_at = created_at order by 1`,
    [names],
  )
  return rows.map((row) => row.resource_id)
}

/** Which of these were kept: in the events, in their queue, and in the audit log. */
async function listKept(names: readonly string[]): Promise<{ events: string[]; queued: string[]; audited: string[] }> {
  const { rows } = await database.pool.query(
    `select array(select resource_id from event_occurrence where resource_id = any($1) order by 1) as events,
       array(select e.resource_id from event_queue q join event_occurrence e on e.document_id = q.event_id
         where e.resource_id = any($1) order by 1) as queued,
       array(select request_id from audit_entry where request_id = any($1) order by 1) as audited`,
    [names],
  )
  return rows[0]
}

describe('publications of concurrent requests', () => {
  test('are recorded alone at once, and together where they come while others are written', async () => {
    const batch = build()
    const names = Array.from({ length: 20 }, (_, n) => `shared-${String(n).padStart(2, '0')}`)
    const traffic = countTraffic(database.pool)
    const record = (some: readonly string[]) => some.map((name) => batch.record(publish(name)))
    const alone = record(names.slice(0, 1))
    await new Promise(setImmediate)
    const second = record(names.slice(1, 2))
    await new Promise(setImmediate)
    // Two statements are under way; the other 18 wait and share one.
    const recorded = await Promise.all([...alone, ...second, ...record(names.slice(2))])
    expect(recorded).toEqual(names.map(() => true))
    expect(traffic.stop().statements).toBe(3)
    expect(await listKept(names)).toEqual({ events: names, queued: names, audited: names })
  })

  test('are refused one by one: a broken rule keeps nothing of its request and everything of the others', async () => {
    const batch = build()
    const names = ['a', 'b', 'c', 'd'].map((name) => `mixed-${name}`)
    const types = ['order.create', 'order.create', 'order.unknown', 'order.create']
    const recorded = await Promise.all(names.map((name, index) => batch.record(publish(name, types[index]))))
    expect(recorded).toEqual([true, true, false, true])
    const kept = names.filter((_, index) => recorded[index])
    expect(await listKept(names)).toEqual({ events: kept, queued: kept, audited: kept })
  })

  test('are tried alone when the database does not take the data of one of them', async () => {
    const batch = build()
    const names = ['a', 'b', 'c', 'd'].map((name) => `refused-${name}`)
    const requests = names.map((name) => publish(name))
    const bad = requests[2] as Publications
    const twice = { ...bad, events: [...bad.events, ...bad.events] }
    const settled = await Promise.allSettled(
      [requests[0], requests[1], twice, requests[3]].map((item) => batch.record(item as Publications)),
    )
    expect(settled.map((result) => result.status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    expect((settled[2] as PromiseRejectedResult).reason).toMatchObject({ code: '23505' })
    const kept = names.filter((_, index) => index !== 2)
    expect(await listKept(names)).toEqual({ events: kept, queued: kept, audited: kept })
  })

  test('all fail at once while the database does not answer, and later ones are recorded again', async () => {
    const nowhere = openDatabase({
      connectionString: 'postgres://nobody@127.0.0.1:1/none',
      size: 2,
      applicationName: 'signalbox test',
      onError: () => {},
    })
    const batch = build({ db: nowhere.db })
    const settled = await Promise.allSettled(['a', 'b', 'c', 'd'].map((name) => batch.record(publish(`lost-${name}`))))
    expect(settled.map((result) => result.status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected'])
    await expect(batch.record(publish('lost-e'))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await nowhere.close()
  })

  test('do not wait behind two statements on connections that are dead', async () => {
    await using proxy = await startDatabaseProxy(database.connectionString)
    const { connectionString } = proxy
    // Nothing finds them dead while the test runs.
    const limits = { silenceMs: 600_000 }
    const opened = openDatabase({
      ...{ connectionString, size: 4, applicationName: 'signalbox test', limits },
      onError: () => {},
    })
    const batch = build({ db: opened.db })
    await Promise.all([opened.pool.query('select 1'), opened.pool.query('select 1')])
    proxy.swallowOpen()
    const stuck: Promise<boolean>[] = []
    for (const [resource, idle] of [['stuck-a', 1] as const, ['stuck-b', 0] as const]) {
      const recorded = batch.record(publish(resource))
      recorded.catch(() => {})
      stuck.push(recorded)
      await waitFor('the statement', () => opened.pool.idleCount === idle)
    }
    expect(await Promise.all([batch.record(publish('stuck-e')), batch.record(publish('stuck-f'))])).toEqual([
      true,
      true,
    ])
    proxy.drop()
    await Promise.allSettled(stuck)
    await opened.close()
  })
})

describe('publications of a process that posts', () => {
  test('are routed by the statement that records them, and wait in no queue', async () => {
    const { told, batch } = buildInline(2)
    const traffic = countTraffic(database.pool)
    expect(await batch.record(publish('inline-a'))).toBe(true)
    expect(traffic.stop().statements).toBe(1)
    expect(await listKept(['inline-a'])).toEqual({ events: ['inline-a'], queued: [], audited: ['inline-a'] })
    expect(await listRouted(['inline-a'])).toEqual(['inline-a'])
    expect(told).toMatchObject({
      accepted: [
        [expect.any(String), 1],
        [expect.any(String), 2],
      ],
      queued: [false],
    })
  })

  test(`are routed so to ${INLINE_ROWS} rows at most; what goes to more waits for the router, whole`, async () => {
    const most = buildInline(INLINE_ROWS)
    await most.batch.record(publish('inline-most'))
    expect(most.told.accepted).toHaveLength(INLINE_ROWS)
    expect(await listRouted(['inline-most'])).toEqual(['inline-most'])
    const beyond = buildInline(INLINE_ROWS + 1)
    await beyond.batch.record(publish('inline-beyond'))
    expect(beyond.told).toEqual({ accepted: [], failed: 0, queued: [true] })
    expect(await listRouted(['inline-beyond'])).toEqual([])
    expect((await listKept(['inline-beyond'])).queued).toEqual(['inline-beyond'])
  })

  test('are routed so to no more rows than a policy writes of one event, where those are fewer', async () => {
    const beyond = buildInline(3, 2)
    await beyond.batch.record(publish('inline-parts'))
    expect(beyond.told).toEqual({ accepted: [], failed: 0, queued: [true] })
    const most = buildInline(2, 2)
    await most.batch.record(publish('inline-part'))
    expect(most.told.accepted).toHaveLength(2)
    const large = buildInline(INLINE_ROWS + 1, INLINE_ROWS * 2)
    await large.batch.record(publish('inline-large'))
    expect(large.told.queued).toEqual([true])
    expect(await listRouted(['inline-parts', 'inline-part', 'inline-large'])).toEqual(['inline-part'])
  })

  test('are left to the router when one request brings more than 16 events', async () => {
    const { told, batch } = buildInline(1)
    const several = (count: number) => {
      const all = Array.from({ length: count }, (_, n) => publish(`inline-${count}-${n}`))
      return { ...(all[0] as Publications), events: all.flatMap((item) => item.events) }
    }
    await batch.record(several(16))
    expect(told.queued).toEqual([false])
    await batch.record(several(17))
    expect(told).toMatchObject({ queued: [false, true], failed: 0 })
    expect(told.accepted).toHaveLength(16)
  })

  test('are refused as elsewhere, and a failed statement is reported for the claims that it may have made', async () => {
    const { told, batch } = buildInline(1)
    expect(await batch.record(publish('inline-broken', 'order.unknown'))).toBe(false)
    expect(await listKept(['inline-broken'])).toEqual({ events: [], queued: [], audited: [] })
    const publication = publish('inline-twice')
    await expect(
      batch.record({ ...publication, events: [...publication.events, ...publication.events] }),
    ).rejects.toMatchObject({
      code: '23505',
    })
    expect(told.failed).toBe(1)
    expect(await listKept(['inline-twice'])).toEqual({ events: [], queued: [], audited: [] })
  })
})

describe('a step that fails around a publication', () => {
  const fail = async (): Promise<never> => {
    throw new Error('the step failed')
  }
  const failNow = () => {
    throw new Error('the step failed')
  }
  const part = {
    matched: 'select document_id from routed',
    written: {
      name: 'failing',
      text: `failing_opened as (select document_id as id from failing_matched),
        failing_work as (select json_build_array(document_id) as work from failing_matched),
        failing_next as (select null::timestamptz as due_at)`,
      values: [],
    },
  }
  const buildRouting = (): InlineRouting => ({ policies: [{ name: 'failing', part }], accept: fail, fail: () => {} })

  test.each<[string, Partial<PublicationBatchDeps>]>([
    ['the right to route', { takeInline: fail }],
    ['the right to route, at once', { takeInline: failNow }],
    ['accepting what was claimed', { takeInline: async () => buildRouting() }],
    ['the notification of the workers', { onRecorded: failNow }],
    ['the taking of events', { onEvents: failNow }],
  ])('does not decide the answer of what is durable: %s', async (what, change) => {
    const batch = build(change)
    const names = ['a', 'b', 'c', 'd'].map((name) => `step-${what}-${name}`)
    const settled = await Promise.allSettled(names.map((name) => batch.record(publish(name))))
    expect(settled).toEqual(names.map(() => ({ status: 'fulfilled', value: true })))
    expect((await listKept(names)).events).toEqual(names)
    // The places of statements were given back.
    expect(await batch.record(publish(`step-${what}-later`))).toBe(true)
  })

  test('leaves no request unanswered: a broken rule and data that is refused are told as before', async () => {
    const batch = build({ onEvents: failNow, onRecorded: failNow, takeInline: fail })
    const twice = publish('step-twice')
    const settled = await Promise.allSettled([
      batch.record(publish('step-broken', 'order.unknown')),
      batch.record({ ...twice, events: [...twice.events, ...twice.events] }),
    ])
    expect(settled).toMatchObject([
      { status: 'fulfilled', value: false },
      { status: 'rejected', reason: { code: '23505' } },
    ])
  })
})
