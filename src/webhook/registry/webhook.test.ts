import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows } from '../../../test/harness/database/identity-rows.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, WebhookId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { checkAccountExists } from '../../identity/account/account.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  type ChangeWebhookInput,
  type CreateWebhookInput,
  changeWebhook,
  createWebhook,
  rotateSecret,
  type WebhookDeps,
} from './webhook.ts'

/** The accounts that changes locked beside the one that they name. */
let asked: string[] = []

const { db } = await openForFile(createTestDatabase())
const ledger = buildLedger(db, buildManualClock())
const caller = { userId: await buildIdentityRows(db).user() } as ChangeWebhookInput['caller']
beforeEach(() => {
  asked = []
})

const deps = {
  callbackRules: { allowHttp: false, allowedPrivateTargets: [] },
  keyring: buildKeyring(['a-secret-key-of-at-least-32-bytes-long'], systemRandom),
  random: systemRandom,
  checkAccountExists: (tx: Database, account: string) => {
    asked.push(account)
    return checkAccountExists(tx, account)
  },
} as unknown as Parameters<typeof changeWebhook>[0]

const change = (id: WebhookId, input: Omit<ChangeWebhookInput, 'caller' | 'now'>) =>
  inTransaction(db, (tx) => changeWebhook(deps, tx, id, { ...input, caller, now: ledger.now() }))

describe('a change of a webhook', () => {
  test('says whether anything changed, and whether the account did', async () => {
    const [own, next] = [await ledger.addAccount(), await ledger.addAccount()]
    const id = await ledger.addWebhook({ account: own })
    expect(await change(id, { name: null, account: own })).toMatchObject({ isChanged: false, isMoved: false })
    expect(await change(id, { name: 'new' })).toMatchObject({ isChanged: true, isMoved: false })
    expect(await change(id, { account: next })).toMatchObject({
      ...{ isChanged: true, isMoved: true, before: { account: own }, row: { account: next, name: 'new' } },
    })
    expect(await change(id, { isGlobal: true })).toMatchObject({ isMoved: true, row: { account: null } })
    // The statement that locks the webhook has locked each of these accounts.
    expect(asked).toEqual([])
  })

  test('of one that moves to another account meanwhile locks that account, too', async () => {
    const [own, next] = [await ledger.addAccount(), await ledger.addAccount()]
    const id = await ledger.addWebhook({ account: own })
    const changed = await whileMoved(id, { is_global: false, account: next })
    expect([changed.row.account, asked]).toEqual([next, [next]])
  })

  test('of one that becomes global meanwhile leaves it so', async () => {
    const id = await ledger.addWebhook({ account: await ledger.addAccount() })
    const changed = await whileMoved(id, { is_global: true, account: null })
    expect(changed.row).toMatchObject({ isGlobal: true, account: null, name: 'new' })
  })

  test('of its secret is a 404 for an unknown one', async () => {
    const rotate = (id: string) => inTransaction(db, (tx) => rotateSecret(deps, tx, id, { caller, now: ledger.now() }))
    const id = await ledger.addWebhook()
    expect(await rotate(id)).toMatchObject({ webhook: { id }, secret: expect.stringMatching(/^whsec_/) })
    await expect(rotate(ledger.ids.next<'webhook'>())).rejects.toMatchObject({ status: 404 })
  })

  test('made while the catalogue is empty is a 503', async () => {
    const input: CreateWebhookInput = {
      ...{
        url: 'https://subscriber.example.com/hook',
        mode: 'push' as const,
        name: null,
        description: null,
        isGlobal: true,
      },
      ...{ account: null, resourceIds: null, headers: {}, contacts: [], hasAsymmetricSignature: false },
      ...{ importedSecret: null, maxPerSecond: null, events: [], caller, now: ledger.now() },
    }
    const create = () =>
      inTransaction(db, (tx) => createWebhook({ ...deps, ids: ledger.ids } as WebhookDeps, tx, input))
    await expect(create()).rejects.toMatchObject({ status: 503, code: 'dependency_unavailable' })
    await ledger.addEventType('webhook.test', 'none')
    expect(await create()).toMatchObject({ webhook: { isGlobal: true }, subscribed: 0 })
  })

  /** Gives a webhook another name while another transaction moves it. */
  const whileMoved = (id: WebhookId, scope: { is_global: boolean; account: AccountId | null }) =>
    whileHeld(
      db,
      (tx) => tx.updateTable('webhook').set(scope).where('document_id', '=', id).execute(),
      () => change(id, { name: 'new' }),
    )
})
