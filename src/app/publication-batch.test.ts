import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/harness/database.ts'
import { countTraffic } from '../../test/harness/round-trips.ts'
import { buildAuditRecords } from '../audit/audit.ts'
import { systemClock } from '../clock.ts'
import { buildEvents } from '../event/event.ts'
import { buildIdMaker } from '../id.ts'
import { openDatabase } from '../postgres/database.ts'
import { systemRandom } from '../random.ts'
import type { Publications } from './publication-batch.store.ts'
import { buildPublicationBatch } from './publication-batch.ts'

const ids = buildIdMaker(systemClock, systemRandom)
const now = new Date('2026-11-21T10:00:00Z')

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await database.pool.query(
    `insert into event (document_id, internal, source, account_scope, created_at, updated_at)
     values (gen_random_uuid(), 'order.create', 'external', 'none', $1, $1)`,
    [now],
  )
})
afterAll(() => database[Symbol.asyncDispose]())

/** One request that publishes one event about `resourceId`. */
function publish(resourceId: string, type = 'order.create'): Publications {
  const draft = { type, accountScope: 'none', account: null, resource: 'order', action: 'create', url: null } as const
  const events = buildEvents({ ids, enableApiEventQueue: true }, [{ ...draft, resourceId }], now)
  const entry = { action: 'event.publish', outcome: 'success', userId: null, sessionId: null, apiKeyId: null } as const
  const rest = { account: null, target: null, address: '127.0.0.1', requestId: resourceId }
  return {
    events,
    pairs: [{ event: type, account: null }],
    auditEntries: buildAuditRecords(ids, [{ ...entry, ...rest }], now),
  }
}

/** Which of these were kept: in the events, in their queue, and in the audit log. */
async function listKept(names: readonly string[]): Promise<{ events: string[]; queued: string[]; audited: string[] }> {
  const { rows } = await database.pool.query(
    `select array(select resource_id from event_occurrence where resource_id = any($1) order by 1) as events,
       array(select e.resource_id from event_queue q join event_occurrence e on e.document_id = q.event_id
         where e.resource_id = any($1) order by 1) as queued,
       array(select request_id from audit_log where request_id = any($1) order by 1) as audited`,
    [names],
  )
  return rows[0]
}

describe('publications of concurrent requests', () => {
  it('are recorded alone at once, and together where they come while others are written', async () => {
    const batch = buildPublicationBatch(database.db)
    const names = Array.from({ length: 20 }, (_, n) => `shared-${String(n).padStart(2, '0')}`)
    const traffic = countTraffic(database.pool)
    const recorded = await Promise.all(names.map((name) => batch.record(publish(name))))
    expect(recorded).toEqual(names.map(() => true))
    // Two go at once, each alone; the other 18 wait and share one.
    expect(traffic.stop().statements).toBe(3)
    expect(await listKept(names)).toEqual({ events: names, queued: names, audited: names })
  })

  it('are refused one by one: a broken rule keeps nothing of its request and everything of the others', async () => {
    const batch = buildPublicationBatch(database.db)
    const names = ['a', 'b', 'c', 'd'].map((name) => `mixed-${name}`)
    const types = ['order.create', 'order.create', 'order.unknown', 'order.create']
    const recorded = await Promise.all(names.map((name, index) => batch.record(publish(name, types[index]))))
    expect(recorded).toEqual([true, true, false, true])
    const kept = names.filter((_, index) => recorded[index])
    expect(await listKept(names)).toEqual({ events: kept, queued: kept, audited: kept })
  })

  it('are tried alone when the database does not take the data of one of them', async () => {
    const batch = buildPublicationBatch(database.db)
    const names = ['a', 'b', 'c', 'd'].map((name) => `refused-${name}`)
    const requests = names.map((name) => publish(name))
    const bad = requests[2] as Publications
    const twice = { ...bad, events: [...bad.events, ...bad.events] }
    const settled = await Promise.allSettled(
      [requests[0], requests[1], twice, requests[3]].map((one) => batch.record(one as Publications)),
    )
    expect(settled.map((one) => one.status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    expect((settled[2] as PromiseRejectedResult).reason).toMatchObject({ code: '23505' })
    const kept = names.filter((_, index) => index !== 2)
    expect(await listKept(names)).toEqual({ events: kept, queued: kept, audited: kept })
  })

  it('all fail at once while the database does not answer, and later ones are recorded again', async () => {
    const nowhere = openDatabase({
      connectionString: 'postgres://nobody@127.0.0.1:1/none',
      size: 2,
      applicationName: 'signalbox test',
      onError: () => {},
    })
    const batch = buildPublicationBatch(nowhere.db)
    const settled = await Promise.allSettled(['a', 'b', 'c', 'd'].map((name) => batch.record(publish(`lost-${name}`))))
    expect(settled.map((one) => one.status)).toEqual(['rejected', 'rejected', 'rejected', 'rejected'])
    await expect(batch.record(publish('lost-e'))).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await nowhere.close()
  })
})
