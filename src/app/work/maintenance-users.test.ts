import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { systemRandom } from '../../base/random.ts'

const DAY_MS = 24 * 3_600_000

const app = await openForFile(createTestApp())
const account: string = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id

const at = (ageMs: number) => new Date(app.clock.now() - ageMs)
const insert = (text: string, values: unknown[]) => app.database.pool.query(text, values)

const addMail = (ended: Date) =>
  insert(
    `insert into mail_outbox (document_id, kind, recipient, status, due_at, expires_at, created_at, ended_at)
     values (gen_random_uuid(), 'test', 'a@example.com', 'sent', $1, $1, $1, $1)`,
    [ended],
  )
const addToken = (expires: Date) =>
  insert(
    `insert into proof_token (token_hash, purpose, "user", email, expires_at, created_at)
     values ($1, 'reset', $2, 'a@example.com', $3, $3)`,
    [systemRandom.bytes(32), app.adminId, expires],
  )
const addInvitation = (column: 'expires_at' | 'accepted_at' | 'revoked_at', ended: Date) =>
  insert(
    `insert into account_invitation
       (document_id, account, email, roles, token_hash, invited_by, expires_at, ${column === 'expires_at' ? '' : `${column},`}
        created_at, updated_at)
     values (gen_random_uuid(), $1, $2, '{}', $3, $4, ${column === 'expires_at' ? '' : '$6::timestamptz,'} $5, $5, $5)`,
    [
      account,
      `${systemRandom.bytes(4).toString('hex')}@example.com`,
      systemRandom.bytes(32),
      app.adminId,
      column === 'expires_at' ? ended : at(-DAY_MS),
      ...(column === 'expires_at' ? [] : [ended]),
    ],
  )

test.each([
  ['mails', 7 * DAY_MS, addMail],
  ['invitations', 90 * DAY_MS, (ended: Date) => addInvitation('expires_at', ended)],
  ['invitations', 90 * DAY_MS, (ended: Date) => addInvitation('accepted_at', ended)],
  ['invitations', 90 * DAY_MS, (ended: Date) => addInvitation('revoked_at', ended)],
] as const)('%s are swept %d ms after they ended, and not before', async (name, keptMs, add) => {
  await add(at(keptMs + 1))
  await add(at(keptMs))
  expect((await app.app.maintenance.sweep())[name]).toBe(1)
  expect((await app.app.maintenance.sweep())[name]).toBe(0)
})

test('tokens of links are swept when they expire', async () => {
  await addToken(at(1))
  await addToken(at(0))
  expect((await app.app.maintenance.sweep()).proofTokens).toBe(1)
  expect((await app.app.maintenance.sweep()).proofTokens).toBe(0)
})
