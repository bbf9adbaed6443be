import { randomUUID } from 'node:crypto'
import { decideIntake } from '../../src/carriage/intake/intake-decision.ts'
import { buildCarriedSeal } from '../../src/carriage/log/carried-event.ts'
import { buildEventMessage } from '../../src/carriage/log/event-message.ts'
import { openNatsLog } from '../../src/carriage/nats/nats-log.ts'
import { parseNatsUrl } from '../../src/carriage/nats/nats-url.ts'
import { startNatsServers } from '../../test/harness/nats/nats-servers.ts'
import { sumFamily } from '../process-times.ts'

const HOME = '0190a5c0-0000-7000-8000-0000000000f0'
const ACCOUNT = '0190a5c0-0000-7000-8000-00000000000a'

/** As an intake reads, and as a relay appends. */
const READ = 500
const APPEND = 250

/** Cost of a message for an intake that it does not concern, in ms of CPU. */
export interface ReadingCost {
  intake: number
  nats: number
}

/** Fills a log of its own with so many events of one cell, and lets the intake of another one pass over them. */
export async function measureReading(program: string, count: number): Promise<ReadingCost> {
  await using nats = await startNatsServers({ program, size: 3 })
  const log = await openNatsLog(
    {
      nats: { ...parseNatsUrl(nats.url), tls: {} },
      ...{ stream: 'bench-reading', replicas: undefined, maxAgeMs: 86_400_000, maxBytes: undefined },
    },
    { name: 'bench' },
  )
  const { seal, open } = buildCarriedSeal([Buffer.alloc(32, 7)])
  const body = JSON.stringify({ id: randomUUID(), event: 'invoice.create', account: ACCOUNT, filling: 'x'.repeat(240) })
  try {
    let at = await log.readState()
    for (let sent = 0; sent < count; sent += APPEND) {
      const messages = Array.from({ length: APPEND }, () =>
        buildEventMessage(
          {
            ...{ id: randomUUID() as never, type: 'invoice.create', account: ACCOUNT as never, resource: 'invoice' },
            ...{ action: 'create', resourceId: 'r', url: null, trace: null, isPurge: false, excludedWebhook: null },
            ...{ createdAt: new Date(), carried: { home: HOME, origin: 'c1', reference: null } },
          },
          () => body,
          seal,
        ),
      )
      at = { ...at, ...(await log.append(messages, at)) }
    }
    const given = { home: HOME, self: 'c2', open, isPassedOver: () => false, oldest: new Date(0) }
    const readAll = async () => {
      let from = { incarnation: at.incarnation, sequence: 0 }
      while (from.sequence < at.sequence) {
        const entries = await log.read({ from, limit: READ })
        const decision = decideIntake(entries, given)
        if (decision.events.length + decision.foreign > 0) throw new Error('the events concern another database')
        from = { ...from, sequence: entries.at(-1)?.sequence ?? at.sequence }
      }
    }
    await readAll()
    const readNats = async () => {
      let total = 0
      for (const node of nats.nodes) total += (await sumFamily(node.pid() ?? 0)) ?? 0
      return total
    }
    const [before, natsBefore] = [process.cpuUsage(), await readNats()]
    await readAll()
    const { user, system } = process.cpuUsage(before)
    return { intake: (user + system) / 1_000 / at.sequence, nats: ((await readNats()) - natsBefore) / at.sequence }
  } finally {
    await log.close()
  }
}
