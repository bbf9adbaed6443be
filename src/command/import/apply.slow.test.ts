import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Behaviour, type Receiver, startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { buildApiClient } from '../receiver/api-client.ts'
import { createAccount, nameAccount, RowRefusal } from './apply.ts'
import { keyOf } from './history.ts'

let server: Receiver
let waits: number[] = []
beforeAll(async () => {
  server = await startReceiver()
})
afterAll(() => server?.close())
beforeEach(() => {
  waits = []
  server.requests.length = 0
})

const TENANT = { id: 'app_1', name: 'Acme' }
const MADE = '{"data":{"document_id":"the-account"},"message":"Created."}'

const answer = (status: number, body: string, headers: Record<string, string> = {}): Behaviour => ({
  kind: 'status',
  status,
  body,
  headers,
})
const problem = (status: number, code: string) => answer(status, JSON.stringify({ code, detail: 'Why it is refused.' }))

const create = () =>
  createAccount(
    {
      client: buildApiClient({ url: server.origin, token: 'token' }),
      clock: { now: () => 0, sleep: async (ms) => void waits.push(ms) },
      history: { findTarget: () => undefined, hasChanged: () => false },
      source: 'svix',
    },
    TENANT,
  )

test('a busy service, a lost connection and a run beside this one are waited for, under one key', async () => {
  server.behaveNext(
    answer(429, '{"code":"rate_limited"}', { 'retry-after': '3' }),
    { kind: 'reset-before-headers' },
    problem(409, 'idempotency_in_progress'),
    answer(201, MADE, { 'idempotency-replayed': 'true' }),
  )
  expect(await create()).toEqual({ id: 'the-account', isOfEarlierRun: false })
  expect(waits).toEqual([3_000, 2_000, 3_000])
  const keys = server.requests.map(({ headers }) => [headers['idempotency-key'], headers['x-request-id']])
  const key = keyOf('svix', 'account', ['app_1'])
  expect(keys).toEqual(Array.from({ length: 4 }, () => [key, key]))
})

test('an account that the first try finds is of an earlier run', async () => {
  server.behaveNext(answer(201, MADE, { 'idempotency-replayed': 'true' }), answer(201, MADE))
  expect([await create(), await create()].map(({ isOfEarlierRun }) => isOfEarlierRun)).toEqual([true, false])
})

test('a refusal of the row is told apart from one of the caller, which ends the run', async () => {
  for (const code of ['validation_failed', 'limit_reached', 'idempotency_key_reused']) {
    server.behaveNext(problem(422, code))
    await expect(create()).rejects.toBeInstanceOf(RowRefusal)
  }
  server.behaveNext(problem(403, 'permission_denied'))
  await expect(create()).rejects.toThrow('The token lacks the permission: Why it is refused.')
  expect(waits).toEqual([])
})

test('a service that stays busy ends the run after six tries', async () => {
  server.behave(problem(503, 'unavailable'))
  await expect(create()).rejects.toThrow(/answered 503/)
  expect(server.requests).toHaveLength(6)
})

test('keys are apart for every source, step and row, and stand in a header', () => {
  const ids = [['a', 'b'], ['ab', ''], ['a'], ['\ud800'], ['\u0000'], ['a","b']]
  const keys = ids.flatMap((id) => [
    keyOf('svix', 'webhook', id),
    keyOf('svix', 'off', id),
    keyOf('convoy', 'webhook', id),
  ])
  expect(new Set(keys).size).toBe(keys.length)
  for (const key of keys) expect(key).toMatch(/^[a-z0-9-]{1,128}$/)
})

test('the name of an account has the id of the source and at most 200 characters', () => {
  expect(nameAccount('svix', TENANT)).toBe('Acme (svix app_1)')
  expect(nameAccount('svix', { id: 'a', name: undefined })).toBe('Imported (svix a)')
  for (const length of [180, 190, 5000])
    expect(nameAccount('outpost', { id: 'i'.repeat(255), name: 'n'.repeat(length) }).length).toBeLessThanOrEqual(200)
})
