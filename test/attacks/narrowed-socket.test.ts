import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createNarrowedApp } from '../harness/app/narrowed-app.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { waitFor } from '../harness/run/wait.ts'

/** A socket of the embedded server that joined with a proof (docs/contract/connections.md#members-of-several-accounts). */
const t = await openForFile(
  createNarrowedApp({
    env: {
      SSO_TARGETS: 'https://b.example.test',
      ...{ INTEGRATION_REALTIME_APP_ID: 'app-1', INTEGRATION_REALTIME_KEY: 'key-1' },
      ...{ INTEGRATION_REALTIME_SECRET: 'secret-1', INTEGRATION_REALTIME_CLUSTER: 'embedded' },
    },
  }),
)
await t.app.app.start()
await t.app.app.realtimeServer?.server()?.ready

/** A session that a handshake opened from another one. */
async function handshake(jwt: string): Promise<string> {
  const target = { target_url: 'https://b.example.test/' }
  const { body } = await t.app.callAs(jwt)('POST', '/api/v3/auth/sso/handshake', target)
  const token = new URL(body.data.redirect_url).searchParams.get('sso_token')
  return (await t.app.anonymous('POST', '/api/v3/auth/sso/exchange', { token })).body.jwt
}

/** Opens a socket, signs it in as the user of the token, and joins the channel of an account. */
async function join(jwt: string, account: string) {
  const { port } = t.app.app.server.server.address() as AddressInfo
  const socket = new WebSocket(`ws://127.0.0.1:${port}/app/key-1?protocol=7`)
  const frames: { event: string; channel?: string; data: unknown }[] = []
  socket.on('message', (data) => frames.push(JSON.parse(data.toString())))
  const receive = (event: string) => waitFor(event, () => frames.find((frame) => frame.event === event))
  await once(socket, 'open')
  const { socket_id } = JSON.parse(String((await receive('pusher:connection_established')).data))
  const call = t.app.callAs(jwt)
  const send = (event: string, data: object) => socket.send(JSON.stringify({ event, data }))
  send('pusher:signin', (await call('POST', '/api/v3/realtime/realtime/user-auth', { socket_id })).body)
  await receive('pusher:signin_success')
  const channel = `private-account-${account}`
  const granted = await call('POST', '/api/v3/realtime/realtime/auth', { socket_id, channel_name: channel })
  expect(granted.status, JSON.stringify(granted.body)).toBe(200)
  const rejoin = () => send('pusher:subscribe', { channel, ...granted.body })
  rejoin()
  await receive('pusher_internal:subscription_succeeded')
  return { socket, frames, rejoin }
}

test('a socket that joined with a proof leaves the channel when the proof ends, and one of another user stays', async () => {
  const [world, other] = [await t.narrow(), await t.narrow()]
  await t.change(world, { session_hours: 1 })
  await t.change(other, { session_hours: 2 })
  const [browser, longer] = [await t.enterPassword(world), await t.enterPassword(other)]
  await t.proveSession(world, browser)
  await t.proveSession(other, longer)
  // The JWT of the sign-in ends with the hour; that of a session opened later outlasts the proof.
  t.app.clock.advance(1_800_000)
  const tokens = [await handshake(browser.jwt), await handshake(longer.jwt)] as const
  t.app.clock.advance(1_770_000)
  const ending = await join(tokens[0], world.closed)
  const staying = await join(tokens[1], other.closed)
  t.app.clock.advance(29_000)
  expect(await t.statuses(tokens[0], world)).toEqual([200, 200])
  expect(ending.frames.map(({ event }) => event)).not.toContain('pusher:subscription_error')
  const provenUntilMs = t.app.clock.now() + 1_000
  // A subscription ends within a second of its token.
  const ended = await waitFor('the end of the subscription', () => {
    t.app.clock.advance(1_000)
    return ending.frames.find(({ event }) => event === 'pusher:subscription_error')
  })
  const error = 'The access to this channel was withdrawn'
  expect(ended).toMatchObject({ channel: `private-account-${world.closed}`, data: { status: 403, error } })
  expect(t.app.clock.now() - provenUntilMs).toBeLessThan(60_000)
  // The signature of before joins no more.
  const refusals = () => ending.frames.filter(({ event }) => event === 'pusher:subscription_error')
  ending.rejoin()
  await waitFor('the refusal', () => refusals().length === 2)
  expect(staying.frames.filter(({ event }) => event === 'pusher:subscription_error')).toEqual([])
  // The session goes on, and may join what is open.
  expect(await t.statuses(tokens[0], world)).toEqual([403, 200])
  ending.socket.close()
  staying.socket.close()
})
