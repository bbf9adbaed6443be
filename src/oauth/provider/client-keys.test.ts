import type { KoaContextWithOIDC } from 'oidc-provider'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import { keepClientKeys, refuseLongAssertion } from './client-keys.ts'

const KEYS = 'https://app.example.com/keys'

/** An address of keys that answers `answers` one after the other, the last one for ever. */
function open(...answers: (() => Response | Promise<Response>)[]) {
  const clock = buildManualClock()
  const asked: string[] = []
  const fetch = (async (url, { method }) => {
    asked.push(`${method} ${url}`)
    return (answers.length > 1 ? answers.shift()! : answers[0]!)()
  }) as GuardedFetch
  const kept = keepClientKeys(fetch, () => clock.now())
  const read = async (method: 'GET' | 'POST' = 'GET') => {
    const answer = await kept(KEYS, { method, headers: {} })
    return [answer.status, await answer.text()]
  }
  return { clock, asked, read }
}

test('keys are read once a minute', async () => {
  const { clock, asked, read } = open(() => new Response('one'))
  for (const waitMs of [0, 59_999]) {
    clock.advance(waitMs)
    expect(await read()).toEqual([200, 'one'])
  }
  expect(asked).toHaveLength(1)
  clock.advance(1)
  await read()
  expect(asked).toHaveLength(2)
})

test.each([
  ['another status', () => new Response('gone', { status: 404 })],
  ['no answer', () => Promise.reject(new Error('refused'))],
])('%s is kept for ten seconds', async (_name, answer) => {
  const { clock, asked, read } = open(answer, () => new Response('one'))
  const first = await read().catch((error: Error) => error.message)
  expect(['refused', '404,gone']).toContain(String(first))
  clock.advance(9_999)
  expect(await read().catch((error: Error) => error.message)).toEqual(first)
  expect(asked).toHaveLength(1)
  clock.advance(1)
  expect(await read()).toEqual([200, 'one'])
})

test('an answer that came after the next one was read does not replace it', async () => {
  const late = Promise.withResolvers<Response>()
  const { clock, asked, read } = open(
    () => late.promise,
    () => new Response('two'),
  )
  const first = read()
  clock.advance(10_000)
  await read()
  late.resolve(new Response('one'))
  await first
  expect(await read()).toEqual([200, 'two'])
  expect(asked).toHaveLength(2)
})

test('an answer that took longer than a fault is kept is kept for a minute all the same', async () => {
  const late = Promise.withResolvers<Response>()
  const { clock, asked, read } = open(() => late.promise)
  const first = read()
  clock.advance(10_000)
  late.resolve(new Response('one'))
  await first
  clock.advance(59_999)
  expect([await read(), asked.length]).toEqual([[200, 'one'], 1])
})

test('other requests than reads pass', async () => {
  const { asked, read } = open(() => new Response('one'))
  for (let count = 0; count < 2; count += 1) await read('POST')
  expect(asked).toEqual([`POST ${KEYS}`, `POST ${KEYS}`])
})

test('a JWT of a client is valid for ten minutes at most', async () => {
  const refuse = refuseLongAssertion(() => 5_999)
  const ctx = {} as KoaContextWithOIDC
  await expect(refuse(ctx, { exp: 605 })).resolves.toBeUndefined()
  await expect(refuse(ctx, { exp: 606 })).rejects.toThrow('invalid_client')
})
