import { expect, test } from 'vitest'
import { buildMemberList } from '../src/presence.ts'

const SINCE = { early: '2026-01-01T00:00:00.000Z', late: '2026-01-01T00:01:00.000Z' }
const infoOf = (name: string | null, since: string) => ({ name, since })

test('members come with the subscription, join and leave, the longest present first', () => {
  const list = buildMemberList()
  let changes = 0
  const end = list.onChange(() => {
    changes += 1
  })
  const ids = () => list.read().map(({ id }) => id)
  list.take('pusher:subscription_succeeded', {
    members: { b: infoOf('Bob', SINCE.late), a: infoOf(null, SINCE.late), c: infoOf('Cid', SINCE.early) },
  })
  expect(list.read()).toEqual([
    { id: 'c', name: 'Cid', since: SINCE.early },
    { id: 'a', name: null, since: SINCE.late },
    { id: 'b', name: 'Bob', since: SINCE.late },
  ])
  expect(list.read()).toBe(list.read())
  list.take('pusher:member_added', { id: 'd', info: infoOf('Dan', SINCE.late) })
  list.take('pusher:member_added', { id: 'd', info: infoOf('Dan', SINCE.late) })
  list.take('pusher:member_removed', { id: 'a', info: infoOf(null, SINCE.late) })
  list.take('pusher:something', { id: 'x' })
  expect([ids(), changes]).toEqual([['c', 'b', 'd'], 4])
  end()
  list.clear()
  expect([ids(), changes]).toEqual([[], 4])
})

test('a new subscription replaces the members', () => {
  const list = buildMemberList()
  list.take('pusher:member_added', { id: 'a', info: infoOf('Ann', SINCE.early) })
  list.take('pusher:subscription_succeeded', { members: { b: infoOf('Bob', SINCE.late) } })
  expect(list.read().map(({ id }) => id)).toEqual(['b'])
})

test.each([undefined, null, {}, { name: 1, since: 2 }, 'x'])('a member whose data is %j has no name', (info) => {
  const list = buildMemberList()
  list.take('pusher:member_added', { id: '__proto__', info })
  expect(list.read()).toEqual([{ id: '__proto__', name: null, since: '1970-01-01T00:00:00.000Z' }])
})
