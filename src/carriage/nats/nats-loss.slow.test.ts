import { cp, rm } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { buildIntakeUnderTest } from '../../../test/harness/carriage/intake-under-test.ts'
import { buildTestMessage } from '../../../test/harness/carriage/log-conformance.ts'
import { buildRelayUnderTest } from '../../../test/harness/carriage/relay-under-test.ts'
import { findNatsServer } from '../../../test/harness/nats/nats-program.ts'
import { type NatsNode, startNatsServers } from '../../../test/harness/nats/nats-servers.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import { type EventLog, type LogEntry, LogError, type LogMessage } from '../log/log.ts'
import { openNatsLog } from './nats-log.ts'
import { parseNatsUrl } from './nats-url.ts'

const program = await findNatsServer('a log that was restored from an older copy is tested in memory alone')

const openLog = (url: string, name: string) =>
  openNatsLog(
    {
      nats: { ...parseNatsUrl(url), tls: {} },
      ...{ stream: 'EVENTS', replicas: undefined, maxAgeMs: 7 * 86_400_000, maxBytes: undefined },
    },
    { name },
  )

/** Runs something while the server is down, and waits until every log is connected again. */
async function whileDown(node: NatsNode, logs: readonly EventLog[], run: () => Promise<unknown>): Promise<void> {
  const before = logs.map((log) => log.countReconnects())
  await node.kill()
  await run()
  await node.start()
  const isBack = (log: EventLog, index: number) => log.countReconnects() > (before[index] ?? 0)
  await waitFor('new connections', () => logs.every(isBack))
  await waitFor('the stream', () => answers(logs[0] as EventLog))
}

const answers = (log: EventLog) =>
  log.readState().then(
    () => true,
    (error) => !(error instanceof LogError) && Promise.reject(error),
  )

test('a stream restored from an older copy, which others have appended to, gets back what it lost, and is read again', async () => {
  if (!program) return
  await using servers = await startNatsServers({ program })
  const [node] = servers.nodes as [NatsNode]
  await using relayed = await buildRelayUnderTest()
  await using taking = await buildIntakeUnderTest()
  const logs = await Promise.all(['relay', 'other relay', 'intake'].map((name) => openLog(servers.url, name)))
  const [own, other, read] = logs as [EventLog, EventLog, EventLog]
  const relay = relayed.build('relay-1', own)
  const intake = taking.build('intake-1', read)
  await taking.pool.query('update log_intake set read_since = $1', [new Date(0)])
  const append = async (messages: readonly LogMessage[]) => other.append(messages, await other.readState())
  const foreign = (count: number) => Array.from({ length: count }, () => taking.message())

  const first = await relayed.record(3)
  await relayed.settle(relay)
  const kept = foreign(2)
  await append(kept)
  await taking.settle(intake)
  const copy = `${node.folder}-copy`
  await whileDown(node, logs, () => cp(node.folder, copy, { recursive: true }))

  await relayed.settle(relay)
  const second = await relayed.record(4)
  await relayed.settle(relay)
  const lost = foreign(2)
  await append(lost)
  await taking.settle(intake)
  expect(await own.readState()).toMatchObject({ sequence: 11 })
  expect(relayed.told.losses).toEqual([])
  expect(taking.told.faults).toEqual([])

  await whileDown(node, logs, async () => {
    await rm(node.folder, { recursive: true })
    await cp(copy, node.folder, { recursive: true })
  })
  expect(await other.readState()).toMatchObject({ sequence: 5 })
  const later = foreign(6)
  await append([...later, buildTestMessage(1), buildTestMessage(2)])
  // Both find a log that is longer than what they know.
  expect(await own.readState()).toMatchObject({ sequence: 13 })
  await relayed.settle(relay)
  await taking.settle(intake)
  expect(relayed.told.losses).toEqual(['behind'])
  expect(taking.told.faults).toEqual(['replaced'])
  const entries: LogEntry[] = await own.read({ from: { ...(await own.readState()), sequence: 0 }, limit: 1_000 })
  const stored = entries.map(({ id }) => id)
  expect(stored).toEqual(expect.arrayContaining([...first, ...second]))
  const taken = [...kept, ...lost, ...later].map(({ id }) => id)
  expect((await taking.events()).toSorted()).toEqual(taken.toSorted())
  await Promise.all(logs.map((log) => log.close()))
})
