import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { stall } from '../../../test/harness/run/stall.ts'
import { connectClient } from './connect-limit.ts'
import { endClient, openClient } from './listener.ts'

test('a process that stood still for longer than the limit reads what the server has answered', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  const client = openClient(database.connectionString, 'signalbox test')
  const connecting = connectClient(client)
  stall(5_500)
  await connecting
  expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  endClient(client)
})

test('a server that takes the connection and says nothing is given up within the limit', async () => {
  const taken = new Set<Socket>()
  const server = createServer((socket) => taken.add(socket.on('error', () => {})))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const startedAt = performance.now()
  const client = openClient(`postgres://x:x@127.0.0.1:${port}/x`, 'signalbox test')
  await expect(connectClient(client)).rejects.toThrow('timeout expired')
  expect(performance.now() - startedAt).toBeGreaterThan(4_900)
  expect(taken.size).toBe(1)
  for (const socket of taken) socket.destroy()
  server.close()
})
