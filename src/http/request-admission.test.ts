import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { buildPipelineServer, type SampleDeps } from '../../test/harness/app/pipeline-server.ts'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../test/harness/run/wait.ts'
import { Problem } from './problem/problem.ts'
import { buildRateLimiter } from './rate-limit/rate-limit.ts'
import { defineRoute } from './route/route.ts'

const THING = '/api/v3/sample/thing'

const clock = buildManualClock(Date.UTC(2026, 8, 11, 12, 0, 17, 300))

const database = await openForFile(createTestDatabase())
beforeEach(async () => {
  await database.db.deleteFrom('rate_limit').execute()
})

/** A route with `places` places. The request `{"name":"wait"}` is answered when the test ends the wait. */
async function startPlaced(places: number, perMinute = 100) {
  const wait = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  let free = places
  const route = defineRoute(
    {
      resource: 'thing',
      accountScope: 'none',
      method: 'POST',
      path: `${THING}/hash`,
      action: 'hash',
      access: 'public',
      strictRateLimit: true,
      needsAdmission: true,
      summary: 'Hash a thing',
      body: Type.Object({ name: Type.String({ minLength: 2 }) }),
      data: Type.Object({}),
    },
    {
      prepare: async (_deps: SampleDeps, { body }) => {
        if (body.name !== 'wait') return
        arrived.resolve()
        await wait.promise
      },
      handle: async () => ({ data: {}, message: 'Hashed.' }),
    },
  )
  const limiter = buildRateLimiter({ db: database.db, clock, perMinute, strictPerMinute: 100 })
  let begun = 0
  const before = async (instance: FastifyInstance) => {
    instance.addHook('onRequest', async () => {
      begun += 1
    })
  }
  const admit = () => {
    if (free === 0) throw new Problem('overloaded', 'Too much waits.')
    free -= 1
    return () => {
      free += 1
    }
  }
  const pipeline = { ...limiter, admit }
  const { server } = await buildPipelineServer({ db: database.db, clock, pipeline, routes: [route], before })
  const origin = await server.listen({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => server.close())
  const send = (body: string | ReadableStream, signal?: AbortSignal) =>
    fetch(`${origin}${THING}/hash`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      duplex: 'half',
      ...(signal && { signal }),
    } as RequestInit)
  const post = async (name: string) => (await send(JSON.stringify({ name }))).status
  return {
    send,
    post,
    finish: wait.resolve,
    hasArrived: arrived.promise,
    countFree: () => free,
    countBegun: () => begun,
  }
}

describe('a place on a strict route', () => {
  test('that is not free makes 503 without a count in the database, and 429 beyond the generous limit', async () => {
    const { post } = await startPlaced(0, 2)
    expect([await post('first'), await post('second'), await post('third')]).toEqual([503, 503, 429])
    expect(await database.db.selectFrom('rate_limit').selectAll().execute()).toEqual([])
  })

  test('is free again after an answer, an invalid body and a lost connection', async () => {
    const { send, post, finish, hasArrived, countFree } = await startPlaced(1)
    expect([await post('first'), await post(''), await post('second')]).toEqual([200, 422, 200])
    const lost = new AbortController()
    const waiting = send(JSON.stringify({ name: 'wait' }), lost.signal).catch((error: Error) => error.name)
    await hasArrived
    expect(await post('third')).toBe(503)
    lost.abort()
    expect(await waiting).toBe('AbortError')
    await waitFor('the free place', async () => countFree() === 1)
    expect(await post('fourth')).toBe(200)
    finish()
  })

  test('is not taken by a request whose body does not come', async () => {
    const { send, post, countBegun } = await startPlaced(1)
    const lost = new AbortController()
    const body = new ReadableStream({
      pull: (stream) => {
        stream.enqueue(Buffer.from('{"name"'))
        return new Promise(() => {})
      },
    })
    const slow = send(body, lost.signal).catch((error: Error) => error.name)
    await waitFor('the request without its body', async () => countBegun() === 1)
    expect([await post('first'), await post('second')]).toEqual([200, 200])
    lost.abort()
    expect(await slow).toBe('AbortError')
  })
})
