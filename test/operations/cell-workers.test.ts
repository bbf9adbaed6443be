import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CellsService, openCellsService } from '../harness/carriage/cells-service.ts'
import { type Receiver, startReceiver } from '../harness/fakes/receiver.ts'
import { waitFor } from '../harness/run/wait.ts'

let ground: CellsService
let alerts: Receiver

beforeAll(async () => {
  ground = await openCellsService()
  alerts = await startReceiver()
  await ground.start({ ALERT_WEBHOOK_URL: `${alerts.origin}/alerts` })
}, 180_000)
afterAll(async () => {
  await ground?.[Symbol.asyncDispose]()
  await alerts?.close()
})

/** Writes a disabled webhook of an account in a cell, as the settling of its last attempt leaves it. */
async function addDisabled(cell: 'c1' | 'c2'): Promise<{ account: string; webhook: string }> {
  const account = await ground.addAccount(`In ${cell}`, cell)
  const webhook = randomUUID()
  const { pool } = ground.at(cell)
  await pool.query(
    `insert into webhook (document_id, url, account, secret_encrypted, is_actived, disabled_reason, created_at, updated_at)
     values ($1, 'https://a.example/', $2, '', false, 'consecutive-failures', now(), now())`,
    [webhook, account],
  )
  await pool.query(
    `insert into webhook_mail_notice (webhook, kind, account, dispatch, last_error, created_at)
     values ($1, 'disabled', $2, gen_random_uuid(), 'timeout', now() - interval '2 min')`,
    [webhook, account],
  )
  await pool.query(
    `insert into alert_incident (document_id, incident, subject, summary, since, due_at)
     values (gen_random_uuid(), 'webhook-disabled', $1, 'It was disabled.', now(), now())`,
    [webhook],
  )
  return { account, webhook }
}

test('a process writes the mails and posts the incidents of every cell', async () => {
  const home = ground.at(null).pool
  const found = await Promise.all((['c1', 'c2'] as const).map(addDisabled))
  for (const { account } of found) {
    const [user, member] = [randomUUID(), randomUUID()]
    await home.query(
      `insert into "user" (document_id, email, email_verified_at, created_at, updated_at) values ($1, $2, now(), now(), now())`,
      [user, `${account}@b.test`],
    )
    await home.query(
      'insert into account_member (document_id, account, "user", created_at, updated_at) values ($1, $2, $3, now(), now())',
      [member, account, user],
    )
    await home.query(
      `insert into account_member_role (member, role, created_at)
       select $1, document_id, now() from role where name = 'account-admin'`,
      [member],
    )
  }
  // Sent: the check before has asked the cell.
  const listSent = async () =>
    (await home.query(`select recipient, subject from kept_mail where recipient like '%@b.test' order by 1`)).rows
  await waitFor('the mails', async () => (await listSent()).length === 2, { limitMs: 60_000 })
  expect((await listSent()).map(({ recipient }) => recipient)).toEqual(
    found.map(({ account }) => `${account}@b.test`).sort(),
  )
  await waitFor('the POSTs', () => alerts.requests.length >= 2, { limitMs: 60_000 })
  const posted = alerts.requests.map(({ body }) => JSON.parse(body.toString()))
  const subjects = posted.filter(({ incident }) => incident === 'webhook-disabled').map(({ subject }) => subject)
  expect(subjects.sort()).toEqual(found.map(({ webhook }) => webhook).sort())
}, 180_000)
