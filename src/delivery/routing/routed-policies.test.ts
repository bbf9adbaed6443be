import { expect, test } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { buildSemaphore } from '../../base/semaphore.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'
import { buildRoutedPolicies } from './routed-policies.ts'

test('turns that one dispatcher does not have in time are given back, and no other is waited for', async () => {
  const [free, busy, other] = [buildSemaphore(1), buildSemaphore(1), buildSemaphore(1)]
  const of = (mutex: Dispatcher['mutex']) => ({ mutex }) as Dispatcher
  const policies = buildRoutedPolicies([of(free), of(busy), of(other)], systemClock)
  await busy.take()
  await other.take()
  let waits = 0
  const waitOver = async () => {
    waits += 1
  }
  expect(await policies.takeTurns(waitOver)).toBeUndefined()
  expect([waits, free.taken(), busy.waiting(), other.waiting()]).toEqual([1, 0, 0, 0])
  busy.release()
  other.release()
  const release = await policies.takeTurns(waitOver)
  expect([waits, free.taken(), busy.taken(), other.taken()]).toEqual([1, 1, 1, 1])
  release?.()
  release?.()
  expect([free.taken(), busy.taken(), other.taken()]).toEqual([0, 0, 0])
})
