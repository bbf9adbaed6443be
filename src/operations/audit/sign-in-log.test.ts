import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const PASSWORD = 'correct horse battery'
const NO_ONE = '01990000-0000-7000-8000-000000000000'

const app = await openForFile(createTestApp())

const logOf = (id: string, query = '') => app.admin('GET', `/api/v3/identity/user/${id}/sign-in${query}`)
const newUser = async (email: string) =>
  (await app.admin('POST', '/api/v3/identity/user', { email, password: PASSWORD })).body.data.document_id as string
const signIn = (email: string, password = PASSWORD) =>
  app.anonymous('POST', '/api/v3/auth/login/local', { email, password })

test('the log of a user has the sign-ins that succeeded and those that were refused, the newest first', async () => {
  const email = 'log@example.test'
  const id = await newUser(email)
  await newUser('other@example.test')
  await signIn(email, 'wrong password one')
  app.clock.advance(1_000)
  const { jwt } = (await signIn(email)).body.data
  await signIn('other@example.test')
  await app.callAs(jwt)('POST', '/api/v3/auth/session/revoke')
  const { body, status } = await logOf(id)
  expect(status).toBe(200)
  expect(body.data).toMatchObject([
    { method: 'local', outcome: 'success', reason: null, address: '127.0.0.1', provider: null, count: 1 },
    { method: 'local', outcome: 'failure', reason: 'wrong_password', session: null },
  ])
  const first = await logOf(id, '?page_size=1')
  const second = await logOf(id, `?page_size=1&cursor=${first.body.pagination.next_cursor}`)
  expect([...first.body.data, ...second.body.data]).toEqual(body.data)
})

test('the log of a user who never signed in is empty; of nobody it is a 404', async () => {
  const id = await newUser('never@example.test')
  expect((await logOf(id)).body.data).toEqual([])
  expect((await logOf(NO_ONE)).status).toBe(404)
  expect((await logOf('nobody')).status).toBe(404)
  expect((await logOf(id, '?sort=address')).status).toBe(422)
})

test('the log needs a token with user:find-sign-ins', async () => {
  const path = `/api/v3/identity/user/${NO_ONE}/sign-in`
  expect((await app.anonymous('GET', path)).status).toBe(401)
  const { call } = await app.signInMember()
  expect((await call('GET', path)).body.missing).toMatchObject({ permission: 'user:find-sign-ins' })
})

test('a page reads an index of sign-ins alone, whatever else the user did', async () => {
  const id = await newUser('busy@example.test')
  await app.database.pool.query(
    `insert into audit_log (document_id, action, outcome, "user", created_at)
     select gen_random_uuid(), 'contract.update', 'success', $1, now() from generate_series(1, 5000)`,
    [id],
  )
  await app.database.pool.query('analyze audit_log')
  const { rows } = await app.database.pool.query(
    `explain (format json) select * from audit_log l where l."user" = '${id}' and starts_with(l.action, 'login.')
     order by l.created_at desc, l.document_id desc limit 51`,
  )
  expect(JSON.stringify(rows)).toContain('audit_log_sign_in_idx')
})
