import { describe, expect, test } from 'vitest'
import { createTestApp, type TestAnswer, type TestCall } from '../../test/harness/app/app.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'
import { followCall } from '../../test/harness/run/trail.ts'
import type { AccountId, UserId } from '../base/id.ts'

const PATH = '/api/v3/contract/contract'
const UNKNOWN_ID = '01990000-0000-7000-8000-000000000000'

const app = await openForFile(createTestApp())
const own: AccountId = (await app.admin('POST', '/api/v3/identity/account', { name: 'Own' })).body.data.document_id
const foreign: AccountId = (await app.admin('POST', '/api/v3/identity/account', { name: 'Foreign' })).body.data
  .document_id
const member: { call: TestCall; userId: UserId } = await app.signInMember([own])

async function createContract(account: AccountId = own, body: object = {}) {
  const answer = await app.admin('POST', PATH, { account, name: 'Lease', ...body })
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data
}

const readRow = async (id: string) =>
  (await app.database.pool.query('select * from contract where document_id = $1', [id])).rows[0]

async function expectRefusal(call: () => Promise<TestAnswer>, status: number, code: string) {
  const { answer, events, audit } = await followCall(app, call)
  expect(answer.status, JSON.stringify(answer.body)).toBe(status)
  expect(answer.body.code).toBe(code)
  expect(events).toEqual([])
  expect(audit.map(({ outcome }) => outcome)).toEqual(status === 403 ? ['failure'] : [])
  return answer.body
}

describe('creating a contract', () => {
  test('records contract.create once, with its account and its actor', async () => {
    const { answer, events, audit } = await followCall(app, () =>
      member.call('POST', PATH, { account: own, name: 'Lease' }),
    )
    expect(answer.status).toBe(201)
    const { document_id: id } = answer.body.data
    expect(answer.body.data).toMatchObject({
      account: own,
      name: 'Lease',
      status: 'draft',
      created_by: member.userId,
      updated_by: member.userId,
      deleted_at: null,
    })
    expect(answer.headers.location).toBe(`${PATH}/${id}`)
    expect(events).toEqual([
      { event: 'contract.create', account: own, resource_id: id, url: `${PATH}/${id}`, is_purge: false },
    ])
    expect(audit).toMatchObject([
      { action: 'contract.create', outcome: 'success', user: member.userId, account: own, target: id },
    ])
    expect((await app.admin('GET', `${PATH}/${id}`)).body.data).toEqual(answer.body.data)
  })

  test.each([
    ['a name of one character', { name: 'n' }],
    ['a name of 200 characters', { name: 'n'.repeat(200) }],
    ['each status', { status: 'ended' }],
  ])('takes %s', async (_what, body) => {
    expect(await createContract(own, body)).toMatchObject(body)
  })

  test.each([
    ['an empty name', { name: '' }, 'name'],
    ['a blank name', { name: ' \t ' }, 'name'],
    ['a name of 201 characters', { name: 'n'.repeat(201) }, 'name'],
    ['null for the name', { name: null }, 'name'],
    ['a status that is none', { status: 'signed' }, 'status'],
    ['null for the account', { account: null }, 'account'],
    ['an account that is not there', { account: UNKNOWN_ID }, 'account'],
    ['an unknown member', { price: 7 }, 'price'],
  ])('refuses %s', async (_what, body, path) => {
    const call = () => app.admin('POST', PATH, { account: own, name: 'Lease', ...body })
    const problem = await expectRefusal(call, 422, 'validation_failed')
    for (const error of problem.errors) expect(error.path).toBe(path)
    expect(problem.errors.length).toBeGreaterThan(0)
  })

  test('refuses a deleted account and a body without a required member', async () => {
    const gone = (await app.admin('POST', '/api/v3/identity/account', { name: 'Gone' })).body.data.document_id
    await app.admin('DELETE', `/api/v3/identity/account/${gone}`)
    await expectRefusal(() => app.admin('POST', PATH, { account: gone, name: 'Lease' }), 422, 'validation_failed')
    const problem = await expectRefusal(() => app.admin('POST', PATH, {}), 422, 'validation_failed')
    expect(problem.errors.map((error: { path: string }) => error.path).sort()).toEqual(['account', 'name'])
  })

  test('under one Idempotency-Key creates one', async () => {
    const headers = { 'idempotency-key': 'one-contract' }
    const send = () => app.admin('POST', PATH, { account: own, name: 'Once' }, headers)
    const first = await send()
    const again = await followCall(app, send)
    expect(again.answer.body).toEqual(first.body)
    expect(again.answer.headers).toMatchObject({ 'idempotency-replayed': 'true', location: first.headers.location })
    expect(again.events).toEqual([])
    expect((await app.admin('GET', `${PATH}?filters=name|eq|Once`)).body.data).toHaveLength(1)
    const other = () => app.admin('POST', PATH, { account: own, name: 'Twice' }, headers)
    await expectRefusal(other, 422, 'idempotency_key_reused')
  })
})

describe('changing and deleting a contract', () => {
  test('changes only the members of the body, and records contract.update once', async () => {
    const created = await createContract()
    app.clock.advance(1_000)
    const path = `${PATH}/${created.document_id}`
    const { answer, events, audit } = await followCall(app, () => member.call('PATCH', path, { status: 'active' }))
    expect(answer.body.data).toEqual({
      ...created,
      status: 'active',
      updated_by: member.userId,
      updated_at: new Date(app.clock.now()).toISOString(),
    })
    expect(events).toMatchObject([{ event: 'contract.update', account: own, resource_id: created.document_id }])
    expect(audit).toMatchObject([{ action: 'contract.update', user: member.userId, target: created.document_id }])
  })

  test('refuses an empty update and one of a fixed member', async () => {
    const { document_id: id } = await createContract()
    const before = await readRow(id)
    for (const body of [{}, { account: foreign }, { name: '' }, { status: null }, { document_id: UNKNOWN_ID }])
      await expectRefusal(() => app.admin('PATCH', `${PATH}/${id}`, body), 422, 'validation_failed')
    expect(await readRow(id)).toEqual(before)
  })

  test('deletes softly, once, and keeps the row', async () => {
    const { document_id: id } = await createContract()
    const { answer, events } = await followCall(app, () => app.admin('DELETE', `${PATH}/${id}`))
    expect(answer.body.data.deleted_at).toBe(new Date(app.clock.now()).toISOString())
    expect(events).toEqual([{ event: 'contract.delete', account: own, resource_id: id, url: null, is_purge: false }])
    expect(await readRow(id)).toMatchObject({ name: 'Lease', updated_by: app.adminId })
    for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
      const body = method === 'PATCH' ? { name: 'Late' } : undefined
      await expectRefusal(() => app.admin(method, `${PATH}/${id}`, body), 404, 'not_found')
    }
    const list = await app.admin('GET', `${PATH}?filters=document_id|eq|${id}`)
    expect(list.body.data).toEqual([])
  })

  test('two concurrent deletions succeed once, and an update does not change a deleted contract', async () => {
    const { document_id: id } = await createContract()
    let statuses: number[] = []
    const { events } = await followCall(app, async () => {
      const answers = await Promise.all([app.admin('DELETE', `${PATH}/${id}`), app.admin('DELETE', `${PATH}/${id}`)])
      statuses = answers.map((answer) => answer.status).sort()
      return answers[0]
    })
    expect(statuses).toEqual([200, 404])
    expect(events).toHaveLength(1)
  })
})

describe('a member', () => {
  test('sees, changes and deletes contracts of the own accounts', async () => {
    const { document_id: id } = await createContract(own)
    expect((await member.call('GET', `${PATH}/${id}`)).status).toBe(200)
    expect((await member.call('PATCH', `${PATH}/${id}`, { name: 'Mine' })).status).toBe(200)
    expect((await member.call('DELETE', `${PATH}/${id}`)).status).toBe(200)
  })

  test('gets the same answer for a foreign contract and a missing one', async () => {
    const { document_id: id } = await createContract(foreign)
    const before = await readRow(id)
    for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
      const body = method === 'PATCH' ? { name: 'Stolen' } : undefined
      const missing = await expectRefusal(() => member.call(method, `${PATH}/${UNKNOWN_ID}`, body), 404, 'not_found')
      const hidden = await expectRefusal(() => member.call(method, `${PATH}/${id}`, body), 404, 'not_found')
      expect({ ...hidden, request_id: '' }).toEqual({ ...missing, request_id: '' })
    }
    expect(await readRow(id)).toEqual(before)
  })

  test('gets the same refusal to create for a foreign account and a missing one', async () => {
    const create = (account: string) => () => member.call('POST', PATH, { account, name: 'Lease' })
    const hidden = await expectRefusal(create(foreign), 403, 'permission_denied')
    const missing = await expectRefusal(create(UNKNOWN_ID), 403, 'permission_denied')
    expect(hidden.detail).toContain('contract:create')
    expect(hidden.detail).toBe(missing.detail)
  })

  test('lists and counts only the own ones, with any filter', async () => {
    const mine = await createContract(own)
    const hidden = await createContract(foreign)
    const all = await member.call('GET', `${PATH}?page_size=200&count=true`)
    const rows: { account: string; document_id: string }[] = all.body.data
    expect(new Set(rows.map((row) => row.account))).toEqual(new Set([own]))
    expect(rows.map((row) => row.document_id)).toContain(mine.document_id)
    expect(all.body.pagination.total).toBe(rows.length)
    for (const filter of [`account|eq|${foreign}`, `document_id|eq|${hidden.document_id}`]) {
      const filtered = await member.call('GET', `${PATH}?count=true&filters=${filter}`)
      expect(filtered.body.data).toEqual([])
      expect(filtered.body.pagination.total).toBe(0)
    }
    const asAdmin = await app.admin('GET', `${PATH}?filters=account|eq|${foreign}`)
    expect(asAdmin.body.data).toContainEqual(hidden)
  })

  test('without any account sees none and creates none', async () => {
    await createContract(own)
    const lonely = await app.signInMember([])
    expect((await lonely.call('GET', PATH)).body.data).toEqual([])
    await expectRefusal(() => lonely.call('POST', PATH, { account: own, name: 'Lease' }), 403, 'permission_denied')
  })

  test('loses access with the membership, at once', async () => {
    const leaving = await app.signInMember([own])
    const { document_id: id } = await createContract(own)
    expect((await leaving.call('GET', `${PATH}/${id}`)).status).toBe(200)
    await app.database.pool.query('delete from account_member where "user" = $1', [leaving.userId])
    await expectRefusal(() => leaving.call('GET', `${PATH}/${id}`), 404, 'not_found')
  })
})

test('a request is 401 without a token, and 403 with the name of the missing permission', async () => {
  const { document_id: id } = await createContract()
  const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'narrow', permissions: ['event:*'] })
  const narrow = app.callAs(key.body.data.key)
  for (const [method, path, permission] of [
    ['POST', PATH, 'contract:create'],
    ['GET', PATH, 'contract:find-all'],
    ['GET', `${PATH}/${id}`, 'contract:find-one'],
    ['PATCH', `${PATH}/${id}`, 'contract:update'],
    ['DELETE', `${PATH}/${id}`, 'contract:delete'],
  ] as const) {
    const body = method === 'POST' || method === 'PATCH' ? { nonsense: true } : undefined
    await expectRefusal(() => app.anonymous(method, path, body), 401, 'unauthenticated')
    const refused = await expectRefusal(() => narrow(method, path, body), 403, 'permission_denied')
    expect(refused.detail).toContain(permission)
  }
})
