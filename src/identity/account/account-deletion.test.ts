import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { buildCommitGate } from '../../../test/harness/database/commit-gate.ts'
import { buildIdentityRows } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { followCall } from '../../../test/harness/run/trail.ts'
import type { AccountId } from '../../base/id.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { deactivateWebhooksOf } from '../../webhook/registry/webhook.ts'
import { deleteAccount as deleteAccountOf } from './account.ts'

const ACCOUNTS = '/api/v3/identity/account'
const WEBHOOKS = '/api/v3/webhook/webhook'

const app = await openForFile(createTestApp())

// biome-ignore lint/suspicious/noExplicitAny: rows of every shape
async function make(path: string, body: object): Promise<any> {
  const answer = await app.admin('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data
}
const makeAccount = async (): Promise<AccountId> => (await make(ACCOUNTS, { name: 'Acme' })).document_id
const makeWebhook = (scope: object) => make(WEBHOOKS, { url: 'https://hooks.example.com/', ...scope })
const readWebhook = async ({ document_id }: { document_id: string }) =>
  (await app.admin('GET', `${WEBHOOKS}/${document_id}`)).body.data
const setActive = ({ document_id }: { document_id: string }, is_actived: boolean) =>
  app.admin('PATCH', `${WEBHOOKS}/${document_id}/active`, { is_actived })
const deleteAccount = (account: AccountId) => app.admin('DELETE', `${ACCOUNTS}/${account}`)

describe('deleting an account', () => {
  test('makes its webhooks, in any state, inactive with the reason account-deleted, and no others', async () => {
    const [account, other] = [await makeAccount(), await makeAccount()]
    const [active, resting, failing] = [
      await makeWebhook({ account }),
      await makeWebhook({ account }),
      await makeWebhook({ account }),
    ]
    const others = [await makeWebhook({ account: other }), await makeWebhook({ is_global: true })]
    await setActive(resting, false)
    await app.database.pool.query(
      `update webhook set is_actived = false, consecutive_failures = 20, disabled_at = now(),
         disabled_reason = 'consecutive-failures' where document_id = $1`,
      [failing.document_id],
    )
    const { answer, events } = await followCall(app, () => deleteAccount(account))
    expect(answer.status).toBe(200)
    expect(events).toMatchObject([{ event: 'account.delete', account, resource_id: account }])
    const disabled_at = new Date(app.clock.now()).toISOString()
    for (const webhook of [active, resting, failing])
      expect(await readWebhook(webhook)).toMatchObject({
        is_actived: false,
        disabled_at,
        disabled_reason: 'account-deleted',
        updated_by: app.adminId,
      })
    for (const webhook of others) expect(await readWebhook(webhook)).toMatchObject({ is_actived: true })
  })

  test('holds waiting dispatches of its webhooks until a webhook has another account and is active', async () => {
    const [account, other] = [await makeAccount(), await makeAccount()]
    const webhook = await makeWebhook({ account })
    const type = (await app.admin('GET', '/api/v3/webhook/event?filters=internal|eq|contract.create')).body.data[0]
    await app.admin('PUT', `${WEBHOOKS}/${webhook.document_id}/events`, { events: [type.document_id] })
    await make('/api/v3/contract/contract', { account, name: 'Lease' })
    await app.app.router.drain()
    await deleteAccount(account)
    await app.settle()
    const readRow = async () =>
      (await app.admin('GET', `/api/v3/webhook/dispatch?filters=webhook|eq|${webhook.document_id}`)).body.data[0]
    expect(await readRow()).toMatchObject({ status: 'pending', attempts: 0 })
    await app.admin('PATCH', `${WEBHOOKS}/${webhook.document_id}`, { account: other })
    expect((await setActive(webhook, true)).status).toBe(200)
    await app.settle()
    expect(await readRow()).toMatchObject({ attempts: 1 })
  })

  test('refuses an activation that waited for it', async () => {
    const account = await makeAccount()
    const webhook = await makeWebhook({ account })
    await setActive(webhook, false)
    await using gate = await buildCommitGate(app.database, ['webhook'])
    const change = { by: app.adminId, now: new Date(app.clock.now()) }
    const [, activated] = await gate.interleave(
      (gated) =>
        inTransaction(gated, (tx) =>
          deleteAccountOf({ deactivateWebhooksOf }, tx, { target: { id: account, scope: 'all' }, ...change }),
        ),
      () => setActive(webhook, true),
    )
    expect(activated).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(await readWebhook(webhook)).toMatchObject({ is_actived: false, disabled_reason: 'account-deleted' })
  })

  test('clears the account in sessions where it is current, and revokes no session', async () => {
    const account = await makeAccount()
    const member = await app.signInMember([account])
    const readSession = async () => (await member.call('GET', '/api/v3/auth/session')).body.data
    expect((await readSession()).account).toMatchObject({ document_id: account })
    await deleteAccount(account)
    expect(await readSession()).toMatchObject({ account: null, accounts: [] })
    const { rows } = await app.database.pool.query('select account, revoked_at from session where "user" = $1', [
      member.userId,
    ])
    expect(rows).toEqual([{ account: null, revoked_at: null }])
  })

  test('ends the keys that are bound to it, and no others', async () => {
    const [account, other] = [await makeAccount(), await makeAccount()]
    const rows = buildIdentityRows(app.database.db)
    const user = await rows.user()
    const bound = [await rows.apiKey(user, { account }), await rows.apiKey(await rows.user(), { account })]
    const others = [await rows.apiKey(user, { account: other }), await rows.apiKey(user)]
    expect((await deleteAccount(account)).status).toBe(200)
    const keys = await app.database.db.selectFrom('api_key').select(['document_id', 'revoked_at']).execute()
    const endOf = ({ id }: { id: string }) => keys.find((key) => key.document_id === id)?.revoked_at
    const now = new Date(app.clock.now())
    expect([...bound, ...others].map(endOf)).toEqual([now, now, null, null])
  })

  test('refuses to activate a webhook of the account until the webhook is global or has another account', async () => {
    const account = await makeAccount()
    const webhook = await makeWebhook({ account })
    await deleteAccount(account)
    const { answer, events } = await followCall(app, () => setActive(webhook, true))
    expect(answer).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect(events).toEqual([])
    expect(await readWebhook(webhook)).toMatchObject({ is_actived: false, disabled_reason: 'account-deleted' })
    await app.admin('PATCH', `${WEBHOOKS}/${webhook.document_id}`, { is_global: true })
    expect((await setActive(webhook, true)).body.data).toMatchObject({ is_actived: true, disabled_reason: null })
  })
})

test('leaving an account clears it in the sessions of that member only', async () => {
  const account = await makeAccount()
  const [leaver, stayer] = [await app.signInMember([account]), await app.signInMember([account])]
  await app.admin('DELETE', `${ACCOUNTS}/${account}/member`, { user: leaver.userId })
  const { rows } = await app.database.pool.query('select "user", account from session where "user" = any($1::uuid[])', [
    [leaver.userId, stayer.userId],
  ])
  expect(new Map(rows.map((row) => [row.user, row.account]))).toEqual(
    new Map([
      [leaver.userId, null],
      [stayer.userId, account],
    ]),
  )
})
