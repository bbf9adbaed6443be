import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { explainStatements } from '../../../test/harness/plan/explain.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { CONSENT_LIMIT, readClientUsage } from './client-usage.store.ts'

const PATH = '/api/v3/oauth/dashboard/client'
const UNKNOWN = '00000000-0000-7000-8000-000000000000'

const app = await openForFile(createTestApp())

const ask = (...clients: string[]) => `${PATH}?${clients.map((id) => `client=${id}`).join('&')}`
const read = async (...clients: string[]) => (await app.admin('GET', ask(...clients))).body.data
const at = (ageMs: number) => new Date(app.clock.now() - ageMs)

const makeClient = async (type: 'public' | 'confidential'): Promise<string> => {
  const body = { name: 'Example app', type, redirect_uris: ['https://app.example.com/callback'] }
  return (await app.admin('POST', '/api/v3/oauth/client', body)).body.data.document_id
}

/** Adds consents of new users, used at this age. */
async function addConsents(client: string, count: number, more: { revoked?: boolean; usedAgeMs?: number } = {}) {
  const { pool } = app.database
  const { rows } = await pool.query(
    `with people as (
      insert into "user" (document_id, email, created_at, updated_at)
      select gen_random_uuid(), 'consents-' || gen_random_uuid() || '@example.test', now(), now()
      from generate_series(1, $2::int) returning document_id)
    insert into oauth_grant (document_id, "user", client, scopes, refused_scopes, created_at, updated_at, revoked_at)
    select gen_random_uuid(), document_id, $1::uuid, '{openid}', '{}', now(), now(), $3::timestamptz from people
    returning document_id`,
    [client, count, more.revoked ? at(0) : null],
  )
  if (more.usedAgeMs === undefined) return
  await pool.query(
    'insert into oauth_grant_use (grant_id, client, used_at) select unnest($1::uuid[]), $2::uuid, $3::timestamptz',
    [rows.map((row) => row.document_id), client, at(more.usedAgeMs)],
  )
}

test('a client has its consents that hold, and the last use of a token or a secret, none of them another client', async () => {
  const [used, proven, unused] = [
    await makeClient('public'),
    await makeClient('confidential'),
    await makeClient('public'),
  ]
  await addConsents(used, 2, { usedAgeMs: 7_200_000 })
  await addConsents(used, 1, { usedAgeMs: 3_600_000 })
  await addConsents(used, 3, { revoked: true, usedAgeMs: 9_000_000 })
  await addConsents(proven, 1, { usedAgeMs: 7_200_000 })
  const { pool } = app.database
  await pool.query('update oauth_client_secret set last_used_at = $2 where client = $1', [proven, at(60_000)])
  expect(await read(unused, used, UNKNOWN, proven, used)).toEqual([
    { client: unused, consents: 0, last_used_at: null },
    { client: used, consents: 3, last_used_at: at(3_600_000).toISOString() },
    { client: proven, consents: 1, last_used_at: at(60_000).toISOString() },
  ])
  await app.admin('DELETE', `/api/v3/oauth/client/${used}`)
  expect(await read(used)).toEqual([])
})

test(`consents are counted up to ${CONSENT_LIMIT}, and the last use is read by its index at any number of them`, async () => {
  const client = await makeClient('public')
  const { pool, db } = app.database
  await addConsents(client, 3 * CONSENT_LIMIT, { usedAgeMs: 7_200_000 })
  await addConsents(client, 1, { usedAgeMs: 1_000 })
  await pool.query('analyze oauth_grant, oauth_grant_use')
  expect(await readClientUsage(db, { ids: [client] })).toEqual([
    { client, consents: CONSENT_LIMIT, lastUsedAt: at(1_000) },
  ])
  const plans = await explainStatements(app.database, (explained) => readClientUsage(explained, { ids: [client] }))
  const nodes = plans.flatMap((plan) => plan.nodes).filter((node) => node['Node Type'].includes('Scan'))
  const countOf = (table: string) =>
    nodes
      .filter((node) => node['Relation Name'] === table)
      .reduce((sum, node) => sum + (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0), 0)
  expect([countOf('oauth_grant'), countOf('oauth_grant_use')]).toEqual([CONSENT_LIMIT, 1])
})

describe('a caller', () => {
  test('needs the permission oauth-client:dashboard-clients', async () => {
    const path = ask(randomUUID())
    expect((await app.anonymous('GET', path)).status).toBe(401)
    const refused = await (await app.signInMember([])).call('GET', path)
    expect([refused.status, refused.body.detail]).toEqual([
      403,
      expect.stringContaining('oauth-client:dashboard-clients'),
    ])
  })

  test.each([
    ['no client', PATH],
    ['what is no id', `${PATH}?client=billing`],
    ['51 clients', ask(...Array(51).fill(UNKNOWN))],
  ])('who asks for %s gets a 422', async (_name, path) => {
    expect((await app.admin('GET', path)).status).toBe(422)
  })
})
