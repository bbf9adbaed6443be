import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ProviderOutcome } from './provider-outcome.ts'
import { buildPublisher, type Publication, takeBatch } from './publisher.ts'

const OK: ProviderOutcome = { kind: 'ok', body: {} }
const DOWN = { kind: 'failed', statusCode: 503, errorClass: 'http_5xx' } as const
const REFUSED: ProviderOutcome = { kind: 'rejected', statusCode: 400, errorClass: 'http_4xx', isRetryable: false }

/** A publisher over a provider whose calls end when the test says so. */
function openPublisher(answer?: (names: string[]) => ProviderOutcome) {
  const calls: { names: string[]; end: (outcome: ProviderOutcome) => void }[] = []
  const publisher = buildPublisher({
    client: {
      send: ({ body }, options) => {
        const { batch } = JSON.parse(body ?? '{}') as { batch: { name: string }[] }
        const names = batch.map((entry) => entry.name)
        const { promise, resolve } = Promise.withResolvers<ProviderOutcome>()
        calls.push({ names, end: resolve })
        if (answer) resolve(answer(names))
        options?.signal?.addEventListener('abort', () => resolve({ ...DOWN, errorClass: 'timeout' }))
        return promise
      },
    },
    now: () => 0,
  })
  const publish = (group: string, name: string, channels = 1) =>
    publisher
      .publish({ group, items: Array.from({ length: channels }, (_, n) => ({ channel: `c${n}`, name, data: '{}' })) })
      .then(({ result }) => result.kind)
  return { publisher, publish, calls, turn: () => new Promise(setImmediate) }
}

describe('a call', () => {
  test('takes what is handed over in one turn, ten items at most, messages whole', async () => {
    const t = openPublisher()
    for (let n = 0; n < 7; n += 1) void t.publish(`g${n}`, `e${n}`, 2)
    await t.turn()
    expect(t.calls.map((call) => call.names.length)).toEqual([10, 4])
    expect(t.calls[0]?.names).toEqual(['e0', 'e0', 'e1', 'e1', 'e2', 'e2', 'e3', 'e3', 'e4', 'e4'])
  })

  test('for an account waits for the one before it', async () => {
    const t = openPublisher()
    void t.publish('a', 'a1')
    await t.turn()
    void t.publish('a', 'a2')
    void t.publish('b', 'b1')
    await t.turn()
    expect(t.calls.map((call) => call.names)).toEqual([['a1'], ['b1']])
    t.calls[0]?.end(OK)
    await t.turn()
    expect(t.calls[2]?.names).toEqual(['a2'])
  })

  test('is one of eight at most', async () => {
    const t = openPublisher()
    for (let n = 0; n < 20; n += 1) {
      void t.publish(`g${n}`, `e${n}`)
      await t.turn()
    }
    expect(t.calls).toHaveLength(8)
    t.calls[3]?.end(OK)
    await t.turn()
    expect(t.calls[8]?.names).toHaveLength(10)
  })
})

describe('a failure', () => {
  test('holds back the later messages of its account, and no other, until it is recorded', async () => {
    const t = openPublisher()
    const first = t.publish('a', 'a1')
    await t.turn()
    const behind = t.publish('a', 'a2')
    t.calls[0]?.end(DOWN)
    expect(await Promise.all([first, behind])).toEqual(['failed', 'held'])
    expect(await t.publish('a', 'a3')).toBe('held')
    void t.publish('b', 'b1')
    await t.turn()
    t.publisher.resume(['a'])
    void t.publish('a', 'a1')
    await t.turn()
    expect(t.calls.map((call) => call.names)).toEqual([['a1'], ['b1'], ['a1']])
  })

  test('of one item of a batch leaves the others published', async () => {
    const t = openPublisher((names) => (names.includes('bad') ? REFUSED : OK))
    const results = [t.publish('a', 'a1'), t.publish('b', 'bad'), t.publish('b', 'b2'), t.publish('c', 'c1')]
    expect(await Promise.all(results)).toEqual(['ok', 'rejected', 'ok', 'ok'])
  })

  test('while the items of a refused batch are sent one by one holds back the later ones of its account', async () => {
    const t = openPublisher((names) => (names.length > 1 ? REFUSED : names[0] === 'a1' ? DOWN : OK))
    const results = [t.publish('a', 'a1'), t.publish('a', 'a2'), t.publish('b', 'b1')]
    expect(await Promise.all(results)).toEqual(['failed', 'held', 'ok'])
  })
})

test('an interruption ends the calls in flight, and what waits is not sent', async () => {
  const t = openPublisher()
  const inFlight = t.publish('a', 'a1')
  await t.turn()
  const behind = t.publish('a', 'a2')
  t.publisher.interrupt()
  expect(await Promise.all([inFlight, behind, t.publish('b', 'b1')])).toEqual([
    'interrupted',
    'interrupted',
    'interrupted',
  ])
  expect(t.calls).toHaveLength(1)
})

test('messages of an account leave in their order, whatever waits and whoever is busy', () => {
  const publications = fc.array(
    fc.record({ group: fc.constantFrom('a', 'b', 'c', 'd'), size: fc.integer({ min: 1, max: 2 }) }),
    { maxLength: 60 },
  )
  fc.assert(
    fc.property(publications, fc.subarray(['a', 'b', 'c', 'd']), (drawn, busy) => {
      const item = { channel: 'c', name: 'e', data: '{}' }
      let waiting = drawn.map(({ group, size }, id): Publication & { id: number } => ({
        ...{ id, group },
        items: Array.from({ length: size }, () => item),
      }))
      const first = takeBatch(waiting, new Set(busy))
      expect(first.batch.some((entry) => busy.includes(entry.group))).toBe(false)
      const sent = new Map<string, number>()
      let left = waiting.length
      while (waiting.length > 0) {
        const { batch, rest } = takeBatch(waiting, new Set())
        expect(batch.flatMap((entry) => entry.items).length).toBeLessThanOrEqual(10)
        expect(batch.length).toBeGreaterThan(0)
        for (const { group, id } of batch) {
          expect(id).toBeGreaterThan(sent.get(group) ?? -1)
          sent.set(group, id)
        }
        left -= batch.length
        waiting = rest
      }
      expect(left).toBe(0)
    }),
  )
})
