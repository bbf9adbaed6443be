/**
 * The statements of the bare routes, each prepared once a connection under its name. They read and write the tables and
 * columns that the service does.
 */
export const BARE_STATEMENTS = {
  findContract: `select * from contract where document_id = $1 and deleted_at is null`,
  listContracts: `
    select *, created_at as listing_sort, document_id as listing_id from contract where deleted_at is null
    order by created_at desc, document_id desc limit $1`,
  findSession: `
    select s.document_id, s.parent, s.address, s.user_agent, s.expires_at, s.created_at, s.updated_at, s.account,
      u.document_id as user_id, u.email, u.name, u.avatar_url,
      array(select distinct p.pattern from user_role ur
        join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
        where ur."user" = u.document_id and not r.is_account_scoped) as permissions,
      array(select distinct p.pattern from user_role ur
        join role r on r.document_id = ur.role join role_permission p on p.role = r.document_id
        where ur."user" = u.document_id and r.is_account_scoped) as account_permissions,
      array(select json_build_object('document_id', a.document_id, 'name', a.name)
        from account_member m join account a on a.document_id = m.account
        where m."user" = u.document_id and a.deleted_at is null order by m.created_at, m.document_id) as accounts
    from session s join "user" u on u.document_id = s."user"
    where s.document_id = $1 and s."user" = $2 and s.revoked_at is null and s.expires_at > $3
      and u.is_actived and u.deleted_at is null`,
  updateContract: `
    update contract set name = $2, updated_by = $3, updated_at = $4 where document_id = $1 and deleted_at is null
    returning *`,
  insertEvent: `
    insert into event_occurrence (document_id, event, account, resource, action, resource_id, url, is_purge,
      excluded_webhook, trace_context, created_at)
    values ($1, $2, $3, $4, $5, $6, $7, false, null, $8, $9)`,
  insertAudit: `
    insert into audit_log (document_id, action, outcome, "user", session, api_key, account, target, address, request_id,
      detail, created_at)
    values ($1, $2, 'success', $3, $4, null, $5, $6, $7, $8, '{}', $9)`,
  insertIdempotencyKey: `
    insert into idempotency_key (caller, route, key, body_hash, status_code, response, location, created_at)
    values ($1, $2, $3, $4, 200, $5, null, $6)`,
  addHit: `
    insert into rate_limit (bucket, window_started_at, hits) values ($1, $2, 1)
    on conflict (bucket, window_started_at) do update set hits = rate_limit.hits + 1 returning hits`,
  insertNonce: `insert into sso_nonce (nonce_hash, expires_at) values ($1, $2)`,
  findParent: `
    select s.expires_at from session s join "user" u on u.document_id = s."user"
    where s.document_id = $1 and s."user" = $2 and s.revoked_at is null and s.expires_at > $3
      and u.is_actived and u.deleted_at is null for no key update`,
  insertSession: `
    insert into session (document_id, "user", parent, address, expires_at, auth_time, last_used_at, created_at, updated_at)
    values ($1, $2, $3, $4, $5, $6, $6, $6, $6)`,
  spendRefresh: `
    update session_refresh t set spent_at = $2 from session s
    where t.token_hash = $1 and t.spent_at is null and t.expires_at > $2 and s.document_id = t.session
      and s.revoked_at is null and s.expires_at > $2
    returning s.document_id, s."user", s.expires_at`,
  insertRefresh: `insert into session_refresh (token_hash, session, expires_at, created_at) values ($1, $2, $3, $4)`,
} as const

export type BareStatement = keyof typeof BARE_STATEMENTS
