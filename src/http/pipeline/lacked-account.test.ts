import { expect, test } from 'vitest'
import type { AccountId, ConnectionId, UserId } from '../../base/id.ts'
import { notFound, Problem } from '../problem/problem.ts'
import type { RouteDeclaration } from '../route/route.ts'
import type { Caller, Narrowing } from '../shape/caller.ts'
import { explainLackedAccount, findLackedAccount } from './lacked-account.ts'

const ACCOUNT = '01a09057-ac60-7015-9193-09d3653b4271' as AccountId
const NARROWING: Narrowing = {
  account: ACCOUNT,
  connection: 'connection' as ConnectionId,
  provenUntil: null,
  lacking: ['webhook:*'],
  enterPath: '/auth/organization/enter?connection=connection',
}
const ROUTE = { resource: 'webhook', action: 'create', ownAccounts: true } as unknown as RouteDeclaration
const caller = (narrowing?: Partial<Narrowing>, more: Partial<Caller> = {}): Caller => ({
  ...{ userId: 'user' as UserId, sessionId: null, apiKeyId: null, clientId: null, accountId: null },
  ...{ patterns: [], accountPatterns: [], membershipPatterns: [], accounts: [], ceiling: null },
  ...{ keyAccount: null, proof: null },
  ...(narrowing && { narrowing: { ...NARROWING, ...narrowing } }),
  ...more,
})

test('an account is lacked where its roles would give the permission of the route', () => {
  expect(findLackedAccount(ROUTE, caller({}))?.account).toBe(ACCOUNT)
  const none = [
    findLackedAccount(ROUTE, caller()),
    findLackedAccount(ROUTE, caller({ provenUntil: new Date() })),
    findLackedAccount(ROUTE, caller({ lacking: ['contract:*'] })),
    findLackedAccount(ROUTE, caller({}, { ceiling: ['contract:*'] })),
    findLackedAccount({ ...ROUTE, ownAccounts: false }, caller({})),
  ]
  expect(none).toEqual([undefined, undefined, undefined, undefined, undefined])
})

test('a refusal is explained where the request names the account', () => {
  const denied = new Problem('permission_denied', 'No.')
  const explain = (error: unknown, given: unknown[], by: Caller | undefined = caller({})) =>
    explainLackedAccount(ROUTE, by, { error, given })?.code
  const named = [undefined, { channel_name: `private-account-${ACCOUNT}` }]
  expect([explain(denied, named), explain(notFound('webhook'), [{ id: ACCOUNT }])]).toEqual([
    'connection_required',
    'connection_required',
  ])
  expect([
    explain(denied, [{ id: 'other' }, null, ACCOUNT, { account: [ACCOUNT] }]),
    explain(new Problem('conflict', 'No.'), named),
    explain(new Error('no problem'), named),
    explain(denied, named, caller()),
    explainLackedAccount(ROUTE, undefined, { error: denied, given: named }),
  ]).toEqual([undefined, undefined, undefined, undefined, undefined])
})

test('the refusal names the way on: the page for a session, a bound key for a key', () => {
  const error = notFound('webhook')
  const explain = (narrowing: Partial<Narrowing>) =>
    explainLackedAccount(ROUTE, caller(narrowing), { error, given: [{ id: ACCOUNT }] })
  expect(explain({})?.errors).toEqual([{ path: 'connection', code: 'required', message: NARROWING.enterPath }])
  expect(explain({ enterPath: null })).toMatchObject({ errors: undefined, detail: expect.stringContaining('bound') })
})
