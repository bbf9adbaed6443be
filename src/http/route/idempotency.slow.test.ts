import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { buildPipelineServer, SAMPLE_SECRET } from '../../../test/harness/app/pipeline-server.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { deleteExpiredIdempotencyKeys } from './idempotency.store.ts'
import { IDEMPOTENCY_KEPT_MS } from './idempotency.ts'

const THING = '/api/v3/sample/thing'

const database = await openForFile(createTestDatabase())

type Sample = Awaited<ReturnType<typeof buildPipelineServer>>

function send(sample: Sample, key: string | undefined, options: { name?: string; as?: string; url?: string } = {}) {
  const { name, as = 'admin', url = THING } = options
  return sample.server.inject({
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${as}`, ...(key !== undefined && { 'idempotency-key': key }) },
    ...(name !== undefined && { payload: { name } }),
  })
}

async function countThings(name: string) {
  return (await database.db.selectFrom('role').select('name').where('name', '=', name).execute()).length
}

async function listKeys(key: string) {
  return database.db.selectFrom('idempotency_key').selectAll().where('key', '=', key).execute()
}

describe('the same key again', () => {
  test('returns the first answer, marked, with null for the secret, and creates no row and no event', async () => {
    const sample = await buildPipelineServer({ db: database.db })
    const first = await send(sample, 'key-1', { name: 'once' })
    const again = await send(sample, 'key-1', { name: 'once' })
    expect(first.json().data.secret).toBe(SAMPLE_SECRET)
    expect(first.headers['idempotency-replayed']).toBeUndefined()
    expect(again.statusCode).toBe(201)
    expect(again.headers).toMatchObject({ 'idempotency-replayed': 'true', location: first.headers.location })
    expect(again.json()).toEqual({
      data: { ...first.json().data, secret: null },
      message: expect.stringContaining('secret'),
    })
    expect(await countThings('once')).toBe(1)
    expect(sample.recorded).toHaveLength(1)
  })

  test('the stored answer does not hold the secret', async () => {
    const { rows } = await sql<{ all: string }>`select idempotency_key::text as all from idempotency_key`.execute(
      database.db,
    )
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.map((row) => row.all).join()).not.toContain('whsec_')
  })

  test('with another body, another query or another row is a 422 and changes nothing', async () => {
    const sample = await buildPipelineServer({ db: database.db })
    const id = (await send(sample, 'key-2', { name: 'two' })).json().data.document_id
    const other = await send(sample, 'key-2', { name: 'two b' })
    expect(other.json()).toMatchObject({ status: 422, code: 'idempotency_key_reused' })
    expect((await send(sample, 'key-2', { name: 'two', url: `${THING}?x=1` })).statusCode).toBe(422)
    expect(await countThings('two b')).toBe(0)
    const three = (await send(sample, undefined, { name: 'three' })).json().data.document_id
    expect((await send(sample, 'key-3', { url: `${THING}/${id}/test` })).statusCode).toBe(202)
    expect((await send(sample, 'key-3', { url: `${THING}/${three}/test` })).json().code).toBe('idempotency_key_reused')
  })

  test('is another key for another caller and on another route', async () => {
    const sample = await buildPipelineServer({ db: database.db })
    const id = (await send(sample, 'key-4', { name: 'four' })).json().data.document_id
    expect((await send(sample, 'key-4', { name: 'four b', as: 'other' })).statusCode).toBe(201)
    const elsewhere = await send(sample, 'key-4', { url: `${THING}/${id}/test` })
    expect(elsewhere.statusCode).toBe(202)
    expect(elsewhere.headers['idempotency-replayed']).toBeUndefined()
  })

  test('is replayed within 24 h and starts anew after that', async () => {
    const clock = buildManualClock()
    const sample = await buildPipelineServer({ db: database.db, clock })
    await send(sample, 'key-5', { name: 'five' })
    clock.advance(IDEMPOTENCY_KEPT_MS - 1)
    expect((await send(sample, 'key-5', { name: 'five' })).headers['idempotency-replayed']).toBe('true')
    clock.advance(1)
    const later = await send(sample, 'key-5', { name: 'five b' })
    expect(later.statusCode).toBe(201)
    expect(later.headers['idempotency-replayed']).toBeUndefined()
    expect((await send(sample, 'key-5', { name: 'five b' })).headers['idempotency-replayed']).toBe('true')
  })
})

describe('a key that is not stored', () => {
  test('a refused request does not store its key, so the corrected request may use it', async () => {
    const sample = await buildPipelineServer({ db: database.db })
    expect((await send(sample, 'key-6', { name: '' })).statusCode).toBe(422)
    expect((await send(sample, 'key-6', { name: 'six' })).statusCode).toBe(201)
  })

  test('a request that ends as a 500 does not store its key', async () => {
    const sample = await buildPipelineServer({ db: database.db })
    expect((await send(sample, 'key-7', { url: `${THING}/break` })).statusCode).toBe(500)
    expect(await listKeys('key-7')).toEqual([])
  })

  test('an answer that is a credential is not stored, with or without a key', async () => {
    const sample = await buildPipelineServer({ db: database.db })
    const options = { method: 'POST', url: `${THING}/sign-in`, payload: { password: 'x' } } as const
    const response = await sample.server.inject({ ...options, headers: { 'idempotency-key': 'key-8' } })
    expect(response.statusCode).toBe(200)
    expect(await listKeys('key-8')).toEqual([])
  })

  test('every change takes a key, and a read ignores it', async () => {
    const sample = await buildPipelineServer({ db: database.db })
    const id = (await send(sample, undefined, { name: 'nine' })).json().data.document_id
    const call = (method: 'PATCH' | 'GET', name?: string) =>
      sample.server.inject({
        method,
        url: `${THING}/${id}`,
        headers: { authorization: 'Bearer admin', 'idempotency-key': 'key-9' },
        ...(name !== undefined && { payload: { name } }),
      })
    expect((await call('PATCH', 'nine a')).json().data.name).toBe('nine a')
    const repeated = await call('PATCH', 'nine a')
    expect(repeated.json().data.name).toBe('nine a')
    expect(repeated.headers['idempotency-replayed']).toBe('true')
    expect((await call('PATCH', 'nine b')).json().code).toBe('idempotency_key_reused')
    expect((await call('GET')).headers['idempotency-replayed']).toBeUndefined()
  })

  test.each(['', ' ', 'a b', 'é', 'x'.repeat(256)])('%j is a 400', async (key) => {
    const sample = await buildPipelineServer({ db: database.db })
    expect((await send(sample, key, { name: 'bad key' })).json().code).toBe('malformed_request')
  })

  test.each(['x', '"quoted"', 'x'.repeat(255)])('%j is taken', async (key) => {
    const sample = await buildPipelineServer({ db: database.db })
    expect((await send(sample, key, { name: `good key ${key.length}` })).statusCode).toBe(201)
  })
})

describe('two requests with one key at once, on two connections', () => {
  async function startTwo(name: string, outcome: (release: () => void, fail: () => void) => void) {
    const inside = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    let entered = 0
    const sample = await buildPipelineServer({
      db: database.db,
      gate: () => {
        entered += 1
        inside.resolve()
        return entered === 1 ? gate.promise : Promise.resolve()
      },
    })
    // `then` starts an injected request; without it the request would wait for its await.
    const first = send(sample, name, { name }).then((response) => response)
    await inside.promise
    const second = send(sample, name, { name }).then((response) => response)
    await waitUntilBlocked()
    outcome(gate.resolve, () => gate.reject(new Error('the first request fails')))
    return { first: await first, second: await second, entered: () => entered }
  }

  /** Resolves when the second request waits for the lock of the first. */
  async function waitUntilBlocked() {
    const giveUpAt = Date.now() + 4000
    for (;;) {
      const { rows } = await sql<{ waiting: number }>`select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(database.db)
      if (rows[0]?.waiting) return
      if (Date.now() > giveUpAt) throw new Error('the second request never waited')
    }
  }

  test('create one row: the second waits and gets the answer of the first', async () => {
    const { first, second, entered } = await startTwo('at-once', (release) => release())
    expect([first.statusCode, second.statusCode]).toEqual([201, 201])
    expect(second.headers['idempotency-replayed']).toBe('true')
    expect(second.json().data.document_id).toBe(first.json().data.document_id)
    expect(entered()).toBe(1)
    expect(await countThings('at-once')).toBe(1)
  })

  test('when the first fails, the second runs as a first request', async () => {
    const { first, second } = await startTwo('at-once-failing', (_, fail) => fail())
    expect([first.statusCode, second.statusCode]).toEqual([500, 201])
    expect(second.headers['idempotency-replayed']).toBeUndefined()
    expect(await countThings('at-once-failing')).toBe(1)
  })

  test('twenty concurrent requests create one row', async () => {
    const sample = await buildPipelineServer({ db: database.db })
    const all = await Promise.all(Array.from({ length: 20 }, () => send(sample, 'twenty', { name: 'twenty' })))
    expect(all.map((response) => response.statusCode)).toEqual(Array(20).fill(201))
    expect(all.filter((response) => response.headers['idempotency-replayed'])).toHaveLength(19)
    expect(new Set(all.map((response) => response.json().data.document_id)).size).toBe(1)
    expect(await countThings('twenty')).toBe(1)
  })

  test('a second request that waits too long is a 409 idempotency_in_progress', async () => {
    const holder = await database.pool.connect()
    await holder.query('begin')
    await holder.query(
      `insert into idempotency_key (caller, route, key, body_hash, created_at)
       values ('user:admin', 'thingCreate', 'held', '', now())`,
    )
    const sample = await buildPipelineServer({ db: database.db })
    const response = await send(sample, 'held', { name: 'held' })
    await holder.query('rollback')
    holder.release()
    expect(response.json()).toMatchObject({ status: 409, code: 'idempotency_in_progress' })
    expect(response.headers['retry-after']).toBe('5')
  })
})

describe('maintenance', () => {
  test('deletes keys older than a day, oldest first, up to its limit', async () => {
    const clock = buildManualClock(Date.UTC(2020, 0, 1))
    const sample = await buildPipelineServer({ db: database.db, clock })
    for (const key of ['old-1', 'old-2', 'old-3']) {
      await send(sample, key, { name: key })
      clock.advance(1)
    }
    const before = new Date(clock.now() - 2)
    expect(await deleteExpiredIdempotencyKeys(database.db, before, 1)).toBe(1)
    expect(await listKeys('old-1')).toEqual([])
    expect(await deleteExpiredIdempotencyKeys(database.db, before, 100)).toBe(1)
    expect(await listKeys('old-3')).toHaveLength(1)
    expect(await deleteExpiredIdempotencyKeys(database.db, before, 100)).toBe(0)
  })
})
