import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { newId } from '../../../test/harness/database/identity-rows.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import { findExplained } from './routing-explanation.store.ts'

const clock = buildManualClock()

let account: AccountId
let other: AccountId
/** Two webhooks of the account, the second one deleted, one of another account and a global one, in the order of their age. */
let hooks: [WebhookId, WebhookId, WebhookId, WebhookId]
let event: string
const database = await openForFile(createTestDatabase())
const ledger = buildLedger(database.db, clock)
await ledger.addEventType('contract.create')
beforeEach(async () => {
  await database.pool.query('delete from webhook')
  ;[account, other] = [await ledger.addAccount(), await ledger.addAccount()]
  const make = async (row: object) => {
    clock.advance(1_000)
    return ledger.addWebhook(row)
  }
  hooks = [
    await make({ account, events: ['contract.create'] }),
    await make({ account, isDeleted: true }),
    await make({ account: other, events: ['contract.create'] }),
    await make({ events: ['contract.create'] }),
  ]
  event = (await ledger.recordMany('contract.create', { account }))[0]!.id
})

const find = (change: Partial<Parameters<typeof findExplained>[1]> = {}) =>
  findExplained(database.db, { event, webhook: null, scope: 'all', limit: 10, ...change })
const idsOf = (found: Awaited<ReturnType<typeof find>>) => found?.webhooks.map(({ id }) => id)

describe('the webhooks of an explanation', () => {
  test('are all of them, deleted ones too, the oldest first, up to a number', async () => {
    const found = await find()
    expect(found?.event).toMatchObject({ id: event, type: 'contract.create', account })
    expect(found?.eventType).toEqual({ accountScope: 'account', isActived: true })
    expect(idsOf(found)).toEqual(hooks)
    expect(found?.webhooks.map(({ link }) => link !== null)).toEqual([true, false, true, true])
    expect(idsOf(await find({ limit: 2 }))).toEqual(hooks.slice(0, 2))
  })

  test('are those of the accounts that the caller reaches alone, each once', async () => {
    expect(idsOf(await find({ scope: [account] }))).toEqual(hooks.slice(0, 2))
    expect(idsOf(await find({ scope: [account, other] }))).toEqual(hooks.slice(0, 3))
    expect(idsOf(await find({ scope: [] }))).toEqual([])
  })

  test('are one where one is asked for, if the caller reaches it', async () => {
    expect(idsOf(await find({ webhook: hooks[1] }))).toEqual([hooks[1]])
    expect(idsOf(await find({ webhook: hooks[0], scope: [account] }))).toEqual([hooks[0]])
    expect(idsOf(await find({ webhook: hooks[2], scope: [account] }))).toEqual([])
    expect(idsOf(await find({ webhook: hooks[3], scope: [account] }))).toEqual([])
  })
})

test('an event that does not exist has no explanation', async () => {
  expect(await find({ event: newId() })).toBeUndefined()
})
