import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildReadSemaphore, type Reader } from './read-semaphore.ts'

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A semaphore and the reads that run in it; the test ends each. */
function openGate(atOnce: number) {
  const clock = buildManualClock()
  const semaphore = buildReadSemaphore({ atOnce, clock })
  const running: { name: string; end: () => void }[] = []
  const ask = (name: string, reader: Partial<Reader> = {}) => {
    const work = () => {
      const { promise, resolve } = Promise.withResolvers<string>()
      running.push({ name, end: () => resolve(name) })
      return promise
    }
    const asked = semaphore({ holder: name, accounts: [], ...reader }, work)
    // Awaited later, or by the test that expects the refusal.
    asked.catch(() => {})
    return asked
  }
  const listRunning = async () => {
    await settle()
    return running.map(({ name }) => name)
  }
  const end = async (name: string) => {
    const at = running.findIndex((item) => item.name === name)
    running.splice(at, 1)[0]?.end()
    return listRunning()
  }
  return { clock, ask, listRunning, end }
}

test('of one caller two run, and the third runs when one of them ends', async () => {
  const { ask, listRunning, end } = openGate(10)
  const mine = { holder: 'me' }
  const first = ask('first', mine)
  ask('second', mine)
  ask('third', mine)
  expect(await listRunning()).toEqual(['first', 'second'])
  expect(await end('first')).toEqual(['second', 'third'])
  expect(await first).toBe('first')
})

test('of callers of one account three run, and those of other accounts pass them', async () => {
  const { ask, listRunning, end } = openGate(10)
  for (const name of ['a', 'b', 'c', 'd']) ask(name, { accounts: ['one'] })
  ask('of both', { accounts: ['two', 'one'] })
  ask('of another', { accounts: ['two'] })
  ask('operator')
  expect(await listRunning()).toEqual(['a', 'b', 'c', 'of another', 'operator'])
  expect(await end('b')).toEqual(['a', 'c', 'of another', 'operator', 'd'])
  expect(await end('a')).toEqual(['c', 'of another', 'operator', 'd', 'of both'])
})

test('of all callers as many run as the semaphore has places, in the order in which they came', async () => {
  const { ask, listRunning, end } = openGate(2)
  for (const name of ['a', 'b', 'c', 'd']) ask(name)
  expect(await listRunning()).toEqual(['a', 'b'])
  expect(await end('a')).toEqual(['b', 'c'])
  expect(await end('c')).toEqual(['b', 'd'])
})

test('a read that fails gives its place on', async () => {
  const semaphore = buildReadSemaphore({ atOnce: 1, clock: buildManualClock() })
  const reader = { holder: 'me', accounts: ['one'] }
  await expect(semaphore(reader, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  expect(await semaphore(reader, async () => 'done')).toBe('done')
})

test('ten of one caller wait, and the eleventh is refused at once, while others may still come', async () => {
  const { ask, listRunning } = openGate(10)
  const mine = { holder: 'me' }
  for (let n = 0; n < 12; n += 1) ask(`${n}`, mine)
  await expect(ask('one too many', mine)).rejects.toMatchObject({
    code: 'rate_limited',
    headers: { 'retry-after': '1' },
  })
  ask('other')
  expect(await listRunning()).toEqual(['0', '1', 'other'])
})

test('one that waited 5 s is refused, for the limit of its caller or for the load of others', async () => {
  const { clock, ask, listRunning, end } = openGate(3)
  const mine = { holder: 'me' }
  ask('first', mine)
  ask('second', mine)
  const third = ask('third', mine)
  ask('other')
  const late = ask('late')
  clock.advance(4_999)
  await settle()
  expect(await listRunning()).toEqual(['first', 'second', 'other'])
  clock.advance(1)
  await expect(third).rejects.toMatchObject({ code: 'rate_limited' })
  await expect(late).rejects.toMatchObject({ code: 'overloaded', headers: { 'retry-after': '1' } })
  // Neither of them takes the place of the one that ended.
  expect(await end('first')).toEqual(['second', 'other'])
})

test('beyond 200 that wait, whoever comes is refused at once', async () => {
  const { ask } = openGate(1)
  for (let n = 0; n < 201; n += 1) ask(`${n}`)
  await expect(ask('one too many')).rejects.toMatchObject({ code: 'overloaded' })
})
