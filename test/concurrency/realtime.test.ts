import { once } from 'node:events'
import Pusher from 'pusher'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createTestDatabase } from '../harness/database/database.ts'
import { startLocalService } from '../harness/process/local-service.ts'
import { startService } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const ENVIRONMENT = {
  INTEGRATION_REALTIME_APP_ID: 'app-1',
  INTEGRATION_REALTIME_KEY: 'key-1',
  INTEGRATION_REALTIME_SECRET: 'secret-1',
  INTEGRATION_REALTIME_CLUSTER: 'embedded',
}

function buildSdk(url: string): Pusher {
  const { hostname, port } = new URL(url)
  return new Pusher({ appId: 'app-1', key: 'key-1', secret: 'secret-1', host: hostname, port, useTLS: false })
}

/** Joins a presence channel in a process, and collects the frames that follow. */
async function join(url: string, user: string) {
  const webSocket = new WebSocket(`${url.replace('http', 'ws')}/app/key-1?protocol=7`)
  const frames: { event: string; data: string }[] = []
  webSocket.on('error', () => {})
  webSocket.on('message', (data) => frames.push(JSON.parse(data.toString())))
  await waitFor('the greeting', () => frames.length > 0)
  const socketId = JSON.parse(frames[0]!.data).socket_id as string
  const token = buildSdk(url).authorizeChannel(socketId, 'presence-room', { user_id: user })
  webSocket.send(JSON.stringify({ event: 'pusher:subscribe', data: { channel: 'presence-room', ...token } }))
  await waitFor('the subscription', () => frames.length > 1)
  return { webSocket, frames }
}

test('a process that is killed takes its members along, and the others go on; one that stops closes its clients with 4100', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  const options = { databaseUrl: database.connectionString, token: '', env: ENVIRONMENT }
  await using stack = new AsyncDisposableStack()
  const service = stack.use(await startLocalService(options))
  const doomed = await startService(options)
  stack.defer(async () => void (await doomed.kill()))

  const ann = await join(service.url, 'ann')
  const bob = await join(doomed.url, 'bob')
  await waitFor('bob', () => ann.frames.some(({ event }) => event === 'pusher_internal:member_added'))
  await buildSdk(doomed.url).trigger('presence-room', 'created', { n: 1 })
  await waitFor('the event', () => [ann, bob].every(({ frames }) => frames.some(({ event }) => event === 'created')))

  const cut = once(bob.webSocket, 'close')
  await doomed.stop('SIGKILL')
  expect((await cut)[0]).toBe(1006)
  const removed = await waitFor('the removal', () =>
    ann.frames.find(({ event }) => event === 'pusher_internal:member_removed'),
  )
  expect(JSON.parse(removed.data)).toEqual({ user_id: 'bob' })
  await buildSdk(service.url).trigger('presence-room', 'later', {})
  await waitFor('the later event', () => ann.frames.some(({ event }) => event === 'later'))

  const closed = once(ann.webSocket, 'close')
  await service.stop()
  expect((await closed)[0]).toBe(4100)
})
