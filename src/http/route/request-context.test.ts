import { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import type { AccountId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { Caller, PermissionScope } from '../shape/caller.ts'
import { RequestContext } from './request-context.ts'
import type { RouteDeclaration } from './route-declaration.ts'

interface Asked {
  scope?: PermissionScope
  /** The scope of the caller by now. */
  now?: PermissionScope
  read?: PermissionScope[]
}

/** A request on a connection that may be idle for 30 s. */
function openRequest(socket: Socket, { scope = 'all', now = 'all', read = [] }: Asked = {}) {
  const request = { raw: { socket, headers: {} }, headers: {}, id: 'r', scope } as unknown as FastifyRequest
  const route = { resource: 'webhook', action: 'pull' } as RouteDeclaration
  return new RequestContext(request, {
    ...{ route, now: new Date(0), db: {} as Database, recheck: async () => ({ caller: {} as Caller, scope: now }) },
    readExpensive: (of, work) => {
      read.push(of)
      return work()
    },
  })
}

const [mine, theirs] = ['mine', 'theirs'] as AccountId[] as [AccountId, AccountId]

test.each<[PermissionScope, PermissionScope]>([
  ['all', 'all'],
  [[mine], 'all'],
  [[mine], [theirs, mine]],
])('an answer to a caller of %j goes on while it reaches %j', async (scope, now) => {
  const read: PermissionScope[] = []
  expect(await openRequest(new Socket(), { scope, now, read }).waiting.readOn(async () => 'more')).toBe('more')
  expect(read).toEqual([scope])
})

test.each<[PermissionScope, PermissionScope]>([
  ['all', [mine]],
  [[mine, theirs], [mine]],
  [[mine], []],
])('an answer to a caller of %j does not go on once it reaches %j', async (scope, now) => {
  const read: PermissionScope[] = []
  const { readOn } = openRequest(new Socket(), { scope, now, read }).waiting
  await expect(readOn(async () => 'more')).rejects.toMatchObject({ code: 'permission_denied' })
  expect(read).toEqual([])
})

test('a request that waits hears of the end of its connection, until it has stopped to watch', () => {
  const socket = new Socket()
  const closed: string[] = []
  const end = openRequest(socket).waiting.watch(() => closed.push('first'), 60_000)
  openRequest(socket).waiting.watch(() => closed.push('second'), 60_000)
  end()
  socket.emit('close')
  expect(closed).toEqual(['second'])
})

test('its connection may be idle for longer, and of several requests on one until the last has ended', () => {
  const socket = new Socket().setTimeout(30_000)
  const [first, second] = [openRequest(socket), openRequest(socket)]
  const endFirst = first.waiting.watch(() => {}, 60_000)
  expect(socket.timeout).toBe(60_000)
  const endSecond = second.waiting.watch(() => {}, 45_000)
  expect(socket.timeout).toBe(60_000)
  endFirst()
  expect(socket.timeout).toBe(60_000)
  endSecond()
  expect(socket.timeout).toBe(30_000)
  socket.destroy()
})

test('a connection without an idle limit keeps none', () => {
  const socket = new Socket()
  openRequest(socket).waiting.watch(() => {}, 60_000)()
  expect(socket.timeout ?? 0).toBe(0)
})
