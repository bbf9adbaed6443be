import { expect, test } from 'vitest'
import { findNatsServer } from '../../../test/harness/nats/nats-program.ts'
import { startNatsServers } from '../../../test/harness/nats/nats-servers.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { connectNats, type NatsSettings } from './nats-connection.ts'
import { parseNatsUrl } from './nats-url.ts'

const program = await findNatsServer('connections to NATS are not tested')

const settingsOf = (url: string): NatsSettings => ({ ...parseNatsUrl(url), tls: {} })

test('a connection is found again after its server was killed, and tells so', async () => {
  if (!program) return
  await using servers = await startNatsServers({ program })
  const told: string[] = []
  const link = await connectNats(settingsOf(servers.url), { name: 'test', onStatus: (status) => told.push(status) })
  const [node] = servers.nodes
  await node?.kill()
  await waitFor('the loss', () => told.includes('disconnected'))
  expect(link.isConnected()).toBe(false)
  await node?.start()
  await waitFor('the connection', () => link.isConnected())
  expect(told).toEqual(['disconnected', 'connected'])
  expect(link.countReconnects()).toBe(1)
  await link.close()
  expect(link.isConnected()).toBe(false)
})

test('a user with a password is let in; no other one is, and the error has no secret', async () => {
  if (!program) return
  const lines = 'accounts { A { users: [{ user: app, password: secret-1 }], jetstream: enabled } }'
  await using servers = await startNatsServers({ program, lines })
  const withUser = (login: string) => settingsOf(servers.url.replace('nats://', `nats://${login}@`))
  const link = await connectNats(withUser('app:secret-1'), { name: 'test' })
  await link.connection.flush()
  await link.close()
  for (const settings of [withUser('app:secret-2'), withUser('secret-2'), settingsOf(servers.url)]) {
    const refused = await connectNats(settings, { name: 'test', timeoutMs: 2_000 }).catch((error: Error) => error)
    expect(String(refused)).toMatch(/authorization/i)
    expect(String(refused)).not.toContain('secret-')
  }
})
