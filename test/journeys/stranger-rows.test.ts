import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/app/config.ts'
import { listPages } from '../../src/app/pages.ts'
import { ROUTE_TREE } from '../../src/app/route-tree.ts'
import { createUserWithPassword } from '../harness/known-password.ts'
import { readMails } from '../harness/mailbox.ts'
import { type OauthClient, type OauthWorld, REDIRECT_URI, startOauthWorld } from '../harness/oauth-world.ts'

/**
 * The tables that somebody without a sign-in can insert into. What bounds each is in docs/contract/api.md#rows-of-strangers.
 * A new one needs a bound there first.
 */
const STRANGER_TABLES = [
  'audit_log',
  'event_occurrence',
  'event_queue',
  'factor_challenge',
  'kept_mail',
  'login_flow',
  'login_throttle',
  'mail_outbox',
  'oauth_client',
  'oauth_client_secret',
  'oauth_signing_key',
  'oauth_state',
  'proof_token',
  'rate_limit',
  'stranger_row',
]

const PASSWORD = 'correct horse battery'

let world: OauthWorld
let client: OauthClient
const email = 'somebody@example.com'
beforeAll(async () => {
  world = await startOauthWorld({ env: { OAUTH_REGISTRATION: 'true' } })
  client = await world.client({
    type: 'public',
    grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  })
  await createUserWithPassword(world.app, { email }, PASSWORD)
})
afterAll(() => world?.[Symbol.asyncDispose]())

async function countAll(): Promise<Map<string, number>> {
  const { pool } = world.app.database
  const { rows } = await pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
  )
  const counts = new Map<string, number>()
  for (const { name } of rows)
    counts.set(name, (await pool.query(`select count(*) as count from "${name}"`)).rows[0].count)
  return counts
}

const send = (path: string, { method = 'GET', form, json }: { method?: string; form?: object; json?: object } = {}) =>
  fetch(`${world.baseUrl}${path}`, {
    method,
    redirect: 'manual',
    ...(form && { body: new URLSearchParams(form as Record<string, string>) }),
    ...(json && { body: JSON.stringify(json), headers: { 'content-type': 'application/json' } }),
  })

test('what somebody without a sign-in can make the service keep is listed, with its bound', async () => {
  const before = await countAll()
  const config = readConfig({ APP_ENV: 'development' }, '/nowhere')
  const routes = [...ROUTE_TREE, ...listPages(config).flatMap((feature) => feature.routes)]
  for (const { method, path, page } of routes) {
    const target = path.replace(/\{\w+\}/g, 'dev')
    const isGet = method === 'GET'
    await send(target, { method, ...(!isGet && (page ? { form: { a: 'b' } } : { json: {} })) })
  }
  const auth = '/api/v3/auth'
  const oauth = '/api/v3/oauth'
  const request = {
    client_id: client.id,
    response_type: 'code',
    redirect_uri: REDIRECT_URI,
    scope: 'openid',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWWaWaWaWaWaW',
    code_challenge_method: 'S256',
  }
  const posts: [string, { form?: object; json?: object }][] = [
    [`${auth}/login/local`, { json: { email, password: 'wrong horse battery' } }],
    [`${auth}/login/local`, { json: { email: 'nobody@example.com', password: 'wrong horse battery' } }],
    [`${auth}/password/forgot`, { json: { email } }],
    [`${auth}/password/forgot`, { json: { email: 'nobody@example.com' } }],
    [`${auth}/password/reset`, { json: { token: 'x'.repeat(43), password: PASSWORD } }],
    [`${auth}/email/verify`, { json: { token: 'x'.repeat(43) } }],
    [`${auth}/login/passkey/options`, { json: {} }],
    [`${auth}/session/refresh`, { json: { refresh_token: 'sbr_junk' } }],
    [`${auth}/sso/exchange`, { json: { token: 'junk' } }],
    [`${auth}/login/code`, { json: { code: 'junk' } }],
    [`${auth}/invitation/accept`, { json: { token: 'x'.repeat(43) } }],
    [`${oauth}/par`, { form: request }],
    [`${oauth}/device-authorization`, { form: { client_id: client.id } }],
    [`${oauth}/device`, { form: { user_code: 'BBBB-BBBB' } }],
    [`${oauth}/register`, { json: { redirect_uris: [REDIRECT_URI] } }],
    [`${oauth}/token`, { form: { client_id: client.id, grant_type: 'refresh_token', refresh_token: 'junk' } }],
    [`${oauth}/introspect`, { form: { client_id: client.id, token: 'junk' } }],
    [`${oauth}/revoke`, { form: { client_id: client.id, token: 'junk' } }],
  ]
  const statuses = []
  for (const [path, body] of posts) statuses.push([path, (await send(path, { method: 'POST', ...body })).status])
  expect(statuses.filter(([, status]) => Number(status) >= 500 || status === 404)).toEqual([])
  for (const path of [
    `${auth}/login/oauth/dev?redirect_url=${encodeURIComponent('http://localhost:4711/')}`,
    `${auth}/login/oauth/dev/callback?state=junk&code=junk`,
    `${oauth}/authorize?${new URLSearchParams(request)}`,
    `${oauth}/device`,
    `${oauth}/end-session`,
  ])
    expect([path, (await send(path)).status]).toEqual([path, expect.toBeOneOf([200, 302, 303, 401])])
  expect(await readMails(world.app, email)).toHaveLength(1)
  const after = await countAll()
  const grown = [...after].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name)
  // Enough of them, or the requests above no longer do what they are here for.
  expect(grown).toEqual(
    expect.arrayContaining(['audit_log', 'login_flow', 'oauth_client', 'oauth_state', 'stranger_row']),
  )
  expect(grown.filter((name) => !STRANGER_TABLES.includes(name))).toEqual([])
})

test('the contract says what bounds each of these tables', () => {
  const contract = readFileSync(new URL('../../docs/contract/api.md', import.meta.url), 'utf8')
  const section = contract.split('### Rows of strangers')[1]?.split('\n### ')[0] ?? ''
  const rows = [...section.matchAll(/^\| `([^|]*)` \|/gm)].flatMap(([, names = '']) => names.split('`, `'))
  expect(rows.sort()).toEqual([...STRANGER_TABLES].sort())
})
