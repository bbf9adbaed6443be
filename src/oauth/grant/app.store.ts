import type { UserId } from '../../base/id.ts'
import { statement } from '../../postgres/statement/statement.ts'
import type { GrantId } from './grant.store.ts'

/** Maximum number of apps on a page. */
const APPS_LIMIT = 200

/** An app with a grant of a user. */
export interface AppWithAccess {
  grantId: GrantId
  clientId: string
  name: string
  publisher: string | null
  logoHash: string | null
  scopes: string[]
  since: Date
  /** Last issue of a token or use of the app's session, to the hour; null before the first. */
  lastUsedAt: Date | null
}

const SESSION_USED =
  'select max(s.last_used_at) from session s where s.grant_id = g.document_id::text and s.revoked_at is null'

/** The apps with a grant of a user, the most recently used first. */
export const listApps = statement<AppWithAccess, { userId: UserId }>(`
  select g.document_id as "grantId", g.client as "clientId", c.name, c.publisher, c.logo_hash as "logoHash", g.scopes,
    g.created_at as since,
    greatest((select u.used_at from oauth_grant_use u where u.grant_id = g.document_id), (${SESSION_USED})) as "lastUsedAt"
  from oauth_grant g
    cross join lateral (select * from oauth_client x where x.document_id = g.client offset 0) c
  where g."user" = $userId and g.revoked_at is null
  order by "lastUsedAt" desc nulls last, g.created_at desc limit ${APPS_LIMIT}`)

/** As `listApps`, of the apps of a managed engine. */
export const listEngineApps = statement<AppWithAccess, { userId: UserId }>(`
  select g.document_id as "grantId", g.client as "clientId", g.client_name as name, null as publisher,
    null as "logoHash", g.scopes, g.created_at as since,
    (${SESSION_USED}) as "lastUsedAt"
  from engine_grant g where g."user" = $userId and g.revoked_at is null
  order by "lastUsedAt" desc nulls last, g.created_at desc limit ${APPS_LIMIT}`)
