import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const IDENTITY = '/api/v3/identity'
const PASSWORD = 'correct horse battery'
const NO_ONE = '01990000-0000-7000-8000-000000000000'

const app = await openForFile(createTestApp())

const created = async (path: string, body: object): Promise<string> => {
  const answer = await app.admin('POST', path, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data.document_id
}
const newUser = (email: string) => created(`${IDENTITY}/user`, { email, password: PASSWORD })
const signIn = (email: string, password = PASSWORD) =>
  app.anonymous('POST', '/api/v3/auth/login/local', { email, password })

/** The users of these filters. */
async function list(...filters: string[]) {
  const query = filters.map((filter) => `filters=${encodeURIComponent(filter)}`).join('&')
  const { status, body } = await app.admin('GET', `${IDENTITY}/user?${query}`)
  expect(status, JSON.stringify(body)).toBe(200)
  return body.data
}
const idsOf = async (...filters: string[]) =>
  (await list(...filters)).map((user: { document_id: string }) => user.document_id)

test('a user says when it last signed in: a refused try and a refresh do not count', async () => {
  const id = await newUser('seen@example.test')
  const read = async () => (await app.admin('GET', `${IDENTITY}/user/${id}`)).body.data.last_sign_in_at
  expect(await read()).toBeNull()
  expect(await idsOf('last_sign_in_at|null|true', `document_id|eq|${id}`)).toEqual([id])
  await signIn('seen@example.test', 'wrong password one')
  expect(await read()).toBeNull()
  app.clock.advance(1_000)
  const at = new Date(app.clock.now()).toISOString()
  const { refresh_token } = (await signIn('seen@example.test')).body.data
  expect(await read()).toBe(at)
  app.clock.advance(1_000)
  await app.anonymous('POST', '/api/v3/auth/session/refresh', { refresh_token })
  expect(await read()).toBe(at)
  expect(await idsOf(`last_sign_in_at|eq|${at}`)).toEqual([id])
  const later = new Date(app.clock.now()).toISOString()
  expect(await idsOf(`last_sign_in_at|gte|${later}`, `document_id|eq|${id}`)).toEqual([])
})

test('users are found by a role, and by an account, which the list names', async () => {
  const id = await newUser('found@example.test')
  const role = await created(`${IDENTITY}/role`, { name: 'clerk', permissions: ['contract:*'] })
  const account = await created(`${IDENTITY}/account`, { name: 'Acme' })
  expect(await idsOf(`role|eq|${role}`)).toEqual([])
  await app.admin('PATCH', `${IDENTITY}/user/${id}`, { roles: [role] })
  await created(`${IDENTITY}/account/${account}/member`, { user: id })
  expect(await list(`role|eq|${role}`)).toMatchObject([
    { document_id: id, accounts: [{ document_id: account, name: 'Acme' }], has_more_accounts: false, providers: [] },
  ])
  expect(await idsOf(`account|in|${account},${NO_ONE}`)).toEqual([id])
  expect(await idsOf(`account|eq|${NO_ONE}`)).toEqual([])
  await app.admin('DELETE', `${IDENTITY}/account/${account}`)
  expect(await list(`role|eq|${role}`)).toMatchObject([{ accounts: [] }])
})

test('users are found by a provider', async () => {
  const id = await newUser('linked@example.test')
  await app.database.pool.query(
    `insert into identity (document_id, "user", provider, subject, created_at, updated_at)
     select gen_random_uuid(), $1, provider, 'subject-1', now(), now() from unnest(array['google', 'github']) provider`,
    [id],
  )
  expect(await list('provider|eq|google')).toMatchObject([{ document_id: id, providers: ['github', 'google'] }])
  expect(await idsOf('provider|eq|gitlab')).toEqual([])
})

test('users are found by an address in any case of its letters A to Z, as it signs in', async () => {
  const id = await newUser('Ann.Key@Example.test')
  const other = await newUser('bea@example.test')
  expect(await idsOf('email|eq|ANN.kEY@example.TEST')).toEqual([id])
  expect(await idsOf('email|eq|ann.\u212aey@example.test')).toEqual([])
  expect((await idsOf('email|in|nobody@example.test,ANN.KEY@example.test,BEA@example.test')).sort()).toEqual([
    id,
    other,
  ])
  expect(await idsOf('email|ne|ANN.KEY@example.test', `document_id|in|${id},${other}`)).toEqual([other])
  expect(await idsOf('email|nin|ANN.KEY@example.test,Bea@example.test', `document_id|in|${id},${other}`)).toEqual([])
})

test('a user with a shadowed address is found by its own spelling alone', async () => {
  const id = await newUser('info@example.test')
  const shadowed = await newUser('other@example.test')
  await app.database.pool.query('update "user" set email = $2, is_email_shadowed = true where document_id = $1', [
    shadowed,
    'INFO@example.test',
  ])
  expect((await idsOf('email|eq|INFO@example.test')).sort()).toEqual([id, shadowed])
  expect(await idsOf('email|eq|info@example.test')).toEqual([id])
})

test('a user of more than ten accounts is listed with ten, and says that there are more', async () => {
  const id = await newUser('member@example.test')
  for (let n = 0; n < 10; n += 1) {
    const account = await created(`${IDENTITY}/account`, { name: `Account ${n}` })
    await created(`${IDENTITY}/account/${account}/member`, { user: id })
    app.clock.advance(1)
  }
  const [ten] = await list(`document_id|eq|${id}`)
  expect([ten.accounts.length, ten.accounts[0].name, ten.has_more_accounts]).toEqual([10, 'Account 0', false])
  const last = await created(`${IDENTITY}/account`, { name: 'Account 10' })
  await created(`${IDENTITY}/account/${last}/member`, { user: id })
  const [eleven] = await list(`document_id|eq|${id}`)
  expect([eleven.accounts.length, eleven.has_more_accounts]).toEqual([10, true])
})

test('a filter by rows about a user takes equality alone', async () => {
  const refused = await app.admin('GET', `${IDENTITY}/user?filters=role|ne|${NO_ONE}`)
  expect(refused).toMatchObject({ status: 422, body: { errors: [{ code: 'unknown_operator' }] } })
})
