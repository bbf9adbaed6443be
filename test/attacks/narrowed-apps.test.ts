import { expect, test } from 'vitest'
import type { TestAnswer } from '../harness/app/app.ts'
import { COMPANY_OIDC } from '../harness/app/connection-app.ts'
import { openFlow } from '../harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Apps of members of several accounts (docs/contract/connections.md#members-of-several-accounts). */

const ACCOUNTS = '/api/v3/identity/account'
const CONTRACT = '/api/v3/contract/contract'

const fixture = await openForFile(startOauthFixture())

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
async function succeed(answer: Promise<TestAnswer>): Promise<any> {
  const { status, body } = await answer
  expect(status, JSON.stringify(body)).toBeLessThan(300)
  return body.data
}
const create = async (path: string, body?: object): Promise<string> =>
  (await succeed(fixture.app.admin('POST', path, body))).document_id

/** The provider of OAuth stamps its tokens by the clock of the machine; one that is ahead of the service is refused. */
const followMachine = () => fixture.app.clock.set(Math.max(fixture.app.clock.now(), Date.now()))

/** Whether an app sees the contract of each of these accounts. */
async function reach(token: string, accounts: string[]): Promise<boolean[]> {
  followMachine()
  const { jwt } = (await fixture.app.anonymous('POST', '/api/v3/oauth/exchange', { token })).body
  const contracts: { account: string }[] = await succeed(fixture.app.callAs(jwt)('GET', CONTRACT))
  return accounts.map((one) => contracts.some(({ account }) => account === one))
}

test.each([
  ['without offline_access has the proof of its session', 'openid contract:read', true],
  ['with offline_access has none', 'openid contract:read offline_access', false],
])('an app %s', async (_, scope, isProven) => {
  const { app } = fixture
  followMachine()
  const user = await fixture.user()
  await app.database.pool.query('update "user" set email_verified_at = now() where document_id = $1', [user.userId])
  const accounts = [await create(ACCOUNTS, { name: 'Closed' }), await create(ACCOUNTS, { name: 'Open' })]
  const [account] = accounts
  for (const one of accounts) {
    await succeed(app.admin('POST', `${ACCOUNTS}/${one}/member`, { user: user.userId }))
    await create(CONTRACT, { account: one, name: 'Contract' })
  }
  const path = `${ACCOUNTS}/${account}/connection`
  const connection = await create(path, { kind: 'oidc', name: 'Corp', oidc: COMPANY_OIDC })
  const domain = await create(`${path}/${connection}/domain`, { domain: 'example.com' })
  await succeed(app.admin('POST', `${path}/${connection}/domain/${domain}/approve`))
  const change = (body: object) => succeed(app.admin('PATCH', `${path}/${connection}`, body))
  await change({ is_enforced: true })

  const flow = await openFlow(fixture, await fixture.client())
  const { tokens } = await flow.signIn(openBrowser(), { user, scope, parameters: { prompt: 'consent' } })
  expect(await reach(tokens.access_token, accounts)).toEqual([false, true])
  await app.database.pool.query(
    `insert into connection_proof (session, connection, proven_at, expires_at)
     select document_id, $1, $2, $3 from session where "user" = $4 and parent is null and client_id is null`,
    [connection, new Date(app.clock.now()), new Date(app.clock.now() + 600_000), user.userId],
  )
  expect(await reach(tokens.access_token, accounts)).toEqual([isProven, true])
  await change({ is_enforced: false })
  expect(await reach(tokens.access_token, accounts)).toEqual([true, true])
  // The domain is proven for one connection.
  await succeed(app.admin('DELETE', `${path}/${connection}`))
})
