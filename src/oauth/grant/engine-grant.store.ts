import { sql } from 'kysely'
import type { UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, selectRecord } from '../../postgres/statement/record.ts'
import { aheadStatement, rowStatement, soleRowStatement, statement } from '../../postgres/statement/statement.ts'
import type { ClientId } from '../client/client.store.ts'
import type { GrantId, NamedGrant } from './grant.store.ts'

/** A grant at a managed engine, which keeps neither the scopes that were refused nor the URIs of a consent. */
const engineGrant = defineRecord(
  'engine_grant',
  ['document_id', 'user', 'client', 'scopes', 'created_at', 'updated_at', 'client_name'],
  { user: 'userId', client: 'clientId' },
).typed<{ id: GrantId; clientId: ClientId }>()

const NOT_KEPT = `'{}'::text[] as "refusedScopes", '{}'::text[] as "redirectUris", null::text as publisher`

/** The grants at a managed engine that are not revoked, as the base of a list: of one user, or of all. */
export function selectEngineGrants(db: Database, owner: UserId | 'all') {
  const live = selectRecord(db.selectFrom('engine_grant as g'), engineGrant, 'g')
    .select([
      sql<string[]>`'{}'::text[]`.as('refusedScopes'),
      sql<string[]>`'{}'::text[]`.as('redirectUris'),
      sql<string | null>`null`.as('publisher'),
    ])
    .where('g.revoked_at', 'is', null)
  return owner === 'all' ? live : live.where('g.user', '=', owner)
}

/** Locks a grant at a managed engine that is not revoked, until the transaction ends. */
export const lockEngineGrant = rowStatement<NamedGrant, { id: string }>(`
  select ${engineGrant.members('g')}, ${NOT_KEPT}
  from engine_grant g where g.document_id = $id and g.revoked_at is null for no key update`)

/** Grant of a user to an app. */
interface WrittenGrant {
  id: GrantId
  userId: UserId
  clientId: string
  clientName: string
  scopes: readonly string[]
  now: Date
}

/** Writes a user's grant to an app: a new one, or the scopes of the existing one. Returns its id. */
export const upsertEngineGrant = soleRowStatement<{ id: GrantId }, WrittenGrant, GrantId>(
  `insert into engine_grant as g (document_id, "user", client, client_name, scopes, created_at, updated_at)
  values ($id, $userId, $clientId, $clientName, $scopes, $now, $now)
  on conflict ("user", client) do update set client_name = excluded.client_name, scopes = excluded.scopes,
    document_id = case when g.revoked_at is null then g.document_id else excluded.document_id end,
    created_at = case when g.revoked_at is null then g.created_at else excluded.created_at end,
    updated_at = excluded.updated_at, revoked_at = null, is_ended_there = false
  returning document_id as id`,
  ({ id }) => id,
)

/** Grant of a user to an app, as the engine lists it. */
export interface ListedGrant {
  id: GrantId
  clientId: string
  clientName: string
  scopes: readonly string[]
}

const record = statement<never, { userId: UserId; rows: string; readAt: Date }>(`
  insert into engine_grant as g (document_id, "user", client, client_name, scopes, created_at, updated_at)
  select t.id, $userId, t.client, t.name, t.scopes, $readAt, $readAt
  from jsonb_to_recordset($rows::jsonb) as t (id uuid, client uuid, name text, scopes text[])
  on conflict ("user", client) do update set client_name = excluded.client_name,
    scopes = case when g.revoked_at is null then array(select distinct unnest(g.scopes || excluded.scopes))
      else excluded.scopes end,
    document_id = case when g.revoked_at is null then g.document_id else excluded.document_id end,
    created_at = case when g.revoked_at is null then g.created_at else excluded.created_at end,
    updated_at = excluded.updated_at, revoked_at = null, is_ended_there = false
  where (g.revoked_at is null and not excluded.scopes <@ g.scopes)
    or (g.revoked_at < $readAt and g.is_ended_there)`)

/**
 * Records the engine's list of grants: a user may have granted an app access only there. `readAt` is before the call of
 * the engine: grants revoked here since stay revoked. A grant revoked before, also at the engine, was granted again.
 */
export async function recordEngineGrants(
  db: Database,
  { userId, grants, readAt }: { userId: UserId; grants: readonly ListedGrant[]; readAt: Date },
): Promise<void> {
  const rows = grants.map(({ id, clientId, clientName, scopes }) => ({
    id,
    client: clientId,
    name: clientName,
    scopes,
  }))
  await record(db, { userId, rows: JSON.stringify(rows), readAt })
}

/** Revokes a grant with the sessions of its app, in the round trip of the next statement of the transaction. */
export const endEngineGrantWithNext = aheadStatement<{ userId: UserId; clientId: ClientId; now: Date }>(
  'select from end_engine_grant($userId, $clientId, $now)',
)

/** The apps whose grant of this user is revoked here, and not yet at the engine. */
export const listOpenRevocations = statement<{ client: string }, { userId: UserId }, string>(
  'select client from engine_grant where "user" = $userId and revoked_at is not null and not is_ended_there',
  ({ client }) => client,
)

/** Notes that the engine has ended revoked grants too. */
export const noteEndedThere = statement<never, { userId: UserId; clientIds: readonly string[] }>(
  `update engine_grant set is_ended_there = true
   where "user" = $userId and client = any($clientIds::uuid[]) and revoked_at is not null`,
)
