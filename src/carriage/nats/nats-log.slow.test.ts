import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildTestMessage, describeLog } from '../../../test/harness/carriage/log-conformance.ts'
import { findNatsServer } from '../../../test/harness/nats/nats-program.ts'
import { type NatsServers, startNatsServers } from '../../../test/harness/nats/nats-servers.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { fingerprintOf, type LogEntry, type LogQuery } from '../log/log.ts'
import { connectNats } from './nats-connection.ts'
import { type NatsLogSettings, openNatsLog } from './nats-log.ts'
import { parseNatsUrl } from './nats-url.ts'

const program = await findNatsServer('the log in memory passes the same tests')

let servers: NatsServers | undefined
let streams = 0

beforeAll(async () => {
  servers = program ? await startNatsServers({ program }) : undefined
})
afterAll(() => servers?.[Symbol.asyncDispose]())

function settingsOf(change: Partial<NatsLogSettings> = {}): NatsLogSettings {
  const nats = { ...parseNatsUrl(servers?.url ?? ''), tls: {} }
  return { nats, stream: 'EVENTS', replicas: undefined, maxAgeMs: 86_400_000, maxBytes: undefined, ...change }
}

async function manage<Result>(run: (manager: import('@nats-io/jetstream').JetStreamManager) => Promise<Result>) {
  const { jetstreamManager } = await import('@nats-io/jetstream')
  const link = await connectNats(settingsOf().nats, { name: 'test' })
  try {
    return await run(await jetstreamManager(link.connection))
  } finally {
    await link.close()
  }
}

async function openEmpty() {
  streams += 1
  const settings = settingsOf({ stream: `EVENTS_${streams}` })
  const log = await openNatsLog(settings, { name: 'test' })
  return {
    log,
    replace: async () => {
      await manage(({ streams: all }) => all.delete(settings.stream))
    },
    expire: async (upTo: number) => {
      await manage(({ streams: all }) => all.purge(settings.stream, { seq: upTo + 1 }))
    },
    open: () => openNatsLog(settings, { name: 'test' }),
    [Symbol.asyncDispose]: async () => {
      await log.close()
      await manage(({ streams: all }) => all.delete(settings.stream)).catch(() => {})
    },
  }
}

describeLog('in NATS', program ? openEmpty : undefined)

test('the stream is created with the settings, and changed when they change', async () => {
  if (!program) return
  const read = () => manage(async ({ streams: all }) => (await all.info('EVENTS')).config)
  await (await openNatsLog(settingsOf(), { name: 'test' })).close()
  const made = { subjects: ['ev.>'], storage: 'file', discard: 'old', num_replicas: 1, max_age: 86_400_000_000_000 }
  expect(await read()).toMatchObject({ ...made, max_bytes: -1, allow_atomic: true })
  await (await openNatsLog(settingsOf({ maxAgeMs: 3_600_000, maxBytes: 1_000_000 }), { name: 'test' })).close()
  expect(await read()).toMatchObject({ max_age: 3_600_000_000_000, max_bytes: 1_000_000 })
  await manage(({ streams: all }) => all.delete('EVENTS'))
})

test('a stream that would lose events or has other subjects is refused, with its faults', async () => {
  if (!program) return
  await manage(({ streams: all }) =>
    all.add({ name: 'EVENTS', subjects: ['ev.none.>'], storage: 'memory', discard: 'new', retention: 'workqueue' }),
  )
  const refused = await openNatsLog(settingsOf(), { name: 'test' }).catch((error: unknown) => error)
  expect(refused).toMatchObject({
    code: 'unsuitable',
    message:
      'The stream EVENTS cannot hold the log: its subjects are not ev.>; it is not stored in files; it removes messages that were read; it refuses messages when it is full.',
  })
  await manage(({ streams: all }) => all.delete('EVENTS'))
})

test('more replicas than servers, a full account and a server that is gone are told apart', async () => {
  if (!program) return
  const open = (change: Partial<NatsLogSettings>) =>
    openNatsLog(settingsOf(change), { name: 'test', timeoutMs: 20_000 }).catch((error: unknown) => error)
  expect(await open({ replicas: 3 })).toMatchObject({ code: 'unreachable', message: /replicas/ })
  const nats = { ...parseNatsUrl('nats://127.0.0.1:1'), tls: {} }
  expect(await open({ nats })).toMatchObject({ code: 'unreachable' })
})

test('a batch with one message that the server refuses stores none of them', async () => {
  if (!program) return
  const { log, ...under } = await openEmpty()
  const start = await log.readState()
  const messages = [buildTestMessage(1), { ...buildTestMessage(2), body: 'x'.repeat(2 ** 20) }, buildTestMessage(3)]
  await expect(log.append(messages, start)).rejects.toMatchObject({ name: 'LogError' })
  expect(await log.readState()).toMatchObject({ sequence: 0 })
  await under[Symbol.asyncDispose]()
})

test('a copy that is behind the others ends no read before the log', async () => {
  if (!program) return
  await using under = await openEmpty()
  const { log } = under
  const start = await log.readState()
  await log.append([buildTestMessage(1, 'ev.none.first'), buildTestMessage(2), buildTestMessage(3)], start)
  // A mirror answers reads of its source in turns with it; this one has the first message alone.
  await manage(async ({ streams: all }) => {
    const mirror = { name: `EVENTS_${streams}`, filter_subject: 'ev.none.>' }
    await all.add({ name: 'BEHIND', mirror, mirror_direct: true, storage: 'memory' })
    await waitFor('the mirror', async () => (await all.info('BEHIND')).state.messages === 1)
  })
  const at = async (sequence: number) => fingerprintOf((await log.readAt(sequence)) as LogEntry)
  const queries: LogQuery[] = []
  for (const sequence of [1, 2]) {
    const from = { ...start, sequence }
    queries.push({ from, limit: 9 }, { from, subject: 'ev.*.contract.*', limit: 9 })
    queries.push({ from, fingerprint: await at(sequence), limit: 9 })
  }
  queries.push({ from: new Date(0), subject: 'ev.*.contract.*', limit: 9 })
  const lengths = new Set<number>()
  for (let round = 1; round <= 20; round += 1)
    for (const query of queries) {
      const entries = await log.read(query)
      expect(entries[0]?.sequence, JSON.stringify(query)).toBe(query.from instanceof Date ? 2 : query.from.sequence + 1)
      if (query === queries[0]) lengths.add(entries.length)
    }
  // Both answered: the stream with two messages behind the first, and for its copy the leader with the next one.
  expect([...lengths].toSorted()).toEqual([1, 2])
  const other = fingerprintOf({ id: 'other', storedAt: new Date(0) })
  for (let round = 1; round <= 20; round += 1)
    for (const sequence of [1, 2]) {
      const refused = log.read({ from: { ...start, sequence }, fingerprint: other, limit: 9 })
      await expect(refused).rejects.toMatchObject({ code: 'replaced' })
    }
  await manage(({ streams: all }) => all.delete('BEHIND'))
})

test('a read ends before a message that is lost on its way, and begins with none behind one', async () => {
  if (!program) return
  // This test answers reads in place of the servers, as a route does that breaks within an answer.
  await manage(({ streams: all }) =>
    all.add({
      name: 'TORN',
      subjects: ['ev.>'],
      storage: 'file',
      discard: 'old',
      allow_direct: false,
      allow_atomic: true,
    }),
  )
  const log = await openNatsLog(settingsOf({ stream: 'TORN' }), { name: 'test', isReader: true })
  const link = await connectNats(settingsOf().nats, { name: 'test' })
  try {
    const start = await log.readState()
    const messages = [1, 2, 3, 4, 5].map((n) => buildTestMessage(n))
    await log.append(messages, start)
    const entries = await Promise.all(messages.map((_, index) => log.readAt(index + 1)))
    const { headers } = await import('@nats-io/transport-node')
    let lost: number[] = []
    link.connection.subscribe('$JS.API.DIRECT.GET.TORN', {
      callback: (_error, request) => {
        const { seq = 1 } = request.json<{ seq?: number }>()
        for (const entry of entries) {
          if (!entry || entry.sequence < seq || lost.includes(entry.sequence)) continue
          const head = headers()
          head.set('Event-Id', entry.id)
          head.set('Event-Time', entry.recordedAt.toISOString())
          for (const [name, value] of Object.entries(entry.headers)) head.set(name, value)
          head.set('Nats-Stream', 'TORN')
          head.set('Nats-Subject', entry.subject)
          head.set('Nats-Sequence', String(entry.sequence))
          head.set('Nats-Time-Stamp', entry.storedAt.toISOString())
          head.set('Nats-Num-Pending', '0')
          head.set('Nats-Last-Sequence', String(entry.sequence === seq ? 0 : entry.sequence - 1))
          request.respond(entry.body, { headers: head })
        }
        request.respond('', { headers: headers(204, 'EOB') })
      },
    })
    await link.connection.flush()
    const read = async (from: LogQuery['from'], fingerprint?: string) =>
      (await log.read({ from, fingerprint, limit: 9 })).map(({ sequence }) => sequence)
    expect(await read(start)).toEqual([1, 2, 3, 4, 5])
    lost = [3]
    expect(await read(start)).toEqual([1, 2])
    expect(await read(new Date(0))).toEqual([1, 2])
    expect(await read({ ...start, sequence: 1 }, fingerprintOf(entries[0] as LogEntry))).toEqual([2])
    // The leader says which one is the first.
    lost = [1, 2]
    expect(await read(start)).toEqual([1])
    expect(await read(new Date(0))).toEqual([1])
    expect(await read({ ...start, sequence: 1 }, fingerprintOf(entries[0] as LogEntry))).toEqual([2])
  } finally {
    await link.close()
    await log.close()
    await manage(({ streams: all }) => all.delete('TORN'))
  }
})
