import { cp, rm } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { buildTestMessage } from '../../../test/harness/carriage/log-conformance.ts'
import { addAccount } from '../../../test/harness/carriage/moved-account.ts'
import { addGlobalWebhook, openMovedLog } from '../../../test/harness/carriage/moved-log.ts'
import { findNatsServer } from '../../../test/harness/nats/nats-program.ts'
import { type NatsNode, startNatsServers } from '../../../test/harness/nats/nats-servers.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import type { EventLog } from '../log/log.ts'
import { openNatsLog } from '../nats/nats-log.ts'
import { parseNatsUrl } from '../nats/nats-url.ts'
import { beginMove } from './move.store.ts'
import type { MoveEffect } from './move-plan.ts'

const program = await findNatsServer('a move while a stream is restored is tested in memory alone')

const openLog = (url: string) =>
  openNatsLog(
    {
      nats: { ...parseNatsUrl(url), tls: {} },
      ...{ stream: 'EVENTS', replicas: undefined, maxAgeMs: 7 * 86_400_000, maxBytes: undefined },
    },
    { name: 'test' },
  )

async function readIds(log: EventLog): Promise<string[]> {
  const state = await log.readState()
  return (await log.read({ from: { ...state, sequence: 0 }, limit: 1_000 })).map(({ id }) => id)
}

test('an account that moves while its stream is restored from an older copy loses no event', async () => {
  if (!program) return
  await using servers = await startNatsServers({ program })
  const [node] = servers.nodes as [NatsNode]
  const opened: EventLog[] = []
  const open = async () => {
    const log = await openLog(servers.url)
    opened.push(log)
    return log
  }
  await using under = await openMovedLog(open, buildManualClock(Date.now()))
  const { ground } = under
  const account = await addAccount(ground)
  await addGlobalWebhook(ground, 'order.create')
  const move = (target: string) => beginMove(ground.at(null).db, { account, target, drainSeconds: 600 })
  await move('c1')
  expect(await under.run(account)).toMatchObject({ kind: 'moved' })
  const ids = [await under.record('c1', account)]
  await under.settle()
  const copy = `${node.folder}-copy`
  await node.kill()
  await cp(node.folder, copy, { recursive: true })
  await node.start()

  const back = async () => {
    const log = await open()
    await waitFor('the stream', () => log.readState().then(Boolean, () => false))
    return log
  }
  const check = await back()
  for (let n = 0; n < 3; n += 1) ids.push(await under.record('c1', account), await under.record(null, account))
  await waitFor('the events in the log', async () => {
    await under.round()
    return (await readIds(check)).length >= ids.length
  })
  await move('c2')
  const beforeEffect = async ({ kind }: MoveEffect) => {
    if (kind !== 'copy') return
    await node.kill()
    await rm(node.folder, { recursive: true })
    await cp(copy, node.folder, { recursive: true })
    await node.start()
    const log = await back()
    const foreign = Array.from({ length: 9 }, (_, n) => buildTestMessage(n))
    await log.append(foreign, await log.readState())
  }
  expect(await under.run(account, { beforeEffect })).toMatchObject({ kind: 'moved' })
  const log = await back()
  await waitFor(
    'every event',
    async () => {
      await under.settle()
      const stored = new Set(await readIds(log))
      return ids.every((id) => stored.has(id))
    },
    { limitMs: 120_000 },
  )
  expect(under.told.losses).toContain('c2 behind')
  const there = new Set(await under.events('c2', account))
  expect(ids.filter((id) => !there.has(id))).toEqual([])
  await Promise.all(opened.map((one) => one.close()))
}, 300_000)
