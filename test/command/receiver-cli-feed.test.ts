import { afterEach, describe, expect, test } from 'vitest'
import { buildIdMaker } from '../../src/base/id.ts'
import { systemRandom } from '../../src/base/random.ts'
import { type ApiClient, buildApiClient } from '../../src/command/receiver/api-client.ts'
import { LATE_COMMIT_MS, openEventFeed } from '../../src/command/receiver/event-feed.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { openCliFixture } from './receiver-cli-fixture.ts'

const fixture = await openForFile(openCliFixture({ env: { SIGNALBOX_ROLES: 'api' } }))
afterEach(async () => {
  await fixture.service.database.pool.query('delete from event_occurrence')
})

const NOON = Date.UTC(2026, 8, 11, 12)
const INSERT = `insert into event_occurrence (document_id, event, resource, action, resource_id, is_purge, created_at)
  values ($1, 'contract.update', 'contract', 'update', 'c-1', false, $2)`

const ids = buildIdMaker({ now: () => NOON }, systemRandom)

/** Records an event of `createdAtMs` and commits it at once. */
async function recordEvent(createdAtMs: number): Promise<string> {
  const id = ids.next()
  await fixture.service.database.pool.query(INSERT, [id, new Date(createdAtMs)])
  return id
}

/** Records an event whose transaction stays open until the test commits it. */
async function recordSlowly(createdAtMs: number): Promise<{ id: string; commit: () => Promise<void> }> {
  const connection = await fixture.service.database.pool.connect()
  const id = ids.next()
  await connection.query('begin')
  await connection.query(INSERT, [id, new Date(createdAtMs)])
  return {
    id,
    commit: async () => {
      await connection.query('commit')
      connection.release()
    },
  }
}

/** A client that counts the rows it receives. */
function buildCountingClient(): { client: ApiClient; rowsRead: () => number } {
  const client = buildApiClient({ url: fixture.url, token: fixture.service.adminToken })
  let rows = 0
  const listAll: ApiClient['listAll'] = async <Row>(path: string, request: Parameters<ApiClient['listAll']>[1]) => {
    const found = await client.listAll<Row>(path, request)
    rows += found.length
    return found
  }
  return { client: { ...client, listAll }, rowsRead: () => rows }
}

async function openFeed() {
  const clock = buildManualClock(0)
  const { client, rowsRead } = buildCountingClient()
  const feed = await openEventFeed({ client, clock }, [])
  const readIds = async () => (await feed.readNew()).map((row) => row.document_id)
  return { clock, readIds, rowsRead }
}

describe('the feed of events', () => {
  test('begins at the present: earlier events are not returned, the next event is returned once', async () => {
    await recordEvent(NOON - 60_000)
    await recordEvent(NOON)
    const { readIds } = await openFeed()
    expect(await readIds()).toEqual([])
    const next = await recordEvent(NOON + 1)
    expect(await readIds()).toEqual([next])
    expect(await readIds()).toEqual([])
  })

  test('on a service without events it returns the first one', async () => {
    const { readIds } = await openFeed()
    expect(await readIds()).toEqual([])
    const first = await recordEvent(NOON)
    expect(await readIds()).toEqual([first])
    expect(await readIds()).toEqual([])
  })

  test('an event that commits after newer ones is returned', async () => {
    await recordEvent(NOON - 60_000)
    const { readIds } = await openFeed()
    const slow = await recordSlowly(NOON)
    const quick = await recordEvent(NOON + 3_000)
    expect(await readIds()).toEqual([quick])
    await slow.commit()
    expect(await readIds()).toEqual([slow.id])
    expect(await readIds()).toEqual([])
  })

  test('an event that was uncommitted when the feed was opened is returned when it commits', async () => {
    const slow = await recordSlowly(NOON - LATE_COMMIT_MS)
    await recordEvent(NOON)
    const { readIds } = await openFeed()
    expect(await readIds()).toEqual([])
    await slow.commit()
    expect(await readIds()).toEqual([slow.id])
  })

  test('late events are read until the newest has been known for exactly the whole window', async () => {
    await recordEvent(NOON)
    const { clock, readIds } = await openFeed()
    const newest = await recordEvent(NOON + 5_000)
    expect(await readIds()).toEqual([newest])
    clock.advance(LATE_COMMIT_MS - 1)
    expect(await readIds()).toEqual([])
    const late = await recordEvent(NOON + 4_000)
    expect(await readIds()).toEqual([late])
    // From this read on, events older than the newest count as complete.
    clock.advance(1)
    expect(await readIds()).toEqual([])
    await recordEvent(NOON + 4_500)
    const same = await recordEvent(NOON + 5_000)
    expect(await readIds()).toEqual([same])
  })

  test('without new events it stops reading the last rows again', async () => {
    await recordEvent(NOON - 60_000)
    const { clock, readIds, rowsRead } = await openFeed()
    for (let at = 1; at <= 450; at++) await recordEvent(NOON + at)
    expect(await readIds()).toHaveLength(450)
    clock.advance(LATE_COMMIT_MS)
    expect(await readIds()).toEqual([])
    const before = rowsRead()
    expect(await readIds()).toEqual([])
    expect(rowsRead() - before).toBe(1)
  })

  test('a failed poll skips no event', async () => {
    const clock = buildManualClock(0)
    const { client } = buildCountingClient()
    let isBroken = false
    const listAll: ApiClient['listAll'] = async (path, request) => {
      if (isBroken) throw new Error('gone')
      return client.listAll(path, request)
    }
    const feed = await openEventFeed({ client: { ...client, listAll }, clock }, [])
    const event = await recordEvent(NOON)
    isBroken = true
    await expect(feed.readNew()).rejects.toThrow('gone')
    clock.advance(10 * LATE_COMMIT_MS)
    isBroken = false
    expect((await feed.readNew()).map((row) => row.document_id)).toEqual([event])
  })
})
