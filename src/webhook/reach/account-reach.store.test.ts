import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import type { OwnAccount } from '../../http/listing/page.ts'
import { isOwnedBy, keepOwnJobs, listHiddenTypes, type OwnedKind } from './account-reach.store.ts'

/** What an account reaches, judged by the statements alone: each row beside that of another account. */

const VISIBLE = 'order.visible'
const HIDDEN = 'order.hidden'

const run = async (text: string, ...values: unknown[]) => (await database.pool.query(text, values)).rows

const database = await openForFile(createTestDatabase())
const ledger = buildLedger(database.db, buildManualClock())
const [mine, other] = [await ledger.addAccount(), await ledger.addAccount()]
for (const name of [VISIBLE, HIDDEN]) await ledger.addEventType(name)
await run(`update event set is_tenant_visible = internal = '${VISIBLE}' where internal like 'order.%'`)

/** A webhook with a row of its ledger, a subscription and a bulk replay of it. */
async function make(account: AccountId | null, dispatchAccount = account): Promise<Record<OwnedKind, string>> {
  const webhook = await ledger.addWebhook({ account, events: [VISIBLE] })
  const [dispatch] = await ledger.addDispatches(webhook)
  await run('update webhook_dispatch_open set account = $2 where document_id = $1', dispatch, dispatchAccount)
  const [link] = await run('select document_id from webhook_event where webhook = $1', webhook)
  const job = randomUUID()
  await run(
    `insert into replay_job (document_id, status, total, created_at, updated_at, filters, confirm_duplicate, accounts)
     values ($1, 'running', 0, now(), now(), '{}', false, $2)`,
    ...[job, account === null ? null : [account]],
  )
  return { webhook, 'webhook, deleted or not': webhook, dispatch: dispatch!, subscription: link.document_id, job }
}

const reaches = async (row: Record<OwnedKind, string>, accounts: AccountId[] | null) => {
  const found: Record<string, boolean> = {}
  for (const [kind, id] of Object.entries(row))
    found[kind] = await isOwnedBy(database.db, kind as OwnedKind, { id, accounts })
  return found
}
const all = (isReached: boolean, but: Partial<Record<OwnedKind, boolean>> = {}) => ({
  ...{ webhook: isReached, 'webhook, deleted or not': isReached, dispatch: isReached },
  ...{ subscription: isReached, job: isReached, ...but },
})

describe('a row', () => {
  test('is reached by its account, by several that hold it, and without a limit, and by no other', async () => {
    const [row] = [await make(mine), await make(other)]
    expect(await reaches(row, [mine])).toEqual(all(true))
    expect(await reaches(row, [other, mine])).toEqual(all(true))
    expect(await reaches(row, null)).toEqual(all(true))
    for (const accounts of [[other], []]) expect(await reaches(row, accounts)).toEqual(all(false))
    const nothing = Object.fromEntries(Object.keys(row).map((kind) => [kind, randomUUID()]))
    expect(await reaches(nothing as typeof row, null)).toEqual(all(false))
  })

  test('of a global webhook is reached by no account', async () => {
    const row = await make(null)
    expect(await reaches(row, [mine])).toEqual(all(false))
    expect(await reaches(row, null)).toEqual(all(true))
    // Not even by one that its column still names.
    await run('update webhook set account = $2 where document_id = $1', row.webhook, mine)
    await run('update webhook_dispatch_open set account = $2 where document_id = $1', row.dispatch, mine)
    expect(await reaches(row, [mine])).toEqual(all(false))
  })

  test('of a deleted webhook or subscription is reached where its history is', async () => {
    const row = await make(mine)
    await run('update webhook_event set deleted_at = now() where document_id = $1', row.subscription)
    expect(await reaches(row, [mine])).toEqual(all(true, { subscription: false }))
    const gone = await make(mine)
    await run('update webhook set deleted_at = now() where document_id = $1', gone.webhook)
    const but = { webhook: false, subscription: false }
    for (const accounts of [[mine], null]) expect(await reaches(gone, accounts)).toEqual(all(true, but))
  })

  test('of the ledger is of the account of its event and of that of its webhook', async () => {
    const moved = await make(mine, other)
    expect(await reaches(moved, [mine])).toEqual(all(true, { dispatch: false }))
    expect(await reaches(moved, [other])).toEqual(all(false))
    expect(await reaches(moved, [mine, other])).toEqual(all(true))
    const foreign = await make(other, mine)
    expect(await reaches(foreign, [mine])).toEqual(all(false))
    expect(await reaches(foreign, [other])).toEqual(all(true, { dispatch: false }))
  })

  test('of a bulk replay is reached by who holds all of its accounts', async () => {
    const { job } = await make(mine)
    const reach = (accounts: AccountId[] | null) => isOwnedBy(database.db, 'job', { id: job, accounts })
    await run('update replay_job set accounts = $2 where document_id = $1', job, [mine, other])
    expect([await reach([mine]), await reach([mine, other]), await reach(null)]).toEqual([false, true, true])
    await run(`update replay_job set accounts = '{}' where document_id = $1`, job)
    expect([await reach([mine]), await reach([]), await reach(null)]).toEqual([false, false, true])
  })
})

test('a list of bulk replays has those of the account, or all where the caller reaches all', async () => {
  const first = await ledger.addAccount()
  const [own, foreign] = [await make(first), await make(other)]
  const both = await make(first)
  await run('update replay_job set accounts = $2 where document_id = $1', both.job, [first, other])
  const jobs = [own, foreign, both].map(({ job }) => job)
  const list = async (account: AccountId | undefined, reach: 'all' | AccountId[], scope = reach) => {
    const query = database.db.selectFrom('replay_job').select('document_id').where('document_id', 'in', jobs)
    const found = await keepOwnJobs(query, account as OwnAccount | undefined, { scope, reach }).execute()
    return jobs.filter((job) => found.some(({ document_id }) => document_id === job))
  }
  expect(await list(first, [first])).toEqual([own.job])
  expect(await list(first, [first, other])).toEqual([own.job, both.job])
  expect(await list(first, [first, other], [other])).toEqual([both.job])
  expect(await list(first, 'all')).toEqual(jobs)
  expect(await list(undefined, [first])).toEqual(jobs)
})

test('a hidden event type is one that accounts do not see and the webhook has no subscription to', async () => {
  const [webhook, beside] = [await ledger.addWebhook({ account: mine }), await ledger.addWebhook({ events: [HIDDEN] })]
  const types = await run('select internal, document_id from event where internal = any($1)', [VISIBLE, HIDDEN])
  const idOf = Object.fromEntries(types.map((row) => [row.internal, row.document_id as string]))
  const list = async (of: WebhookId | null = webhook) => ({
    byId: [...(await listHiddenTypes(database.db, { ids: Object.values(idOf), names: [], webhook: of }))],
    byName: [
      ...(await listHiddenTypes(database.db, { ids: [], names: [VISIBLE, HIDDEN, 'none'], webhook: of })),
    ].sort(),
  })
  const hidden = { byId: [idOf[HIDDEN]], byName: ['none', HIDDEN].sort() }
  expect([await list(), await list(null)]).toEqual([hidden, hidden])
  await ledger.subscribe(webhook, HIDDEN)
  expect(await list()).toEqual({ byId: [], byName: ['none'] })
  await run('update webhook_event set deleted_at = now() where webhook = $1', webhook)
  expect(await list()).toEqual(hidden)
  expect(await list(beside)).toEqual({ byId: [], byName: ['none'] })
  await run(`update event set account_scope = 'none' where internal = $1`, VISIBLE)
  expect((await list()).byName).toEqual(['none', HIDDEN, VISIBLE].sort())
})
