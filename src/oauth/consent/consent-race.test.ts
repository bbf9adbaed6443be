import { describe, expect, test } from 'vitest'
import { createTestApp, type TestAnswer, type TestCall } from '../../../test/harness/app/app.ts'
import { addInteraction } from '../../../test/harness/browser/oauth-rows.ts'
import { holdUser, race } from '../../../test/harness/plan/race.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const CLIENTS = '/api/v3/oauth/client'
const GRANTS = '/api/v3/oauth/grant'
const ALL = ['openid', 'profile', 'email', 'contract:read', 'contract:write', 'account:read']

/** Two processes on one database. */
const app = await openForFile(createTestApp())
const other = await openForFile(createTestApp({ database: app.database }))

interface User {
  userId: string
  call: TestCall
  inOther: TestCall
  clientId: string
  /** Answers an authorization that asks for `scope`, in the process of `call`. */
  decide(call: TestCall, scope: string, scopes?: readonly string[]): Promise<() => Promise<TestAnswer>>
  grants(): Promise<{ document_id: string; scopes: string[] }[]>
}

async function signIn(): Promise<User> {
  const { call, userId, token } = await app.signInMember()
  const body = { name: 'Example app', type: 'confidential', redirect_uris: ['https://app.example.com/callback'] }
  const clientId = (await app.admin('POST', CLIENTS, { ...body, scopes: ALL })).body.data.client_id
  return {
    userId,
    call,
    inOther: other.callAs(token),
    clientId,
    decide: async (by, scope, scopes) => {
      const id = await addInteraction(app, { userId, clientId, scope })
      const decision = { authorization_id: id, decision: 'approve', ...(scopes && { scopes }) }
      return () => by('POST', '/api/v3/oauth/decision', decision)
    },
    grants: async () => (await call('GET', GRANTS)).body.data,
  }
}

const holdGrant = (id: string) => ({
  text: 'select from oauth_grant where document_id = $1 for update',
  values: [id],
})

/** A user who has allowed an app to read contracts. */
async function allowContracts() {
  const user = await signIn()
  const approve = await user.decide(user.call, 'openid email contract:read')
  expect((await approve()).status).toBe(200)
  const [grant] = await user.grants()
  return { user, grantId: grant?.document_id ?? '' }
}

describe('a consent that is taken back while another authorization of the app is approved', () => {
  test.each(['first', 'last'])('is taken back for good: a scope, %s', async (place) => {
    const { user, grantId } = await allowContracts()
    const takeBack = await user.decide(user.call, 'openid email contract:read', ['openid', 'email'])
    const approve = await user.decide(user.inOther, 'openid email account:read')
    const requests = place === 'first' ? [takeBack, approve] : [approve, takeBack]
    const answers = await race(app.database, holdGrant(grantId), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    const [grant] = await user.grants()
    expect(grant?.scopes.toSorted()).toEqual(['account:read', 'email', 'openid'])
  })

  test('is taken back for good: the whole grant', async () => {
    const { user, grantId } = await allowContracts()
    const approve = await user.decide(user.inOther, 'openid email')
    const remove = () => user.call('DELETE', `${GRANTS}/${grantId}`)
    const answers = await race(app.database, holdGrant(grantId), [remove, approve])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    const grants = await user.grants()
    expect(grants).toMatchObject([{ scopes: ['openid', 'email'] }])
    expect(grants[0]?.document_id).not.toBe(grantId)
  })

  test('is given to no client that is deleted meanwhile', async () => {
    const { user, grantId } = await allowContracts()
    const approve = await user.decide(user.inOther, 'openid email')
    const remove = () => app.admin('DELETE', `${CLIENTS}/${user.clientId}`)
    const [removed, approved] = await race(app.database, holdGrant(grantId), [remove, approve])
    expect([removed?.status, approved?.status]).toEqual([200, 404])
    const { rows } = await app.database.pool.query(
      'select count(*)::int as live from oauth_grant where client = $1 and revoked_at is null',
      [user.clientId],
    )
    expect(rows[0].live).toBe(0)
  })
})

test('five approvals of one user at once keep all that was allowed', async () => {
  const user = await signIn()
  const asked = [
    'openid profile',
    'openid email',
    'openid contract:read',
    'openid contract:write',
    'openid account:read',
  ]
  const requests = await Promise.all(
    asked.map((scope, index) => user.decide(index % 2 === 0 ? user.call : user.inOther, scope)),
  )
  const answers = await race(app.database, holdUser(user.userId), requests)
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  const grants = await user.grants()
  expect(grants).toHaveLength(1)
  expect(grants[0]?.scopes.toSorted()).toEqual(ALL.toSorted())
})

test('a decision counts only while its session lives', async () => {
  const user = await signIn()
  expect((await user.inOther('GET', '/api/v3/auth/session')).status).toBe(200)
  const approve = await user.decide(user.inOther, 'openid email')
  const path = `/api/v3/identity/user/${user.userId}/revoke-sessions`
  const revoke = () => app.admin('POST', path)
  const [revoked, approved] = await race(app.database, holdUser(user.userId), [revoke, approve])
  expect([revoked?.status, approved?.status]).toEqual([200, 404])
  const { rows } = await app.database.pool.query('select from oauth_grant where "user" = $1', [user.userId])
  expect(rows).toHaveLength(0)
})
