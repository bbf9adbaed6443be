import { statement } from '../../postgres/statement/statement.ts'
import type { ClientId } from '../client/client.store.ts'

/** Consents of a client that are counted: beyond them the answer does not grow, and neither does its cost. */
export const CONSENT_LIMIT = 1_000

/** How much a client is used. */
export interface ClientUsage {
  client: ClientId
  /** Consents that hold, up to `CONSENT_LIMIT`. */
  consents: number
  /** Last issue of a token, to the hour, or authentication by a secret, to the minute; null before the first. */
  lastUsedAt: Date | null
}

/** The use of these clients, in their order, without deleted ones. `offset 0` looks each up by its key. */
export const readClientUsage = statement<ClientUsage, { ids: readonly string[] }>(`
  select c.document_id as client, g.consents, greatest(u.used_at, s.used_at) as "lastUsedAt"
  from (select id, min(place) as place from unnest($ids::uuid[]) with ordinality as x (id, place) group by id) x
  cross join lateral (select document_id from oauth_client where document_id = x.id and deleted_at is null offset 0) c
  cross join lateral (
    select count(*)::int as consents from (
      select from oauth_grant where client = c.document_id and revoked_at is null limit ${CONSENT_LIMIT}
    ) counted
  ) g
  left join lateral (
    select used_at from oauth_grant_use where client = c.document_id order by used_at desc limit 1
  ) u on true
  cross join lateral (
    select max(last_used_at) as used_at from (
      select last_used_at from oauth_client_secret where client = c.document_id offset 0
    ) secret
  ) s
  order by x.place`)
