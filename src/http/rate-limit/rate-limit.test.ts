import { sql } from 'kysely'
import { Type } from 'typebox'
import { beforeEach, describe, expect, test } from 'vitest'
import { buildCaller, buildPipelineServer, type SampleDeps } from '../../../test/harness/app/pipeline-server.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock, type ManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { inTransaction, openDatabase } from '../../postgres/statement/database.ts'
import { Problem } from '../problem/problem.ts'
import { defineRoute } from '../route/route.ts'
import { addHit, deleteOldRateWindows } from './rate-limit.store.ts'
import { buildRateLimiter } from './rate-limit.ts'

const THING = '/api/v3/sample/thing'

let clock: ManualClock

const database = await openForFile(createTestDatabase())
beforeEach(async () => {
  await database.db.deleteFrom('rate_limit').execute()
  clock = buildManualClock(Date.UTC(2026, 8, 11, 12, 0, 17, 300))
})

async function buildLimited(limits: { perMinute?: number; strictPerMinute?: number } = {}) {
  const { perMinute = 3, strictPerMinute = 2 } = limits
  const limiter = buildRateLimiter({ db: database.db, clock, perMinute, strictPerMinute })
  const served = await buildPipelineServer({ db: database.db, clock, pipeline: limiter })
  return { ...served, limiter }
}

type Limited = Awaited<ReturnType<typeof buildPipelineServer>>

function read({ server }: Limited, options: { as?: string; from?: string } = {}) {
  const { as = 'admin', from = '192.0.2.1' } = options
  return server.inject({
    method: 'GET',
    url: `${THING}/me`,
    headers: { authorization: `Bearer ${as}` },
    remoteAddress: from,
  })
}

function signIn({ server }: Limited, from = '192.0.2.1') {
  const request = { method: 'POST', url: `${THING}/sign-in`, payload: { password: 'x' }, remoteAddress: from } as const
  return server.inject(request)
}

async function readStatuses(count: number, send: () => Promise<{ statusCode: number }>) {
  const statuses: number[] = []
  for (let at = 0; at < count; at += 1) statuses.push((await send()).statusCode)
  return statuses
}

describe('rate limits', () => {
  test('the last request of the limit passes, the next is a 429 until its window ends, then all pass again', async () => {
    const limited = await buildLimited()
    expect(await readStatuses(4, () => read(limited))).toEqual([200, 200, 200, 429])
    const refused = await read(limited)
    const waitSeconds = Number(refused.headers['retry-after'])
    expect(refused.json()).toMatchObject({ status: 429, code: 'rate_limited' })
    expect(waitSeconds).toBeGreaterThan(0)
    expect(waitSeconds).toBeLessThanOrEqual(60)
    clock.advance((waitSeconds - 1) * 1000)
    expect((await read(limited)).statusCode).toBe(429)
    clock.advance(1000)
    expect(await readStatuses(4, () => read(limited))).toEqual([200, 200, 200, 429])
  })

  test('headers name each limit, the remaining requests and the time until the reset', async () => {
    const limited = await buildLimited({ perMinute: 100 })
    const { headers } = await read(limited)
    expect(headers['ratelimit-policy']).toBe('"address";q=100;w=60, "caller";q=100;w=60')
    expect(headers.ratelimit).toMatch(/^"address";r=99;t=\d+, "caller";r=99;t=\d+$/)
    expect((await read(limited)).headers.ratelimit).toMatch(/^"address";r=98;t=\d+, "caller";r=98;t=\d+$/)
  })

  test('a strict route has its own smaller limit, which other routes do not spend', async () => {
    const limited = await buildLimited()
    expect((await signIn(limited)).headers['ratelimit-policy']).toBe('"strict";q=2;w=60')
    expect(await readStatuses(2, () => signIn(limited))).toEqual([200, 429])
    expect(await readStatuses(4, () => read(limited))).toEqual([200, 200, 200, 429])
  })

  test('a refused strict request does not reach its operation, and an invalid token counts against the address', async () => {
    const limited = await buildLimited()
    expect(await readStatuses(4, () => read(limited, { as: 'nobody' }))).toEqual([401, 401, 401, 429])
  })

  test('the limit of a caller counts all addresses, the limit of an address all callers', async () => {
    const limited = await buildLimited()
    expect(await readStatuses(3, () => read(limited))).toEqual([200, 200, 200])
    expect((await read(limited, { from: '192.0.2.2' })).json().detail).toContain('"caller"')
    expect((await read(limited, { as: 'other' })).json().detail).toContain('"address"')
    expect((await read(limited, { as: 'other', from: '192.0.2.3' })).statusCode).toBe(200)
  })

  test('two processes share one count of a generous limit from their next exchange on', async () => {
    const [limited, other] = [await buildLimited(), await buildLimited()]
    expect(await readStatuses(2, () => read(limited))).toEqual([200, 200])
    // Before an exchange, a fleet may exceed a limit by the traffic between two exchanges.
    expect(await readStatuses(2, () => read(other))).toEqual([200, 200])
    await limited.limiter.exchange()
    await other.limiter.exchange()
    expect((await read(other)).statusCode).toBe(429)
    // The other process reads the sum at the exchange after its next request.
    expect((await read(limited)).statusCode).toBe(200)
    await limited.limiter.exchange()
    expect((await read(limited)).statusCode).toBe(429)
  })

  test('two processes share one count of a strict limit immediately', async () => {
    const [limited, other] = [await buildLimited(), await buildLimited()]
    expect((await signIn(limited)).statusCode).toBe(200)
    expect(await readStatuses(2, () => signIn(other))).toEqual([200, 429])
    expect((await signIn(limited)).statusCode).toBe(429)
  })

  test('a generous limit costs no statement until it is exchanged, and then one for all buckets', async () => {
    const limited = await buildLimited({ perMinute: 100 })
    for (const from of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) await read(limited, { from })
    const rows = () => database.db.selectFrom('rate_limit').select(['bucket', 'hits']).orderBy('bucket').execute()
    expect(await rows()).toEqual([])
    await limited.limiter.exchange()
    expect(await rows()).toEqual([
      { bucket: 'address:192.0.2.1', hits: 1 },
      { bucket: 'address:192.0.2.2', hits: 1 },
      { bucket: 'address:192.0.2.3', hits: 1 },
      { bucket: 'caller:admin', hits: 3 },
    ])
  })

  test('a count below a hundredth of its limit stays in its process', async () => {
    const limited = await buildLimited({ perMinute: 300 })
    const rows = () => database.db.selectFrom('rate_limit').select(['bucket', 'hits']).orderBy('bucket').execute()
    await readStatuses(2, () => read(limited))
    await limited.limiter.exchange()
    expect(await rows()).toEqual([])
    await read(limited)
    await limited.limiter.exchange()
    expect((await rows()).map(({ hits }) => hits)).toEqual([3, 3])
    // Exchanged counts reach every process, so the next hundredth begins.
    await readStatuses(2, () => read(limited))
    await limited.limiter.exchange()
    expect((await rows()).map(({ hits }) => hits)).toEqual([3, 3])
  })

  test('counts of a failed exchange are part of the next exchange', async () => {
    const limited = await buildLimited({ perMinute: 100 })
    await readStatuses(2, () => read(limited))
    await database.db.schema.alterTable('rate_limit').renameTo('rate_limit_away').execute()
    await expect(limited.limiter.exchange()).rejects.toThrow('rate_limit')
    await database.db.schema.alterTable('rate_limit_away').renameTo('rate_limit').execute()
    await limited.limiter.exchange()
    const { hits } = await database.db.selectFrom('rate_limit').select('hits').executeTakeFirstOrThrow()
    expect(hits).toBe(2)
  })

  test('exactly the limit of concurrent requests passes', async () => {
    const limited = await buildLimited({ perMinute: 10 })
    const statuses = await Promise.all(Array.from({ length: 30 }, async () => (await read(limited)).statusCode))
    expect(statuses.filter((status) => status === 200)).toHaveLength(10)
  })

  test('a flood over the limit is refused without another write to the database', async () => {
    const limited = await buildLimited()
    await readStatuses(20, () => signIn(limited))
    const { hits } = await database.db.selectFrom('rate_limit').select('hits').executeTakeFirstOrThrow()
    expect(hits).toBe(3)
  })

  test('without a database the process counts a generous limit alone, and a strict limit refuses with 503', async () => {
    const away = openDatabase({
      connectionString: 'postgres://nobody@127.0.0.1:1/none',
      size: 1,
      applicationName: 'test',
      onError: () => {},
    })
    const pipeline = buildRateLimiter({ db: away.db, clock, perMinute: 3, strictPerMinute: 2 })
    const limited = await buildPipelineServer({ db: database.db, clock, pipeline })
    expect(await readStatuses(5, () => read(limited))).toEqual([200, 200, 200, 429, 429])
    expect((await signIn(limited)).statusCode).toBe(503)
    await away.close()
  })

  test('an API key has a limit separate from its owner', async () => {
    const limiter = buildRateLimiter({ db: database.db, clock, perMinute: 3, strictPerMinute: 2 })
    const reply = { getHeader: () => undefined, header: () => {} } as never
    const owner = buildCaller('admin')!
    const key = { ...owner, apiKeyId: 'key' }
    for (let at = 0; at < 3; at += 1) limiter.limitCaller(owner, reply)
    limiter.limitCaller(key, reply)
    expect(() => limiter.limitCaller(owner, reply)).toThrow('"caller"')
  })

  test('maintenance deletes only the windows that began before an instant', async () => {
    const limited = await buildLimited()
    await signIn(limited)
    clock.advance(60_000)
    await signIn(limited)
    const before = new Date(clock.now() - 60_000)
    expect(await deleteOldRateWindows(database.db, before, 10)).toBe(1)
    expect(await deleteOldRateWindows(database.db, before, 10)).toBe(0)
    expect(await database.db.selectFrom('rate_limit').selectAll().execute()).toHaveLength(1)
  })

  test('maintenance deletes old windows in batches', async () => {
    for (const name of ['one', 'two', 'three']) await addHit(database.db, name, new Date(clock.now()))
    const forget = () => deleteOldRateWindows(database.db, new Date(clock.now() + 1), 2)
    expect([await forget(), await forget()]).toEqual([2, 1])
  })
})

/** Writes a row of its name, then fails for the name `bad`; its strict limit is counted with the operation. */
const countedRoute = defineRoute(
  {
    resource: 'thing',
    accountScope: 'none',
    method: 'POST',
    path: `${THING}/counted`,
    action: 'refresh',
    access: 'public',
    strictRateLimit: 'with-operation',
    summary: 'Refresh a thing',
    body: Type.Object({ name: Type.String({ minLength: 2 }) }),
    data: Type.Object({}),
  },
  async ({ ids }: SampleDeps, { db, body, now }) => {
    const row = { document_id: ids.next<'thing'>(), name: body.name, created_at: now, updated_at: now }
    await db.insertInto('role').values(row).execute()
    if (body.name === 'bad') throw new Problem('conflict', 'A bad name.')
    return { data: {}, message: 'Refreshed.' }
  },
)

describe('a strict limit that is counted with the operation', () => {
  async function startCounted() {
    const limiter = buildRateLimiter({ db: database.db, clock, perMinute: 100, strictPerMinute: 2 })
    const { server } = await buildPipelineServer({ db: database.db, clock, pipeline: limiter, routes: [countedRoute] })
    const post = (payload: string | object) =>
      server.inject({
        method: 'POST',
        url: `${THING}/counted`,
        headers: { 'content-type': 'application/json' },
        payload,
        remoteAddress: '192.0.2.1',
      })
    return { post }
  }
  const countHits = async () =>
    (await database.db.selectFrom('rate_limit').select('hits').executeTakeFirst())?.hits ?? 0
  const listNames = async () => (await database.db.selectFrom('role').select('name').execute()).map(({ name }) => name)

  test('answers 429 beyond it, and the operation is rolled back, also over two processes', async () => {
    const [counted, other] = [await startCounted(), await startCounted()]
    expect((await counted.post({ name: 'first' })).statusCode).toBe(200)
    expect((await other.post({ name: 'second' })).statusCode).toBe(200)
    const refused = await counted.post({ name: 'third' })
    expect(refused.statusCode).toBe(429)
    expect(refused.headers['retry-after']).toBeDefined()
    expect(await listNames()).not.toContain('third')
    expect(await listNames()).toEqual(expect.arrayContaining(['first', 'second']))
  })

  test('counts once what the operation refuses, what is invalid and what cannot be read', async () => {
    const { post } = await startCounted()
    expect((await post({ name: 'bad' })).statusCode).toBe(409)
    expect(await countHits()).toBe(1)
    expect((await post({ name: '' })).statusCode).toBe(422)
    expect(await countHits()).toBe(2)
    expect((await post('{"name"')).statusCode).toBe(429)
    expect(await countHits()).toBe(3)
  })

  test('writes nothing more once this process knows that it is spent', async () => {
    const { post } = await startCounted()
    for (let at = 0; at < 5; at += 1) await post({ name: 'bad' })
    expect(await countHits()).toBe(3)
    expect((await post({ name: 'bad' })).statusCode).toBe(429)
  })
})

describe('the limits of a feature', () => {
  const hits = (count: number, bucket = 'published:a', perMinute = 5) => ({ bucket, hits: count, perMinute })

  test('take all hits of a request or none, and say when there is room again', async () => {
    const { limiter } = await buildLimited()
    expect(limiter.take([hits(3), hits(2, 'published:b')])).toBeUndefined()
    const refused = limiter.take([hits(1), hits(4, 'published:b')])
    expect(refused).toMatchObject({ charge: { bucket: 'published:b', hits: 4 }, resetSeconds: 43 })
    expect(limiter.take([hits(2)])).toBeUndefined()
    expect(limiter.take([hits(1)])).toBeDefined()
    clock.advance(43_000)
    expect(limiter.take([hits(5)])).toBeUndefined()
  })

  test('hold for a bucket that is in use, whatever number of others come', async () => {
    const { limiter } = await buildLimited()
    expect(limiter.take([hits(5)])).toBeUndefined()
    for (let other = 0; other < 100_000; other += 1) {
      if (other % 50_000 === 0) expect(limiter.take([hits(1)])).toBeDefined()
      limiter.take([hits(1, `published:${other}`)])
    }
    expect(limiter.take([hits(1)])).toBeDefined()
  })

  test('are shared by two processes from their next exchange on', async () => {
    const [limited, other] = [await buildLimited(), await buildLimited()]
    expect(limited.limiter.take([hits(3)])).toBeUndefined()
    await limited.limiter.exchange()
    expect(other.limiter.take([hits(1)])).toBeUndefined()
    await other.limiter.exchange()
    expect(other.limiter.take([hits(2)])).toBeDefined()
    expect(other.limiter.take([hits(1)])).toBeUndefined()
  })
})

test('a strict count leaves the durability of everything else on its connection as it is', async () => {
  await using single = await createTestDatabase({ poolSize: 1 })
  const { db, pool } = single
  const readSetting = async () => (await pool.query('show synchronous_commit')).rows[0].synchronous_commit
  // The server of the tests has it off.
  await pool.query('set synchronous_commit = on')
  await addHit(db, 'one', new Date(0))
  expect(await readSetting()).toBe('on')
  const inside = await inTransaction(db, async (tx) => {
    const counted = addHit(tx, 'one', new Date(0))
    const { rows } = await sql<{ at: string }>`select current_setting('synchronous_commit') as at`.execute(tx)
    return [rows[0]?.at, await counted]
  })
  expect(inside).toEqual(['on', 2])
})
