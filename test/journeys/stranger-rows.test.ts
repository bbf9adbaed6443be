import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import {
  listJunkRequests,
  listRefusedOauthRequests,
  listShapedRequests,
  type StrangerRequest,
} from '../harness/app/stranger-requests.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import { startOauthFixture } from '../harness/browser/oauth-service.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/**
 * The tables that somebody without a sign-in can insert into. What bounds each is in docs/contract/api.md#rows-of-strangers.
 * A new one needs a bound there first.
 */
const STRANGER_TABLES = [
  'address_proof',
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

const email = 'somebody@example.com'
const fixture = await openForFile(
  startOauthFixture({ env: { OAUTH_REGISTRATION: 'true', SIGN_UP: 'open', SIGN_IN_BY_MAIL: 'true' } }),
)
const client = await fixture.client({
  type: 'public',
  grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
})
await createUserWithPassword(fixture.app, { email }, PASSWORD)

/** Counts the rows of every table, by a statement that is prepared once. */
let countStatement: string | undefined

async function countAll(): Promise<Map<string, number>> {
  const { pool } = fixture.app.database
  countStatement ??= await buildCountStatement()
  const { rows } = await pool.query<{ name: string; count: number }>({ name: 'count all rows', text: countStatement })
  return new Map(rows.map(({ name, count }) => [name, count]))
}

async function buildCountStatement(): Promise<string> {
  const { rows } = await fixture.app.database.pool.query<{ text: string }>(`
    select string_agg(format('select %L as name, count(*)::int as count from %I', table_name, table_name), ' union all ') as text
    from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`)
  return rows[0]!.text
}

const send = ({ method, path, form, json, headers }: StrangerRequest) =>
  fetch(`${fixture.baseUrl}${path}`, {
    method,
    redirect: 'manual',
    ...(form && { body: new URLSearchParams(form), headers: headers ?? {} }),
    ...(json && { body: JSON.stringify(json), headers: { 'content-type': 'application/json' } }),
    ...(!form && !json && headers && { headers }),
  })

test('what somebody without a sign-in can make the service keep is listed, with its bound', async () => {
  const before = await countAll()
  for (const request of listJunkRequests()) await send(request)
  const statuses = []
  for (const request of listShapedRequests({ client, email })) {
    const { status } = await send(request)
    statuses.push([request.path, status])
    if (request.method === 'GET')
      expect([request.path, status]).toEqual([request.path, expect.toBeOneOf([200, 302, 303, 401])])
  }
  expect(statuses.filter(([, status]) => Number(status) >= 500 || status === 404)).toEqual([])
  // The link of a reset, and the answer to a sign-up.
  expect(await readMails(fixture.app, email)).toHaveLength(2)
  const after = await countAll()
  const grown = [...after].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name)
  // Enough of them, or the requests above no longer do what they are here for.
  expect(grown).toEqual(
    expect.arrayContaining(['audit_log', 'login_flow', 'oauth_client', 'oauth_state', 'stranger_row']),
  )
  expect(grown.filter((name) => !STRANGER_TABLES.includes(name))).toEqual([])
})

/** How often each request is sent before it is watched, so that it has met every limit and every state. */
const SENT_BEFORE = 12
/** Of those that need a token: no limit is counted and nothing is read before they are refused. */
const REFUSED_BEFORE = 2
const SENT_MORE = 4

/**
 * Requests that need no sign-in. They are bounded, but each keeps its own row, because it is not
 * refused.
 */
const BEGINNINGS = [
  '/api/v3/auth/login/mail',
  '/api/v3/auth/sign-up',
  '/api/v3/auth/password/forgot',
  '/api/v3/auth/login/passkey/options',
  '/api/v3/auth/login/oauth/dev',
  '/api/v3/oauth/par',
  '/api/v3/oauth/device-authorization',
  '/api/v3/oauth/register',
  '/api/v3/oauth/authorize',
  '/api/v3/oauth/device',
  '/api/v3/oauth/end-session',
]

test('a refused request of a stranger keeps no more rows, however often it is sent', async () => {
  const requests = [
    ...listJunkRequests(),
    ...listShapedRequests({ client, email }),
    ...listRefusedOauthRequests({ client }),
  ]
  const grown: string[] = []
  const begun = new Set<string>()
  let refused = 0
  const sendOften = async (request: StrangerRequest, times: number) => {
    const answers = Array.from({ length: times }, () => send(request))
    return (await Promise.all(answers)).map(({ status }) => status)
  }
  for (const request of requests) await sendOften(request, request.needsToken ? REFUSED_BEFORE : SENT_BEFORE)
  await fixture.app.app.equalEntries.flush()
  let after = await countAll()
  for (const request of requests) {
    const before = after
    const statuses = await sendOften(request, SENT_MORE)
    await fixture.app.app.equalEntries.flush()
    after = await countAll()
    const [path = ''] = request.path.split('?')
    const tables = [...after].filter(([name, count]) => count > (before.get(name) ?? 0))
    const isRefused = statuses.every((status) => status >= 400)
    refused += isRefused ? 1 : 0
    if (tables.length > 0 && !isRefused && BEGINNINGS.includes(path)) begun.add(path)
    else
      for (const [name, count] of tables)
        grown.push(
          `${request.method} ${request.path} (${statuses.at(-1)}): ${name} + ${count - (before.get(name) ?? 0)}`,
        )
  }
  expect(grown).toEqual([])
  // Enough of them, or the test shows nothing.
  expect(refused).toBeGreaterThan(150)
  expect([...begun].sort()).toEqual([...BEGINNINGS].sort())
})

test('the contract says what bounds each of these tables', () => {
  const contract = readFileSync(new URL('../../docs/contract/api.md', import.meta.url), 'utf8')
  const section = contract.split('### Rows of strangers')[1]?.split('\n### ')[0] ?? ''
  const rows = [...section.matchAll(/^\| `([^|]*)` \|/gm)].flatMap(([, names = '']) => names.split('`, `'))
  expect(rows.sort()).toEqual([...STRANGER_TABLES].sort())
})
