import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Behaviour, type Receiver, startReceiver } from '../../../../test/harness/fakes/receiver.ts'
import { buildSourceClient, readPages } from './source-client.ts'

let server: Receiver
let waits: number[] = []
beforeAll(async () => {
  server = await startReceiver()
})
afterAll(() => server?.close())
beforeEach(() => {
  waits = []
  server.requests.length = 0
  server.behave({ kind: 'status', status: 200, body: '{"a":1}' })
})

const get = (path = '/list', query?: Record<string, string>) =>
  buildSourceClient({
    baseUrl: `${server.origin}/base`,
    token: 'the-token-of-the-source',
    sleep: async (ms) => void waits.push(ms),
  }).get(path, query)

test('an answer is parsed, and the request has the token and an encoded query', async () => {
  expect(await get('/list', { iterator: 'a&b=c' })).toEqual({ a: 1 })
  expect(server.requests).toMatchObject([
    {
      method: 'GET',
      path: '/base/list?iterator=a%26b%3Dc',
      headers: { authorization: 'Bearer the-token-of-the-source' },
    },
  ])
})

test('429 and 5xx are tried again, after Retry-After where it says', async () => {
  server.behaveNext(
    { kind: 'status', status: 429, headers: { 'retry-after': '7' } },
    { kind: 'status', status: 500 },
    { kind: 'reset-before-headers' },
  )
  expect(await get()).toEqual({ a: 1 })
  expect(waits).toEqual([7_000, 1_000, 2_000])
})

test.each<[string, Behaviour, number, RegExp]>([
  [
    '500 for ever',
    { kind: 'status', status: 500 },
    6,
    /does not answer GET \/base\/list \(500\)\. Run the command again/,
  ],
  [
    'a long Retry-After',
    { kind: 'status', status: 429, headers: { 'retry-after': '3600' } },
    1,
    /\(429\)\. Run the command again/,
  ],
  [
    '401',
    { kind: 'status', status: 401 },
    1,
    /refused its token \(401 to GET \/base\/list\)\. Give one that may read this/,
  ],
  ['403', { kind: 'status', status: 403 }, 1, /refused its token \(403/],
  ['404', { kind: 'status', status: 404 }, 1, /answered 404 to GET \/base\/list\. Check --from/],
  ['501', { kind: 'status', status: 501 }, 1, /cannot list \/base\/list \(501\)\. Name what to import with --only/],
  ['a redirect', { kind: 'redirect', location: 'https://elsewhere.example/' }, 1, /redirects GET \/base\/list/],
  ['a page of HTML', { kind: 'status', status: 200, body: '<html>' }, 1, /was not answered with JSON/],
  ['an endless answer', { kind: 'endless' }, 1, /is longer than 16 MiB/],
])('%s ends the run with a remedy, and without the token', async (_what, behaviour, tries, says) => {
  server.behave(behaviour)
  const error = await get().then(
    () => new Error('was answered'),
    (reason: Error) => reason,
  )
  expect(error.message).toMatch(says)
  expect(error.message).not.toContain('the-token-of-the-source')
  expect(server.requests).toHaveLength(tries)
})

test('the pages of a list are read to the last one, and a cursor that comes twice ends the run', async () => {
  const read = async (cursors: (string | undefined)[]) => {
    const rows = []
    const load = async (cursor: string | undefined) => ({ rows: [cursor ?? 'first'], next: cursors.shift() })
    for await (const row of readPages(load)) rows.push(row)
    return rows
  }
  expect(await read(['a', 'b', undefined])).toEqual(['first', 'a', 'b'])
  await expect(read(['a', 'b', 'a'])).rejects.toThrow('repeats a page')
})
