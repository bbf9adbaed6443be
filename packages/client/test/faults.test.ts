import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  ConnectionError,
  createSignalbox,
  ProblemError,
  type SignalboxOptions,
  type TokenProvider,
  UnexpectedAnswerError,
} from '../src/client.ts'

/** How a request of the test is answered. */
type Behaviour = (request: IncomingMessage, response: ServerResponse) => void

interface Seen {
  method: string | undefined
  url: string | undefined
  key: string | string[] | undefined
  authorization: string | undefined
}

/** A server that answers each request by the next behaviour, and the last one from then on. */
async function openServer(...behaviours: readonly Behaviour[]) {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    const { method, url, headers } = request
    seen.push({ method, url, key: headers['idempotency-key'], authorization: headers.authorization })
    request.resume().on('end', () => behaviours[Math.min(seen.length, behaviours.length) - 1]?.(request, response))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const waits: number[] = []
  const build = (options: Partial<SignalboxOptions> = {}) =>
    createSignalbox({
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      token: 'one',
      random: () => 0.5,
      sleep: async (ms) => {
        waits.push(ms)
      },
      ...options,
    })
  return {
    seen,
    waits,
    build,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

const answer =
  (status: number, body: unknown, headers: Record<string, string> = {}): Behaviour =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }

const problem = (status: number, code: string, headers?: Record<string, string>) =>
  answer(status, { type: 'about:blank', title: code, status, code, detail: null, request_id: 'req-1' }, headers)

const account = answer(200, { data: { document_id: 'a' } })
const list = answer(200, { data: [], pagination: { next_cursor: null } })
const cut: Behaviour = (request) => {
  request.socket.destroy()
}
const cutInBody: Behaviour = (request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{"data"')
  response.once('drain', () => {})
  setImmediate(() => request.socket.destroy())
}
const hang: Behaviour = () => {}

const body = { name: 'Example' }

describe('a request that failed', () => {
  test.each([
    ['no connection', cut],
    ['an answer that ends early', cutInBody],
    ['500', problem(500, 'internal_error')],
    ['502 of a proxy', answer(502, 'bad gateway', { 'content-type': 'text/html' })],
    ['503', problem(503, 'service_unavailable')],
    ['504', problem(504, 'service_unavailable')],
  ])('with %s is sent again when it only reads', async (_what, fault) => {
    await using server = await openServer(fault, fault, list)
    await server.build().identity.accountFindAll()
    expect(server.seen).toHaveLength(3)
    expect(server.waits).toEqual([125, 250])
  })

  test('is sent again under its key when it takes one', async () => {
    await using server = await openServer(cut, problem(500, 'internal_error'), account)
    await server.build().identity.accountCreate({ body })
    const keys = server.seen.map(({ key }) => key)
    expect(keys[0]).toMatch(/^[\da-f-]{36}$/)
    expect(new Set(keys).size).toBe(1)
  })

  test('is not sent again when the API could do it twice', async () => {
    await using server = await openServer(cut, account)
    const signIn = server.build().auth.loginLocal({ body: { email: 'a@example.com', password: 'a password' } })
    await expect(signIn).rejects.toBeInstanceOf(ConnectionError)
    expect(server.seen).toMatchObject([{ key: undefined }])
  })

  test.each([[400], [401], [403], [404], [409], [422], [501]])('with %d is not sent again', async (status) => {
    await using server = await openServer(problem(status, 'conflict'))
    await expect(server.build().identity.accountCreate({ body })).rejects.toMatchObject({ status })
    expect(server.seen).toHaveLength(1)
  })

  test('waits as long as the API asks for, and no longer than half a minute', async () => {
    await using server = await openServer(problem(429, 'rate_limited', { 'retry-after': '30' }), list)
    await server.build().identity.accountFindAll()
    expect(server.waits).toEqual([30_125])
    await using strict = await openServer(problem(429, 'rate_limited', { 'retry-after': '31' }), list)
    await expect(strict.build().identity.accountFindAll()).rejects.toMatchObject({ retryAfterMs: 31_000 })
    expect(strict.seen).toHaveLength(1)
  })

  test('waits for the first request of its key', async () => {
    await using server = await openServer(problem(409, 'idempotency_in_progress', { 'retry-after': '5' }), account)
    await server.build().identity.accountCreate({ body })
    expect(server.waits).toEqual([5_125])
  })

  test.each([
    [3, undefined],
    [0, 0],
  ])('is sent again %d times at most', async (most, maxRetries) => {
    await using server = await openServer(problem(503, 'service_unavailable'))
    const client = server.build(maxRetries === undefined ? {} : { maxRetries })
    await expect(client.identity.accountFindAll()).rejects.toBeInstanceOf(ProblemError)
    expect(server.seen).toHaveLength(1 + most)
  })

  test('says that no answer came in time, or that somebody else answered', async () => {
    await using server = await openServer(hang)
    const slow = server.build({ timeoutMs: 20, maxRetries: 0 }).identity.accountFindAll()
    await expect(slow).rejects.toThrow(/no answer from 127\.0\.0\.1/)
    await using other = await openServer(answer(404, '<html>', { 'content-type': 'text/html' }))
    await expect(other.build().identity.accountFindAll()).rejects.toBeInstanceOf(UnexpectedAnswerError)
  })

  test('ends with what its signal was aborted with, under way and between two tries', async () => {
    const reason = new Error('the page was left')
    const [first, second] = [new AbortController(), new AbortController()]
    await using hanging = await openServer((_request, _response) => first.abort(reason))
    await expect(hanging.build().identity.accountFindAll({ signal: first.signal })).rejects.toBe(reason)
    await using failing = await openServer(cut)
    const sleep = async () => {
      second.abort(reason)
      second.signal.throwIfAborted()
    }
    await expect(failing.build({ sleep }).identity.accountFindAll({ signal: second.signal })).rejects.toBe(reason)
    expect(failing.seen).toHaveLength(1)
  })
})

describe('a token', () => {
  const provide = (refresh: TokenProvider['refresh']): TokenProvider => {
    let current = 'one'
    return {
      get: () => current,
      ...(refresh && {
        refresh: async (refused) => {
          current = await refresh(refused)
          return current
        },
      }),
    }
  }
  const refuseOld: Behaviour = (request, response) =>
    request.headers.authorization === 'Bearer one'
      ? problem(401, 'unauthenticated')(request, response)
      : list(request, response)

  test('that is refused is replaced once for all calls, which are sent again', async () => {
    await using server = await openServer(refuseOld)
    const refused: string[] = []
    const token = provide(async (refusedToken) => {
      refused.push(refusedToken)
      return 'two'
    })
    const client = server.build({ token })
    await Promise.all([1, 2, 3].map(() => client.identity.accountFindAll()))
    await client.identity.accountFindAll()
    expect(refused).toEqual(['one'])
    expect(server.seen.filter(({ authorization }) => authorization === 'Bearer two')).toHaveLength(4)
  })

  test('that stays refused ends the call, and so does a refresh that fails', async () => {
    await using server = await openServer(problem(401, 'unauthenticated'))
    const client = server.build({ token: provide(async () => 'two') })
    await expect(client.identity.accountFindAll()).rejects.toMatchObject({ code: 'unauthenticated' })
    expect(server.seen).toHaveLength(2)
    const fault = new Error('signed out')
    const ended = server.build({ token: provide(() => Promise.reject(fault)) })
    await expect(ended.identity.accountFindAll()).rejects.toBe(fault)
    const fixed = server.build({ token: provide(undefined) })
    await expect(fixed.identity.accountFindAll()).rejects.toMatchObject({ status: 401 })
  })

  test('never appears in an error', async () => {
    await using server = await openServer(cut, problem(403, 'missing_permission'))
    const client = server.build({ token: 'sbx_secret', maxRetries: 0 })
    for (const call of [client.identity.accountFindAll(), client.identity.accountFindAll()]) {
      const error = (await call.catch((value: unknown) => value)) as Error
      expect(`${error.stack} ${JSON.stringify(error)} ${error.cause}`).not.toContain('sbx_secret')
    }
  })
})

test('ids, filters and cursors are written into the URL as they are', async () => {
  await using server = await openServer(list)
  const client = server.build({ headers: { 'x-caller': 'test' } })
  await client.identity.accountFindOne({ path: { id: 'a/b?c' } })
  const filters = ['name|like|50 % & more', 'name|eq|ä']
  await client.identity.accountFindAll({ query: { filters, cursor: 'x+y=' } })
  expect(server.seen[0]?.url).toBe('/api/v3/identity/account/a%2Fb%3Fc')
  const query = new URL(server.seen[1]?.url ?? '', 'http://service').searchParams
  expect([query.getAll('filters'), query.get('cursor')]).toEqual([filters, 'x+y='])
})
