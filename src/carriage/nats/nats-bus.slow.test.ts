import { randomBytes, randomUUID } from 'node:crypto'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeBus } from '../../../test/harness/carriage/bus-conformance.ts'
import { findNatsServer } from '../../../test/harness/nats/nats-program.ts'
import { type NatsServers, startNatsServers } from '../../../test/harness/nats/nats-servers.ts'
import { limit, waitFor } from '../../../test/harness/run/wait.ts'
import type { LogError } from '../log/log.ts'
import { buildNatsBus, type NatsBusOptions } from './nats-bus.ts'
import { connectNats } from './nats-connection.ts'
import { parseNatsUrl } from './nats-url.ts'

const program = await findNatsServer('the bus in memory passes the same tests')

let servers: NatsServers | undefined
let subjects = 0

beforeAll(async () => {
  servers = program ? await startNatsServers({ program }) : undefined
})
afterAll(() => servers?.[Symbol.asyncDispose]())

const KEYS: NatsBusOptions['keys'] = [randomBytes(32)]

const settingsOf = (url: string) => ({ ...parseNatsUrl(url), tls: {} })

function buildOptions(change: Partial<NatsBusOptions> = {}): NatsBusOptions {
  return {
    ...{ settings: settingsOf(servers?.url ?? ''), subject: 'test.realtime', id: randomUUID(), keys: KEYS },
    ...{ onText: () => {}, onChange: () => {}, onFailed: () => {} },
    ...change,
  }
}

/** A bus that runs until the end of the scope. */
function start(change: Partial<NatsBusOptions> = {}) {
  const options = buildOptions(change)
  const bus = buildNatsBus(options)
  const running = bus.run()
  return {
    id: options.id,
    bus,
    [Symbol.asyncDispose]: async () => {
      await bus.stop()
      await running
    },
  }
}

async function openEmpty() {
  subjects += 1
  const subject = `test.realtime-${subjects}`
  return {
    open: (id: string, onText: (text: string) => void, onChange = (_: boolean) => {}) =>
      buildNatsBus(buildOptions({ subject, id, onText, onChange })),
    cut: async () => {
      await servers?.nodes[0]?.kill()
    },
    mend: async () => {
      await servers?.nodes[0]?.start()
    },
    [Symbol.asyncDispose]: async () => {
      await servers?.nodes[0]?.kill()
      await servers?.nodes[0]?.start()
    },
  }
}

describeBus('in NATS', program ? openEmpty : undefined)

test('installations with other subjects or other keys do not hear each other', async () => {
  if (!program) return
  const texts: string[] = []
  const onText = (text: string) => texts.push(text)
  await using own = start({ onText })
  await using peer = start()
  await using foreignSubject = start({ subject: 'other.realtime', onText })
  await using foreignKey = start({ keys: [randomBytes(32)] })
  await using rotated = start({ keys: [randomBytes(32), ...KEYS], onText })
  const all = [own, peer, foreignSubject, foreignKey, rotated]
  await waitFor('all of them', () => all.every(({ bus }) => bus.isOpen()))
  await foreignKey.bus.send([`${foreignKey.id} c1 {}`])
  await peer.bus.send([`${peer.id} c1 {}`])
  await waitFor('what they received', () => texts.length >= 2)
  await Promise.all(all.map(({ bus }) => bus.send([])))
  // Itself, and the process of a rotation of keys, which opens what the older key has sealed.
  expect(texts).toEqual([`${peer.id} c1 {}`, `${peer.id} c1 {}`])
})

test('what others publish on the subjects is ignored, and does not close the bus', async () => {
  if (!program) return
  const texts: string[] = []
  await using own = start({ onText: (text) => texts.push(text) })
  await using peer = start()
  await waitFor('both', () => own.bus.isOpen() && peer.bus.isOpen())
  const stranger = await connectNats(settingsOf(servers?.url ?? ''), { name: 'stranger' })
  const forged = [new Uint8Array(0), new Uint8Array(32), randomBytes(1_000_000), Buffer.from(`${peer.id} c1 {}`)]
  for (const bytes of forged)
    for (const subject of [own.id, peer.id, 'x']) stranger.connection.publish(`test.realtime.${subject}`, bytes)
  await stranger.connection.flush()
  await stranger.close()
  await peer.bus.send([`${peer.id} c1 true`])
  await waitFor('the text of the peer', () => texts.length > 0)
  expect(texts).toEqual([`${peer.id} c1 true`])
  expect(own.bus.isOpen()).toBe(true)
})

test('a user without the right to publish or to subscribe is told apart from an absent server, once, without a secret', async () => {
  if (!program) return
  const rights = (name: string, permissions: string) =>
    `{ user: ${name}, password: secret-1, permissions: { ${permissions} } }`
  const lines = `authorization { users: [
    ${rights('mute', 'publish: "other.>", subscribe: ["test.realtime.*", "_INBOX.>"]')}
    ${rights('deaf', 'publish: "test.realtime.*", subscribe: "_INBOX.>"')}
    ${rights('whole', 'publish: "test.realtime.*", subscribe: "test.realtime.*"')}
  ] }`
  await using own = await startNatsServers({ program, lines })
  const failOf = async (url: string) => {
    const failures: LogError[] = []
    await using one = start({ settings: settingsOf(url), onFailed: (error) => failures.push(error) })
    await waitFor('the failure', () => failures.length > 0)
    expect(one.bus.isOpen()).toBe(false)
    expect(String(failures[0])).not.toContain('secret-1')
    return failures.map(({ code }) => code)
  }
  const as = (user: string) => own.url.replace('nats://', `nats://${user}:secret-1@`)
  expect(await failOf(as('mute'))).toEqual(['refused'])
  expect(await failOf(as('deaf'))).toEqual(['refused'])
  expect(await failOf(as('nobody'))).toEqual(['refused'])
  expect(await failOf('nats://127.0.0.1:1')).toEqual(['unreachable'])
  await using whole = start({ settings: settingsOf(as('whole')) })
  await waitFor('an open bus', () => whole.bus.isOpen())
})

test('a server that hangs closes the bus within seconds, and a send to it does not wait longer than one', async () => {
  if (!program) return
  await using own = await startNatsServers({ program })
  await using one = start({ settings: settingsOf(own.url) })
  await waitFor('an open bus', () => one.bus.isOpen())
  own.nodes[0]?.freeze()
  try {
    // A stop takes a moment to take effect.
    await waitFor('an unconfirmed text', async () => {
      const sent = await one.bus.send([`${one.id} c1 {}`]).catch((error: unknown) => error)
      return (sent as LogError | undefined)?.code === 'unreachable'
    })
    await waitFor('the loss', () => !one.bus.isOpen())
  } finally {
    own.nodes[0]?.thaw()
  }
  await waitFor('an open bus', () => one.bus.isOpen())
})

test('a stop does not wait for a server that accepts connections and says nothing', async () => {
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => {})))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = silent.address() as AddressInfo
    const bus = buildNatsBus(buildOptions({ settings: settingsOf(`nats://127.0.0.1:${port}`) }))
    const running = bus.run()
    await waitFor('the connection', () => sockets.length > 0)
    await limit(Promise.all([bus.stop(), running]), 4_500, 'the stop')
  } finally {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => silent.close(resolve))
  }
})
