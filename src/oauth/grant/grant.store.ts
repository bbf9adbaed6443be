import { type SqlBool, sql } from 'kysely'
import type { Id, UserId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { closingStatement, isNull, statement } from '../../postgres/statement/statement.ts'
import type { ClientId } from '../client/client.store.ts'

export type GrantId = Id<'oauth grant'>

/** What a person allows a client to do: a row of the `oauth_grant` table. */
export interface GrantRecord {
  id: GrantId
  userId: UserId
  clientId: ClientId
  scopes: string[]
  /** Scopes that were asked for and not given. */
  refusedScopes: string[]
  /** Those that the consent was given for. */
  redirectUris: string[]
  createdAt: Date
  updatedAt: Date
}

interface GrantColumns {
  document_id: string
  user: string
  client: string
  scopes: string[]
  refused_scopes: string[]
  /** Left out where nobody is asked by it. */
  redirect_uris?: string[]
  created_at: Date
  updated_at: Date
}

const OF_GRANT =
  'g.document_id, g."user", g.client, g.scopes, g.refused_scopes, g.redirect_uris, g.created_at, g.updated_at'

/** Maps a row of the `oauth_grant` table. */
export function toGrantRecord(row: GrantColumns): GrantRecord {
  return {
    id: row.document_id as GrantId,
    userId: row.user as UserId,
    clientId: row.client as ClientId,
    scopes: row.scopes,
    refusedScopes: row.refused_scopes,
    redirectUris: row.redirect_uris ?? [],
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

/** The grants that are not revoked, with the names of their clients, as the base of a list: of one user, or of all. */
export function selectGrants(db: Database, owner: UserId | 'all') {
  const all = db
    .selectFrom('oauth_grant as g')
    // Joined without a barrier, the clients may be read through for the grants of one user.
    .innerJoinLateral(
      ({ selectFrom }) =>
        selectFrom('oauth_client')
          .select(['name', 'publisher'])
          .whereRef('oauth_client.document_id', '=', 'g.client')
          .offset(sql.lit(0))
          .as('c'),
      (join) => join.onTrue(),
    )
    .select([
      'g.document_id',
      'g.user',
      'g.client',
      'g.scopes',
      'g.refused_scopes',
      'g.created_at',
      'g.updated_at',
      'c.name as client_name',
      'c.publisher',
    ])
  // The index of live grants is that of a user; without one, it would be read through and sorted for each page.
  if (owner === 'all') return all.where(sql<SqlBool>`${sql.raw(isNull('g.revoked_at'))}`)
  return all.where('g.revoked_at', 'is', null).where('g.user', '=', owner)
}

const selectOfClient = statement<GrantColumns, { userId: string; clientId: string }>(
  `select ${OF_GRANT} from oauth_grant g where g."user" = $userId and g.client = $clientId and g.revoked_at is null`,
)

/** What a user allows a client. */
export async function findGrantOf(db: Database, userId: string, clientId: string): Promise<GrantRecord | undefined> {
  const [row] = await selectOfClient(db, { userId, clientId })
  return row && toGrantRecord(row)
}

type WrittenGrant = Pick<GrantRecord, 'id' | 'userId' | 'clientId' | 'scopes' | 'refusedScopes'> & { now: Date }

const upsert = statement<GrantColumns, WrittenGrant & Pick<GrantRecord, 'redirectUris'>>(`
  insert into oauth_grant as g (document_id, "user", client, scopes, refused_scopes, redirect_uris, created_at, updated_at)
  values ($id, $userId, $clientId, $scopes, $refusedScopes, $redirectUris, $now, $now)
  on conflict ("user", client) where revoked_at is null
  do update set scopes = excluded.scopes, refused_scopes = excluded.refused_scopes,
    redirect_uris = excluded.redirect_uris, updated_at = excluded.updated_at
  returning ${OF_GRANT}`)

const widen = statement<GrantColumns, WrittenGrant>(`
  insert into oauth_grant as g (document_id, "user", client, scopes, refused_scopes, created_at, updated_at)
  values ($id, $userId, $clientId, $scopes, $refusedScopes, $now, $now)
  on conflict ("user", client) where revoked_at is null
  do update set scopes = g.scopes || array(select unnest(excluded.scopes) except select unnest(g.scopes)),
    refused_scopes = excluded.refused_scopes, updated_at = excluded.updated_at
  returning ${OF_GRANT}`)

const lockSilent = statement<{ may_grant: boolean }, { userId: UserId; clientId: ClientId }>(
  'select lock_silent_grant($userId, $clientId) as may_grant',
)

/**
 * Locks the person and the first-party client of a grant without a question until the transaction ends. False when the
 * person is not active, or the client is deleted or not first-party any more.
 */
export async function lockSilentGrant(
  db: Database,
  { userId, clientId }: Pick<GrantRecord, 'userId' | 'clientId'>,
): Promise<boolean> {
  const [row] = await lockSilent(db, { userId, clientId })
  return row?.may_grant === true
}

/**
 * Adds scopes to what a user allows a client, both locked, to whatever it is by then; a new row where there is none.
 */
export async function widenGrant(db: Database, row: WrittenGrant): Promise<GrantRecord> {
  const [kept] = await widen(db, row)
  if (!kept) throw new Error('a grant was not written')
  return toGrantRecord(kept)
}

/** Writes what a user allows a client: a new row, or what the one that there is says, which the caller has locked. */
export async function upsertGrant(
  db: Database,
  row: WrittenGrant & Pick<GrantRecord, 'redirectUris'>,
): Promise<GrantRecord> {
  const [kept] = await upsert(db, row)
  if (!kept) throw new Error('a grant was not written')
  return toGrantRecord(kept)
}

const lockOne = statement<GrantColumns & { client_name: string; publisher: string | null }, { id: string }>(`
  select ${OF_GRANT}, c.name as client_name, c.publisher
  from oauth_grant g join oauth_client c on c.document_id = g.client
  where g.document_id = $id and ${isNull('g.revoked_at')} for no key update of g`)

/** Locks a grant that is not revoked, until the transaction ends. */
export async function lockGrant(
  db: Database,
  id: string,
): Promise<(GrantRecord & { clientName: string; publisher: string | null }) | undefined> {
  const [row] = await lockOne(db, { id })
  return row && { ...toGrantRecord(row), clientName: row.client_name, publisher: row.publisher }
}

const revoke = closingStatement<{ id: GrantId; now: Date }>(`
  ended_grant as (update oauth_grant set revoked_at = $now, updated_at = $now where document_id = $id)`)

/** Revokes a locked grant, whose codes and tokens `end_grant` ends, with the last statement of the transaction. */
export function revokeGrantRow(db: Database, id: GrantId, now: Date): Promise<void> {
  return revoke(db, { id, now })
}
