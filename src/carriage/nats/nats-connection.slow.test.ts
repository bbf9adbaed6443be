import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import { createAuthority } from '../../../test/harness/fakes/tls.ts'
import { createNatsOperator } from '../../../test/harness/nats/nats-operator.ts'
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
    const refused = await connectNats(settings, { name: 'test', timeoutMs: 20_000 }).catch((error: Error) => error)
    expect(String(refused)).toMatch(/authorization/i)
    expect(String(refused)).not.toContain('secret-')
  }
})

test('over TLS the certificate of the server is checked, by the given authority, and a client has one where it must', async () => {
  if (!program) return
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-nats-tls-'))
  try {
    const [authority, other] = [await createAuthority(), await createAuthority()]
    const write = async (name: string, text: string) => {
      const path = join(folder, name)
      await writeFile(path, text)
      return path
    }
    const issued = await authority.issue(['localhost'])
    const caFile = await write('ca.pem', authority.ca)
    const foreignCa = await write('other.pem', other.ca)
    const [certFile, keyFile] = [await write('cert.pem', issued.cert), await write('key.pem', issued.key)]
    const files = `cert_file: "${certFile}", key_file: "${keyFile}", ca_file: "${caFile}"`
    await using servers = await startNatsServers({ program, lines: `tls { ${files}, verify: true }` })
    const open = (tls: NatsSettings['tls'], timeoutMs: number) =>
      connectNats(
        { ...parseNatsUrl(servers.url.replace('nats://127.0.0.1', 'tls://localhost')), tls },
        { name: 'test', timeoutMs },
      )
    const link = await open({ caFile, certFile, keyFile }, 20_000)
    await link.connection.flush()
    await link.close()
    // The server tells a client without a certificate nothing, so that it waits.
    for (const tls of [{ caFile: foreignCa, certFile, keyFile }, { caFile }, {}])
      await expect(open(tls, 2_000)).rejects.toThrow()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('an nkey lets its user in, and another one does not', async () => {
  if (!program) return
  const [own, other] = [nkeys.createUser(), nkeys.createUser()]
  const lines = `authorization { users: [{ nkey: ${own.getPublicKey()} }] }`
  await using servers = await startNatsServers({ program, lines })
  const open = (seed: string) =>
    connectNats({ ...settingsOf(servers.url), auth: { kind: 'nkey', seed } }, { name: 'test', timeoutMs: 20_000 })
  const seedOf = (pair: typeof own) => new TextDecoder().decode(pair.getSeed())
  await (await open(seedOf(own))).close()
  const refused = await open(seedOf(other)).catch((error: Error) => error)
  expect(String(refused)).toMatch(/authorization/i)
  expect(String(refused)).not.toContain(seedOf(other))
})

test('a credentials file of an operator lets its user in; one of a foreign account and one that is none do not', async () => {
  if (!program) return
  const operator = createNatsOperator()
  await using servers = await startNatsServers({ program, lines: operator.lines })
  const open = (text: string) =>
    connectNats(
      { ...settingsOf(servers.url), auth: { kind: 'credentials', text } },
      { name: 'test', timeoutMs: 20_000 },
    )
  const link = await open(operator.issueCredentials())
  await link.connection.flush()
  await link.close()
  const foreign = operator.issueCredentials({ isForeign: true })
  for (const text of [foreign, 'SUsecret', foreign.replace(/SU[A-Z2-7]{56}/, `SU${'A'.repeat(56)}`)]) {
    const refused = await open(text).catch((error: Error) => error)
    expect(refused).toBeInstanceOf(Error)
    expect(`${refused} ${(refused as Error).stack}`).not.toMatch(/SU[A-Z2-7s]{5,}/)
  }
})
