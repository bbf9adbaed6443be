import { beforeEach, describe, expect, test } from 'vitest'
import type { ContractWebhook } from '../../../test/contract/contract-fixture.ts'
import { openWebhookMails, subjectsOf, type WebhookMails } from '../../../test/harness/delivery/webhook-mails.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { READERS_LIMIT } from './notice-mails.ts'
import { COLLECT_S, PACE_S } from './notice-worker.ts'

const HOOKS = '/api/v3/webhook/webhook'
const USERS = '/api/v3/identity/user'
const ROLES = '/api/v3/identity/role'

let account: string
let boss: Awaited<ReturnType<WebhookMails['signInWithRoles']>>
let own: ContractWebhook
let hook: ContractWebhook
let roles = 0

const mails = await openForFile(openWebhookMails())
const { fixture } = mails
beforeEach(async () => {
  ;({ account, boss, hook: own } = await mails.begin())
  await mails.sql('delete from user_role where "user" <> $1', [fixture.app.adminId])
  await mails.sql('update "user" set email_verified_at = null where document_id = $1', [fixture.app.adminId])
  hook = await fixture.createWebhook({ is_global: true }, ['contract.create'])
})

async function makeRole(permissions: readonly string[], isAccountScoped = false): Promise<string> {
  roles += 1
  const body = { name: `role ${roles}`, permissions, is_account_scoped: isAccountScoped }
  const answer = await fixture.app.admin('POST', ROLES, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data.document_id
}

/** An operator with these permissions for all accounts. */
async function signInOperator(permissions: readonly string[]) {
  const user = await fixture.app.signInMember()
  const role = await makeRole(permissions)
  expect((await fixture.app.admin('PATCH', `${USERS}/${user.userId}`, { roles: [role] })).status).toBe(200)
  return { ...user, role, email: await mails.emailOf(user.userId) }
}

const deliver = (status: number, count?: number, hooks: readonly ContractWebhook[] = [hook]) =>
  mails.deliver({ account, hooks, status, ...(count !== undefined && { count }) })
const recipients = (sent: readonly { to: string }[]) => sent.map(({ to }) => to).sort()

describe('a mail about a global webhook', () => {
  test('goes to operators whose roles change webhooks of all accounts, whatever the pattern, and to nobody else', async () => {
    const operators = []
    for (const permission of ['webhook:update', 'webhook:*', '*:*']) operators.push(await signInOperator([permission]))
    await signInOperator(['webhook:find-one', 'webhook:create'])
    const scoped = await fixture.app.signInMember()
    const role = await makeRole(['webhook:update'], true)
    await fixture.app.admin('PATCH', `${USERS}/${scoped.userId}`, { roles: [role] })
    await deliver(410, 14)
    const sent = await mails.collect()
    expect(recipients(sent)).toEqual(operators.map(({ email }) => email).sort())
    expect(new Set(subjectsOf(sent))).toEqual(new Set(['The webhook X is failing']))
    expect(sent[0].text).toContain('to the global webhook "127. 0. 0. 1: ')
    expect(sent[0].text).toContain('because a role lets you change all global webhooks')
    expect(recipients(sent)).not.toContain(await mails.emailOf(boss.userId))
  })

  test('is one an incident, and tells of the recovery and the disabling', async () => {
    await signInOperator(['webhook:update'])
    await deliver(410, 14)
    expect(subjectsOf(await mails.collect())).toEqual(['The webhook X is failing'])
    await deliver(410, 14)
    mails.advance(PACE_S)
    expect(await mails.take()).toEqual([])
    await deliver(200)
    mails.advance(PACE_S)
    expect(subjectsOf(await mails.take())).toEqual(['The webhook X has recovered'])
    await deliver(410, 19)
    mails.advance(PACE_S)
    const [disabled, ...others] = await mails.take()
    expect(others).toEqual([])
    expect(disabled.text).toMatch(/The global webhook ".*" was disabled after 20/)
  })

  test('is one to a user who holds two such roles, and names several webhooks without an account', async () => {
    const operator = await signInOperator(['webhook:update'])
    const both = [operator.role, await makeRole(['webhook:*'])]
    await fixture.app.admin('PATCH', `${USERS}/${operator.userId}`, { roles: both })
    const second = await fixture.createWebhook({ is_global: true }, ['contract.create'])
    await deliver(410, 14, [hook, second])
    const [mail, ...others] = await mails.collect()
    expect(others).toEqual([])
    expect(mail.subject).toContain('2 global webhooks are failing')
    expect(mail.text).toMatch(/\/console\/webhooks\n/)
  })

  test('tells nobody of an account of it, nor operators of the webhooks of accounts', async () => {
    const operator = await signInOperator(['webhook:update'])
    await deliver(410, 14, [hook, own])
    const sent = await mails.collect()
    expect(recipients(sent)).toEqual([operator.email, await mails.emailOf(boss.userId)].sort())
    const textTo = (email: string) => sent.find(({ to }) => to === email)?.text
    expect(textTo(operator.email)).not.toContain('Acme')
    expect(textTo(await mails.emailOf(boss.userId))).not.toContain('global')
  })

  test('is stopped by its user: of one webhook, of all, and by the link in it', async () => {
    const [one, all, link, other] = await Promise.all([1, 2, 3, 4].map(() => signInOperator(['webhook:update'])))
    const setting = '/api/v3/webhook/mail-setting'
    expect((await one!.call('PATCH', setting, { stopped_webhooks: [hook.id] })).status).toBe(200)
    expect((await all!.call('PATCH', setting, { is_stopped: true })).status).toBe(200)
    await deliver(410, 14)
    const sent = await mails.collect()
    expect(recipients(sent)).toEqual([link!.email, other!.email].sort())
    const url = sent.find(({ to }) => to === link!.email)?.text.match(/\/auth\/webhook-mail\?token=\S+/)?.[0]
    const stopped = await fixture.app.app.server.inject({
      ...{ method: 'POST', url, payload: 'List-Unsubscribe=One-Click' },
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    expect(stopped.statusCode).toBe(200)
    await deliver(410, 19)
    mails.advance(PACE_S)
    expect(recipients(await mails.take())).toEqual([other!.email])
  })

  test('reaches nobody who lost the role, or whose role lost the permission, was narrowed or deleted, written or not', async () => {
    type Operator = Awaited<ReturnType<typeof signInOperator>>
    const ends: readonly ((operator: Operator) => Promise<{ status: number }>)[] = [
      ({ userId }) => fixture.app.admin('PATCH', `${USERS}/${userId}`, { roles: [] }),
      ({ role }) => fixture.app.admin('PATCH', `${ROLES}/${role}`, { permissions: ['webhook:find-one'] }),
      ({ role }) => fixture.app.admin('PATCH', `${ROLES}/${role}`, { is_account_scoped: true }),
      ({ role }) => fixture.app.admin('DELETE', `${ROLES}/${role}`),
      ({ userId }) => fixture.app.admin('POST', `${USERS}/${userId}/disable`),
      ({ userId }) => fixture.app.admin('DELETE', `${USERS}/${userId}`),
      ({ userId }) => fixture.app.admin('PATCH', `${USERS}/${userId}`, { email: `${userId}@elsewhere.example` }),
    ]
    for (const end of ends)
      for (const isWritten of [false, true]) {
        await mails.sql('delete from webhook_mail_notice')
        await mails.sql('delete from webhook_mail_turn')
        await mails.sql('delete from user_role where "user" <> $1', [fixture.app.adminId])
        const [operator, stays] = [await signInOperator(['webhook:update']), await signInOperator(['webhook:*'])]
        await deliver(410, 14)
        mails.advance(COLLECT_S)
        if (isWritten) expect(await fixture.app.app.noticeWorker.drain()).toBe(2)
        expect(await end(operator), `${end}`).toMatchObject({ status: 200 })
        expect(recipients(await mails.take()), `${end} ${isWritten}`).toEqual([stays.email])
      }
  })

  test('is not sent once the webhook is of an account or deleted', async () => {
    await signInOperator(['webhook:update'])
    for (const body of [{ is_global: false, account }, undefined]) {
      const path = `${HOOKS}/${hook.id}`
      await deliver(410, 14)
      mails.advance(PACE_S)
      expect(await fixture.app.app.noticeWorker.drain()).toBe(1)
      const answer = body ? await fixture.app.admin('PATCH', path, body) : await fixture.app.admin('DELETE', path)
      expect(answer.status).toBe(200)
      expect(await mails.take()).toEqual([])
      hook = await fixture.createWebhook({ is_global: true }, ['contract.create'])
    }
  })

  test('is limited to the first hundred operators', async () => {
    const first = await signInOperator(['webhook:update'])
    await mails.sql(
      `with u as (insert into "user" (document_id, email, email_verified_at, created_at, updated_at)
         select gen_random_uuid(), 'operator-' || n || '@example.com', now(), now(), now() from generate_series(1, 150) n
         returning *)
       insert into user_role ("user", role, created_at) select document_id, $1, '2100-01-01' from u`,
      [first.role],
    )
    await deliver(410, 14)
    mails.advance(COLLECT_S)
    expect(await fixture.app.app.noticeWorker.drain()).toBe(READERS_LIMIT)
    const [kept] = await mails.sql('select count(*)::int n from mail_outbox where recipient = $1', [first.email])
    expect(kept).toEqual({ n: 1 })
  })
})
