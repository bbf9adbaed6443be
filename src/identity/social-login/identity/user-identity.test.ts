import { expect, test } from 'vitest'
import { createSocialApp } from '../../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const NO_ONE = '01990000-0000-7000-8000-000000000000'

let users = 0

const t = await openForFile(createSocialApp())

/** A user who signed in with Google, and its identity. */
async function signedIn() {
  users += 1
  const sub = `70${users}`
  t.seat('google', { sub })
  const { data } = (await t.signIn(t.browser(), 'google')).body
  const id = data.user.document_id as string
  const [identity] = (await t.app.admin('GET', `/api/v3/identity/user/${id}/identity`)).body.data
  return { id, sub, identity, call: t.app.callAs(data.jwt) }
}

const unlink = (user: string, identity: string, call = t.app.admin) =>
  call('DELETE', `/api/v3/identity/user/${user}/identity/${identity}`)

test('an operator sees the identities of a user with the subject', async () => {
  const { id, sub, identity } = await signedIn()
  expect(identity).toMatchObject({ user: id, provider: 'google', subject: sub, email: `${sub}@example.com` })
  expect((await t.app.admin('GET', `/api/v3/identity/user/${NO_ONE}/identity`)).status).toBe(404)
})

test('an operator disconnects a provider, but never the last way in; the session goes on', async () => {
  const { id, identity, call } = await signedIn()
  expect((await unlink(id, identity.document_id)).body).toMatchObject({ status: 409, code: 'conflict' })
  await t.app.admin('PATCH', `/api/v3/identity/user/${id}`, { name: 'Kept' })
  await t.app.database.pool.query(`update "user" set password_hash = 'x' where document_id = $1`, [id])
  const removed = await unlink(id, identity.document_id)
  expect([removed.status, removed.body.data.document_id]).toEqual([200, identity.document_id])
  expect((await unlink(id, identity.document_id)).status).toBe(404)
  expect((await call('GET', '/api/v3/auth/session')).status).toBe(200)
  const { body } = await t.app.admin('GET', '/api/v3/audit/log?filters=action|eq|user-identity.delete&page_size=1')
  expect(body.data[0]).toMatchObject({ target: identity.document_id, detail: { provider: 'google', user: id } })
})

test('of operators who disconnect both providers of a user at once one succeeds; of one provider, once', async () => {
  const { id, identity } = await signedIn()
  const second = await t.app.database.pool.query(
    `insert into identity (document_id, "user", provider, subject, is_email_verified, created_at, updated_at)
     values (gen_random_uuid(), $1, 'github', $2, false, now(), now()) returning document_id`,
    [id, `7${id}`],
  )
  const both = [identity.document_id, second.rows[0].document_id]
  const removed = await Promise.all(both.map((item) => unlink(id, item)))
  expect(removed.map(({ status }) => status).sort()).toEqual([200, 409])
  await t.app.database.pool.query(`update "user" set password_hash = 'x' where document_id = $1`, [id])
  const left = both[removed.findIndex(({ status }) => status === 409)]
  const again = await Promise.all([1, 2, 3].map(() => unlink(id, left)))
  expect(again.map(({ status }) => status).sort()).toEqual([200, 404, 404])
})

test('an identity of another user is a 404, and so is no id', async () => {
  const [user, other] = [await signedIn(), await signedIn()]
  expect((await unlink(user.id, other.identity.document_id)).status).toBe(404)
  expect((await unlink(NO_ONE, other.identity.document_id)).status).toBe(404)
  expect((await unlink(user.id, 'google')).status).toBe(404)
})

test('the routes need their permissions, and everything that the user holds', async () => {
  const { id, identity, call } = await signedIn()
  const path = `/api/v3/identity/user/${id}/identity`
  expect((await t.app.anonymous('GET', path)).status).toBe(401)
  expect((await call('GET', path)).body.missing).toMatchObject({ permission: 'user-identity:find-all' })
  expect((await unlink(id, identity.document_id, call)).body.missing).toMatchObject({
    permission: 'user-identity:delete',
  })
  const permissions = ['user-identity:*', 'contract:*']
  const role = await t.app.admin('POST', '/api/v3/identity/role', { name: 'unlinker', permissions })
  const admins = await t.app.admin('GET', '/api/v3/identity/role?filters=name|eq|administrator')
  const [unlinker, administrator] = [role.body.data.document_id, admins.body.data[0].document_id]
  const helper = await t.app.signInMember()
  await t.app.admin('PATCH', `/api/v3/identity/user/${helper.userId}`, { roles: [unlinker] })
  await t.app.admin('PATCH', `/api/v3/identity/user/${id}`, { roles: [administrator] })
  expect((await unlink(id, identity.document_id, helper.call)).body).toMatchObject({
    code: 'permission_denied',
    missing: { permission: '*:*' },
  })
})
