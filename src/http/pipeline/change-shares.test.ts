import { expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import { buildChangeShares, type Changer } from './change-shares.ts'

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

const of = (user: string, scope: Changer['scope'] = 'all'): Changer => ({
  caller: { userId: user as UserId },
  scope,
})
const inAccount = (user: string, ...accounts: string[]) => of(user, accounts as AccountId[])

/** The shares of a pool and the changes that run in them; the test ends each. */
function open(connections: number) {
  const clock = buildManualClock()
  const share = buildChangeShares({ connections, clock })
  const running = new Map<string, () => void>()
  const ask = (name: string, changer: Changer) => {
    const asked = share(changer, () => new Promise<string>((resolve) => running.set(name, () => resolve(name))))
    // Awaited later, or by the test that expects the refusal.
    asked.catch(() => {})
    return asked
  }
  const listRunning = async () => {
    await settle()
    return [...running.keys()]
  }
  const end = async (name: string) => {
    running.get(name)?.()
    running.delete(name)
    return listRunning()
  }
  return { clock, ask, listRunning, end }
}

test.each([
  [1, 1],
  [2, 1],
  [3, 2],
  [5, 4],
  [10, 8],
  [50, 40],
])('of a pool of %i connections one caller holds %i', async (connections, places) => {
  const { ask, listRunning } = open(connections)
  for (let at = 0; at < connections + 5; at += 1) ask(`${at}`, of('me'))
  expect(await listRunning()).toHaveLength(places)
})

test('others pass the changes of a caller that wait, which run in their order', async () => {
  const { ask, listRunning, end } = open(3)
  const first = ask('first', of('me'))
  for (const name of ['second', 'third', 'fourth']) ask(name, of('me'))
  ask('other', of('other'))
  expect(await listRunning()).toEqual(['first', 'second', 'other'])
  expect(await end('first')).toEqual(['second', 'other', 'third'])
  expect(await first).toBe('first')
})

test('callers of one account share, whoever they are, and callers of several have shares of their own', async () => {
  const { ask, listRunning } = open(2)
  ask('one', inAccount('a', 'acme'))
  ask('two', inAccount('b', 'acme'))
  ask('three', inAccount('a', 'acme', 'other'))
  ask('four', inAccount('b', 'acme', 'other'))
  ask('five', inAccount('b', 'acme', 'other'))
  expect(await listRunning()).toEqual(['one', 'three', 'four'])
})

test('a change that fails leaves its place', async () => {
  const { ask, listRunning } = open(1)
  const share = buildChangeShares({ connections: 1, clock: buildManualClock() })
  await expect(share(of('me'), () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect(await share(of('me'), async () => 'ran')).toBe('ran')
  ask('only', of('me'))
  expect(await listRunning()).toEqual(['only'])
})

test('a change waits five seconds, and is then refused: its caller sends too many', async () => {
  const { clock, ask, listRunning, end } = open(1)
  ask('first', of('me'))
  const late = ask('late', of('me'))
  ask('other', of('other'))
  await settle()
  clock.advance(4_999)
  expect(await end('other')).toEqual(['first'])
  clock.advance(1)
  await expect(late).rejects.toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '1' } })
  ask('next', of('me'))
  expect(await listRunning()).toEqual(['first'])
  expect(await end('first')).toEqual(['next'])
})

test('where nobody made a change in these seconds, the database is the cause and not the caller', async () => {
  const { clock, ask } = open(1)
  ask('first', of('me'))
  const share = ask('late', of('me'))
  await settle()
  clock.advance(5_000)
  await expect(share).rejects.toMatchObject({ code: 'dependency_unavailable', headers: { 'retry-after': '5' } })
})
