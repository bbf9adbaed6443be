import { expect, test } from 'vitest'
import { expectProblem, type Json, NO_ONE, startContractFixture } from '../../../test/contract/contract-fixture.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const HOOKS = '/api/v3/webhook/webhook'

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id
const boss = await fixture.signInWithRoles([account], ['account-admin'])

const create = (body: Json) =>
  fixture.app.admin('POST', HOOKS, { url: `${fixture.receiver.origin}/contacts`, account, ...body })

test('contacts are members of the account, ten at most, at creation as at a change', async () => {
  const members = []
  for (let n = 0; n < 10; n += 1) members.push((await fixture.signInWithRoles([account], ['account-viewer'])).userId)
  const created = await create({ contacts: members })
  expect([created.status, created.body.data.contacts]).toEqual([201, members])
  const path = `${HOOKS}/${created.body.data.document_id}`
  for (const change of [(body: Json) => create(body), (body: Json) => fixture.app.admin('PATCH', path, body)]) {
    expectProblem(await change({ contacts: [...members, boss.userId] }), 422, 'validation_failed')
    const stranger = expectProblem(await change({ contacts: [boss.userId, NO_ONE] }), 422, 'validation_failed')
    expect(stranger.errors[0]).toMatchObject({ path: 'contacts.1', code: 'no_member' })
    const outsider = await fixture.app.signInMember()
    const refused = expectProblem(await change({ contacts: [outsider.userId] }), 422, 'validation_failed')
    expect(refused.errors[0].message).toBe(stranger.errors[0].message)
  }
  expect((await fixture.app.admin('PATCH', path, { contacts: [] })).body.data.contacts).toEqual([])
})

test('contacts are none of a global webhook, and none after a move to another account', async () => {
  const global = { url: `${fixture.receiver.origin}/global`, is_global: true, contacts: [boss.userId] }
  expectProblem(await fixture.app.admin('POST', HOOKS, global), 422, 'validation_failed')
  const id = (await create({ contacts: [boss.userId] })).body.data.document_id
  const other = (await fixture.createAccount()).document_id
  expect((await fixture.app.admin('PATCH', `${HOOKS}/${id}`, { account: other })).body.data.contacts).toEqual([])
  const back = { account, contacts: [boss.userId] }
  expect((await fixture.app.admin('PATCH', `${HOOKS}/${id}`, back)).body.data.contacts).toEqual([boss.userId])
  expect((await fixture.app.admin('PATCH', `${HOOKS}/${id}`, { is_global: true })).body.data.contacts).toEqual([])
})

test('contacts cannot be set at a webhook of another account', async () => {
  const theirs = await fixture.signInWithRoles([(await fixture.createAccount()).document_id], ['account-admin'])
  const answer = await theirs.call('PATCH', `${HOOKS}/${(await create({})).body.data.document_id}`, {
    contacts: [theirs.userId],
  })
  expectProblem(answer, 404, 'not_found')
})
