import type pg from 'pg'
import { expect } from 'vitest'
import type { Filled } from '../../../bench/lists/population.ts'
import { createTestApp, type TestApp, type TestCall } from '../app/app.ts'
import type { TestDatabase } from '../database/database.ts'
import { type ExecutedStatement, openMeasuring } from './explain.ts'

/** Tables of what a release brings, and of what has a limit for all: their size does not follow from others. */
const SMALL = ['event', 'permission', 'role', 'role_permission', 'provisioning_target']

/** The kinds of callers of a list. */
export const CALLERS = ['operator', 'member of one', 'member of 50', 'key of one', 'member of another'] as const
export type CallerName = (typeof CALLERS)[number]

/** How many accounts each of them reaches, one for all. */
export const ACCOUNTS: Record<CallerName, number> = {
  operator: 1,
  'member of one': 1,
  'member of 50': 50,
  'key of one': 1,
  'member of another': 1,
}

/** A service beside a population, whose lists are planned with these settings. */
export async function openListsFixture(database: TestDatabase, settings: string) {
  let executed: ExecutedStatement[] = []
  const reads = openMeasuring(database.connectionString, settings, (step) => executed.push(step))
  const app = await createTestApp({ database, readDatabase: reads })
  return {
    app,
    /** The rows of tables, and entries that were left out, that a list read for `caller`. */
    countRead: async (caller: TestCall, path: string) => {
      executed = []
      const answer = await caller('GET', path)
      if (answer.status === 200)
        expect(executed.length, `statements of ${path} over the pool of reads`).toBeGreaterThan(0)
      const nodes = executed.flatMap((item) => item.nodes)
      const rows = nodes.reduce((sum, node) => {
        const { 'Relation Name': table, 'Actual Rows': read = 0, 'Actual Loops': loops = 1 } = node
        const left = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
        return table === undefined || SMALL.includes(table) ? sum : sum + (read + left) * loops
      }, 0)
      const steps = nodes.map((node) =>
        ['Node Type', 'Index Name', 'Actual Rows', 'Actual Loops', 'Rows Removed by Filter']
          .map((name) => node[name as keyof typeof node] ?? '')
          .join(' '),
      )
      return { answer, rows, plan: [...executed.map((item) => item.sql), ...steps].join('\n') }
    },
    [Symbol.asyncDispose]: async () => {
      await app[Symbol.asyncDispose]()
      await reads.close()
    },
  }
}

/** Makes the callers over the API. */
export async function makeCallers({ admin, signInMember, callAs }: TestApp, { own, other }: Filled) {
  const { data: roles } = (await admin('GET', '/api/v3/identity/role?filters=name|eq|account-admin')).body
  const addMember = async (accounts: readonly string[]) => {
    const { userId, call } = await signInMember()
    for (const account of accounts) {
      const body = { user: userId, roles: [roles[0].document_id] }
      expect((await admin('POST', `/api/v3/identity/account/${account}/member`, body)).status).toBe(201)
    }
    return call
  }
  const [first = ''] = own
  const memberOfOne = await addMember([first])
  const permissions = ['webhook:find-all', 'webhook-event:find-all', 'webhook-dispatch:find-all', 'contract:find-all']
  const body = { name: 'bound', account: first, permissions: [...permissions, 'event-occurrence:find-all'] }
  const key = await memberOfOne('POST', '/api/v3/identity/api-key', body)
  expect(key.status).toBe(201)
  const callers: Record<CallerName, TestCall> = {
    operator: admin,
    'member of one': memberOfOne,
    'member of 50': await addMember(own),
    'key of one': callAs(key.body.data.key),
    'member of another': await addMember([other]),
  }
  return callers
}

/** Rows of each table that a population leaves empty. */
const RARE_ROWS = 3_000

const AT = `now() - n * interval '1 minute'`
const PERSON = '(select document_id from "user" order by created_at limit 1)'

/** Fills the tables of lists that a population leaves empty, and analyses them. */
export async function fillRareTables(client: pg.ClientBase): Promise<void> {
  const rows = `generate_series(1, ${RARE_ROWS}) n`
  await client.query(`begin; set local session_replication_role = replica;
    insert into api_key (document_id, "user", name, token_hash, hint, permissions, created_at, updated_at)
      select gen_random_uuid(), ${PERSON}, 'Key ' || n, sha256(n::text::bytea), 'hint', '{}', ${AT}, ${AT} from ${rows};
    insert into oauth_client (document_id, name, type, application_type, redirect_uris, post_logout_redirect_uris,
        grant_types, scopes, first_party, id_token_signed_response_alg, dpop_bound_access_tokens, registration, created_at,
        updated_at)
      select gen_random_uuid(), 'App ' || n, 'public', 'web', '{}', '{}', '{}', '{}', false, 'ES256', false, 'dynamic',
        ${AT}, ${AT} from ${rows};
    insert into oauth_grant (document_id, "user", client, scopes, refused_scopes, created_at, updated_at)
      select gen_random_uuid(), ${PERSON}, c.document_id, '{}', '{}', c.created_at, c.updated_at from oauth_client c;
    insert into realtime_channel_event (document_id, origin, position, name, channel, happened_at, created_at)
      select gen_random_uuid(), 'filled', n, 'cache_miss', 'channel-' || n, ${AT}, ${AT} from ${rows};
    commit;
    analyze`)
}

/**
 * Cost of a page for each row that it reads: the row, and another one that the row refers to. A user is listed with its roles
 * and accounts, at most ten of these. Of each role for members all permissions are compared with those of the caller.
 */
export const readsARow = (event: string) => {
  if (event === 'account-member.find-roles') return 20
  return ['user.find-all', 'provisioning-target.find-streams'].includes(event) ? 5 : 3
}
