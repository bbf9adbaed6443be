import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { addInteraction } from '../../../test/harness/browser/oauth-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const NO_ONE = '01990000-0000-7000-8000-000000000000'
const CLIENT = '/api/v3/oauth/client'

const app = await openForFile(createTestApp())

const logOf = (id: string, query = '') => app.admin('GET', `${CLIENT}/${id}/decision${query}`)
const makeClient = async () => {
  const body = { name: 'Till', type: 'public', redirect_uris: ['https://app.example.com/callback'] }
  return (await app.admin('POST', CLIENT, body)).body.data.document_id as string
}
async function decide(clientId: string, decision: 'approve' | 'deny') {
  const { call, userId } = await app.signInMember()
  const authorization_id = await addInteraction(app, { userId, clientId })
  const decided = await call('POST', '/api/v3/oauth/decision', { authorization_id, decision })
  expect(decided.status).toBe(200)
  app.clock.advance(1_000)
  return { userId, grant: decided.body.data.document_id as string | null }
}

test('the log of an app has what users allowed and what they refused, the newest first, and nothing of another app', async () => {
  const [id, other] = [await makeClient(), await makeClient()]
  const allowed = await decide(id, 'approve')
  await decide(other, 'approve')
  const refused = await decide(id, 'deny')
  const { body, status } = await logOf(id)
  expect(status).toBe(200)
  expect(body.data).toEqual([
    expect.objectContaining({ user: refused.userId, decision: 'deny', scopes: [], grant: null }),
    expect.objectContaining({ user: allowed.userId, decision: 'approve', grant: allowed.grant, address: '127.0.0.1' }),
  ])
  expect(body.data[1].scopes.length).toBeGreaterThan(0)
  const first = await logOf(id, '?page_size=1')
  const second = await logOf(id, `?page_size=1&cursor=${first.body.pagination.next_cursor}`)
  expect([...first.body.data, ...second.body.data]).toEqual(body.data)
})

test('a decision that failed, and another action on the app, are not in the log', async () => {
  const id = await makeClient()
  await app.admin('PATCH', `${CLIENT}/${id}`, { name: 'Renamed' })
  const { call, userId } = await app.signInMember()
  const authorization_id = await addInteraction(app, { userId: app.adminId, clientId: id })
  expect(userId).not.toBe(app.adminId)
  expect((await call('POST', '/api/v3/oauth/decision', { authorization_id, decision: 'approve' })).status).toBe(404)
  expect((await logOf(id)).body.data).toEqual([])
})

test('the log of an app that does not exist is a 404', async () => {
  expect((await logOf(NO_ONE)).status).toBe(404)
  expect((await logOf('nobody')).status).toBe(404)
  expect((await logOf(await makeClient(), '?sort=address')).status).toBe(422)
})

test('the log needs a token with oauth-client:find-decisions', async () => {
  const path = `${CLIENT}/${NO_ONE}/decision`
  expect((await app.anonymous('GET', path)).status).toBe(401)
  const { call } = await app.signInMember()
  expect((await call('GET', path)).body.missing).toMatchObject({ permission: 'oauth-client:find-decisions' })
})

test('a page reads an index of the decisions about the app alone', async () => {
  const id = await makeClient()
  await app.database.pool.query(
    `insert into audit_log (document_id, action, outcome, detail, created_at)
     select gen_random_uuid(), case when n % 2 = 0 then 'contract.update' else 'oauth-decision.create' end, 'success',
       jsonb_build_object('client', gen_random_uuid()), now() from generate_series(1, 5000) n`,
  )
  await app.database.pool.query('analyze audit_log')
  const { rows } = await app.database.pool.query(
    `explain (format json) select * from audit_log l where l.detail->>'client' = '${id}'
       and l.action = 'oauth-decision.create' and l.outcome = 'success'
     order by l.created_at desc, l.document_id desc limit 51`,
  )
  expect(JSON.stringify(rows)).toContain('audit_log_decision_idx')
})
