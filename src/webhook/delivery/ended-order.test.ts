import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { openWatched } from '../../../test/harness/plan/explain.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { WebhookId } from '../../base/id.ts'
import { INDEX_ONLY_PLANS } from '../../postgres/statement/database.ts'
import type { EndedAttempt } from './outcome.ts'
import { LAST_DELIVERIES } from './recorded-end.store.ts'
import { settleAttempts } from './settle.ts'

const clock = buildManualClock()
const at = (ms: number) => new Date(clock.now() + ms)

const database = await openForFile(createTestDatabase())
const ledger = buildLedger(database.db, clock)

/** A delivery whose POST ended at `endedAt`, in ms. */
interface End {
  endedAt: number
  isSuccess: boolean
}

const fail = (endedAt: number): End => ({ endedAt, isSuccess: false })
const succeed = (endedAt: number): End => ({ endedAt, isSuccess: true })

/** Deliveries of a new webhook that ended, in the order of `ends`. */
async function addEnds(ends: readonly End[]): Promise<{ webhook: WebhookId; ended: EndedAttempt[] }> {
  const webhook = await ledger.addWebhook()
  const ids = await ledger.addDispatches(webhook, {
    count: ends.length,
    status: 'retrying',
    leaseUntil: at(30_000),
    attempts: 5,
  })
  await database.pool.query(
    `update webhook_dispatch_open d set created_at = d.created_at + x.n * interval '1 ms'
     from unnest($1::uuid[]) with ordinality x (id, n) where d.document_id = x.id`,
    [ids],
  )
  const ended = ends.map(
    ({ endedAt, isSuccess }, index): EndedAttempt => ({
      id: ids[index]!,
      fence: 1,
      attempt: 5,
      trigger: 'schedule',
      isTest: false,
      webhook,
      event: 'contract.create',
      workerId: 'worker-lost',
      traceId: null,
      startedAt: at(endedAt - 1),
      endedAt: at(endedAt),
      durationMs: 1,
      result: { statusCode: isSuccess ? 200 : 500 },
      responseExcerpt: null,
      responseHeaders: null,
      timings: null,
    }),
  )
  return { webhook, ended }
}

const record = (attempts: readonly EndedAttempt[], db = database.db) => settleAttempts(ledger.deps, db, attempts)
const readCount = async (webhook: WebhookId) => (await ledger.readWebhook(webhook))?.consecutive_failures

/** Failures behind the last success, in the order in which the POSTs ended. */
function countInOrder(ends: readonly End[]): number {
  const inOrder = [...ends].sort((a, b) => a.endedAt - b.endedAt)
  return inOrder.length - 1 - inOrder.findLastIndex(({ isSuccess }) => isSuccess)
}

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index)

describe('the failure count of deliveries that ended in one order and are recorded in another', () => {
  test('is 21 when a success that ended before 21 failures is recorded behind the eighth of them', async () => {
    const { webhook, ended } = await addEnds([succeed(0), ...range(1, 21).map(fail)])
    const [success, ...failures] = ended as [EndedAttempt, ...EndedAttempt[]]
    for (const ended of [...failures.slice(0, 8), success, ...failures.slice(8)]) await record([ended])
    expect(await readCount(webhook)).toBe(21)
    expect(await ledger.readWebhook(webhook)).toMatchObject({ is_actived: false })
  })

  test('stays 0 when 20 failures are held back by a lock, and a success that ended after them is recorded', async () => {
    const { webhook, ended } = await addEnds([...range(1, 20).map(fail), succeed(21)])
    const [failures, success] = [ended.slice(0, 20), ended.slice(20)]
    const client = await database.pool.connect()
    try {
      await client.query('begin')
      await client.query('select from webhook where document_id = $1 for update', [webhook])
      expect((await record(failures)).heldBack).toHaveLength(20)
      expect((await record(success)).recorded).toMatchObject([{ isRecorded: true }])
      await client.query('commit')
    } finally {
      client.release()
    }
    expect(await record(failures)).toMatchObject({ heldBack: [], notices: [] })
    expect(await ledger.readWebhook(webhook)).toMatchObject({ consecutive_failures: 0, is_actived: true })
  })

  test('is that of the order in which they ended, for any deliveries, order and batches', async () => {
    const deliveries = fc.array(fc.boolean(), { minLength: 1, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(deliveries, fc.infiniteStream(fc.nat()), async (results, random) => {
        const ends = results.map((isSuccess, index) => ({ endedAt: index * 7, isSuccess }))
        const { webhook, ended } = await addEnds(ends)
        const rest = [...ended]
        while (rest.length > 0) {
          const size = 1 + ((random.next().value as number) % 4)
          const batch = range(1, Math.min(size, rest.length)).flatMap(() =>
            rest.splice((random.next().value as number) % rest.length, 1),
          )
          await record(batch)
        }
        expect(await readCount(webhook)).toBe(countInOrder(ends))
      }),
      { numRuns: 40 },
    )
  })

  test('finds the success of a failure among the last deliveries of the webhook only', async () => {
    const { webhook, ended } = await addEnds([
      fail(1),
      succeed(1_000),
      ...range(2, LAST_DELIVERIES + 1).map(() => fail(1)),
    ])
    const [late, success, ...newer] = ended as [EndedAttempt, EndedAttempt, ...EndedAttempt[]]
    await record([success])
    await record(newer.slice(0, -1))
    expect(await readCount(webhook)).toBe(0)
    await record(newer.slice(-1))
    await record([late])
    expect(await readCount(webhook)).toBe(1)
  })

  test('reads the last deliveries of the webhook, and no others, as the workers plan it', async () => {
    const { ended } = await addEnds(range(1, 400).map((ms) => (ms % 2 === 0 ? succeed(ms) : fail(ms))))
    await record(ended.slice(0, 398))
    await using watched = openWatched(database, INDEX_ONLY_PLANS)
    const executed = await watched.watch((db) => record(ended.slice(398), db))
    const nodes = executed.filter(({ sql }) => sql.includes('webhook_dispatch_ended')).flatMap((item) => item.nodes)
    const indexes = nodes.flatMap((node) => node['Index Name'] ?? [])
    expect(indexes).toEqual(
      expect.arrayContaining(['webhook_dispatch_ended_webhook_idx', 'webhook_dispatch_ended_failed_idx']),
    )
    const scans = nodes.filter((node) => node['Relation Name'] === 'webhook_dispatch_ended' && 'Index Name' in node)
    const rows = scans.map((node) => (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0))
    expect(rows.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(LAST_DELIVERIES + 2)
  })
})
