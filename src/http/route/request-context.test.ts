import { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import type { Database } from '../../postgres/statement/database.ts'
import { RequestContext } from './request-context.ts'
import type { RouteDeclaration } from './route-declaration.ts'

/** A request on a connection that may be idle for 30 s. */
function openRequest(socket: Socket) {
  const request = { raw: { socket, headers: {} }, headers: {}, id: 'r' } as unknown as FastifyRequest
  const route = { resource: 'webhook', action: 'pull' } as RouteDeclaration
  const recheck = async () => 'all' as const
  return new RequestContext(request, { route, now: new Date(0), db: {} as Database, recheck })
}

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
