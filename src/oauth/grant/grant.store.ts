import { type SqlBool, sql } from 'kysely'
import type { Id, UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, isNull, rowStatement, soleRowStatement } from '../../postgres/statement/statement.ts'

export type GrantId = Id<'oauth grant'>

/** Grant of a user to a client. `refusedScopes` were requested and refused; `redirectUris` are those of the consent. */
export const grant = defineRecord(
  'oauth_grant',
  ['document_id', 'user', 'client', 'scopes', 'refused_scopes', 'redirect_uris', 'created_at', 'updated_at'],
  { user: 'userId', client: 'clientId' },
)
export type GrantRecord = RecordOf<typeof grant>

/** A grant with the display names of its client. */
export type NamedGrant = GrantRecord & { clientName: string; publisher: string | null }

/** The grants that are not revoked, with the names of their clients, as the base of a list: of one user, or of all. */
export function selectGrants(db: Database, owner: UserId | 'all') {
  const joined = db
    .selectFrom('oauth_grant as g')
    // Without this barrier the join may read all clients for the grants of one user.
    .innerJoinLateral(
      ({ selectFrom }) =>
        selectFrom('oauth_client')
          .select(['name', 'publisher'])
          .whereRef('oauth_client.document_id', '=', 'g.client')
          .offset(sql.lit(0))
          .as('c'),
      (join) => join.onTrue(),
    )
  const all = selectRecord(joined, grant, 'g').select(['c.name as clientName', 'c.publisher'])
  // The index of live grants begins with the user; without a user, each page would read and sort all of it.
  if (owner === 'all') return all.where(sql<SqlBool>`${sql.raw(isNull('g.revoked_at'))}`)
  return all.where('g.revoked_at', 'is', null).where('g.user', '=', owner)
}

/** Grant of a user to a client. */
export const findGrantOf = rowStatement<GrantRecord, { userId: string; clientId: string }>(
  `select ${grant.members('g')} from oauth_grant g where g."user" = $userId and g.client = $clientId and g.revoked_at is null`,
)

type WrittenGrant = Pick<GrantRecord, 'id' | 'userId' | 'clientId' | 'scopes' | 'refusedScopes'> & { now: Date }

/** Writes the grant of a user to a client: a new row, or the existing one, which the caller has locked. */
export const upsertGrant = soleRowStatement<GrantRecord, WrittenGrant & Pick<GrantRecord, 'redirectUris'>>(`
  insert into oauth_grant as g (document_id, "user", client, scopes, refused_scopes, redirect_uris, created_at, updated_at)
  values ($id, $userId, $clientId, $scopes, $refusedScopes, $redirectUris, $now, $now)
  on conflict ("user", client) where revoked_at is null
  do update set scopes = excluded.scopes, refused_scopes = excluded.refused_scopes,
    redirect_uris = excluded.redirect_uris, updated_at = excluded.updated_at
  returning ${grant.members('g')}`)

/** Adds scopes to the current grant of a user to a client, both locked; inserts a new row if missing. */
export const widenGrant = soleRowStatement<GrantRecord, WrittenGrant>(`
  insert into oauth_grant as g (document_id, "user", client, scopes, refused_scopes, created_at, updated_at)
  values ($id, $userId, $clientId, $scopes, $refusedScopes, $now, $now)
  on conflict ("user", client) where revoked_at is null
  do update set scopes = g.scopes || array(select unnest(excluded.scopes) except select unnest(g.scopes)),
    refused_scopes = excluded.refused_scopes, updated_at = excluded.updated_at
  returning ${grant.members('g')}`)

/** Locks user and client of a grant without a question. False for an inactive user, or no first-party client. */
export const lockSilentGrant = soleRowStatement<
  { mayGrant: boolean | null },
  Pick<GrantRecord, 'userId' | 'clientId'>,
  boolean
>('select lock_silent_grant($userId, $clientId) as "mayGrant"', ({ mayGrant }) => mayGrant === true)

/** Locks a grant that is not revoked, until the transaction ends. */
export const lockGrant = rowStatement<NamedGrant, { id: string }>(`
  select ${grant.members('g')}, c.name as "clientName", c.publisher
  from oauth_grant g join oauth_client c on c.document_id = g.client
  where g.document_id = $id and ${isNull('g.revoked_at')} for no key update of g`)

/** Revokes a locked grant, whose codes and tokens `end_grant` revokes, with the last statement of the transaction. */
export const revokeGrantRow = closingStatement<{ id: GrantId; now: Date }>(`
  ended_grant as (update oauth_grant set revoked_at = $now, updated_at = $now where document_id = $id)`)
