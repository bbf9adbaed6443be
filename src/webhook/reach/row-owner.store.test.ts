import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { newId } from '../../../test/harness/database/identity-rows.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import { findDispatchOwner, findSubscriptionOwner, findWebhookOwner } from './row-owner.store.ts'

/** Webhooks of two accounts, and a global one. */
let accounts: AccountId[]
let hooks: WebhookId[]
const database = await openForFile(createTestDatabase())
const ledger = buildLedger(database.db, buildManualClock())
await ledger.addEventType('contract.create')
beforeEach(async () => {
  accounts = [await ledger.addAccount(), await ledger.addAccount()]
  const events = ['contract.create']
  hooks = [
    await ledger.addWebhook({ account: accounts[0]!, events }),
    await ledger.addWebhook({ account: accounts[1]!, events, isDeleted: true }),
    await ledger.addWebhook({ events }),
  ]
})

const owners = () => [{ account: accounts[0] }, { account: accounts[1] }, { account: null }]
const all = (find: typeof findWebhookOwner, ids: readonly string[]) =>
  Promise.all(ids.map((id) => find(database.db, id)))

test('a webhook, deleted or not, its subscriptions and its ledger rows are of its account', async () => {
  expect(await all(findWebhookOwner, hooks)).toEqual(owners())
  const links = await Promise.all(
    hooks.map((hook) =>
      database.db
        .selectFrom('webhook_event')
        .select('document_id')
        .where('webhook', '=', hook)
        .executeTakeFirstOrThrow(),
    ),
  )
  expect(
    await all(
      findSubscriptionOwner,
      links.map((link) => link.document_id),
    ),
  ).toEqual(owners())
  const rows = await Promise.all(hooks.map((hook) => ledger.addDispatches(hook)))
  expect(await all(findDispatchOwner, rows.flat())).toEqual(owners())
})

test('what does not exist has no owner', async () => {
  for (const find of [findWebhookOwner, findSubscriptionOwner, findDispatchOwner])
    expect(await find(database.db, newId())).toBeUndefined()
})
