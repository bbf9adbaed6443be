/**
 * Every table, by what a move of an account does with it (docs/decisions/0062-cells.md). A test compares the lists with
 * the schema, so that a new table is classified when it is made.
 *
 * `LEDGER`: grows with what happened; copied in pages, each committed, while nothing of the account changes. `STATE`: what
 * is left, copied in one transaction, in the order of its references. `$account` and `$webhooks` stand for the account
 * and its own webhooks.
 */

/** A part of the ledger: the column that finds the rows of an account or of one of its webhooks, behind an index. */
export interface LedgerPart {
  table: string
  column: string
  of: 'account' | 'webhook'
}

export const LEDGER: readonly LedgerPart[] = [
  { table: 'event_occurrence', column: 'account', of: 'account' },
  { table: 'webhook_dispatch_ended', column: 'webhook', of: 'webhook' },
  { table: 'realtime_message_ended', column: 'account', of: 'account' },
  // Audit entries of webhooks; entries of its account stay where they were written.
  { table: 'audit_log', column: 'target', of: 'webhook' },
]

/** A table of the state, with the condition of its rows `t`. */
export interface StatePart {
  table: string
  owned: string
}

const OPEN = 'select d.document_id from webhook_dispatch_open d where d.webhook = any($webhooks)'
const JOBS = 'select j.document_id from replay_job j where j.accounts[1] = $account and j.accounts = array[$account]'

export const STATE: readonly StatePart[] = [
  { table: 'webhook', owned: 't.account = $account and not t.is_global' },
  { table: 'webhook_event', owned: 't.webhook = any($webhooks)' },
  { table: 'webhook_dispatch_open', owned: 't.webhook = any($webhooks)' },
  { table: 'webhook_attempt', owned: `t.dispatch in (${OPEN})` },
  // Of deliveries of a webhook that was another account's.
  {
    table: 'event_occurrence',
    owned: `t.account is distinct from $account and t.document_id in (
      select d.event_id from webhook_dispatch_open d where d.webhook = any($webhooks))`,
  },
  { table: 'realtime_message_open', owned: 't.account = $account' },
  { table: 'webhook_throttle', owned: 't.webhook = any($webhooks)' },
  { table: 'webhook_mail_notice', owned: 't.webhook = any($webhooks)' },
  { table: 'webhook_mail_turn', owned: 't.account = $account' },
  // Ended rows are posted where they were.
  { table: 'alert_incident', owned: 't.resolved_at is null and t.subject = any($webhooks::text[])' },
  { table: 'replay_job', owned: 't.accounts[1] = $account and t.accounts = array[$account]' },
  { table: 'replay_job_item', owned: `t.job in (${JOBS})` },
  { table: 'webhook_outcome', owned: 't.scope = $account' },
  { table: 'webhook_outcome_hour', owned: 't.webhook = any($webhooks)' },
  { table: 'webhook_outcome_day', owned: 't.webhook = any($webhooks)' },
  { table: 'webhook_breakdown', owned: 't.subject = $account or t.subject = any($webhooks)' },
  // Both end within a day, also where they were.
  { table: 'idempotency_key', owned: 't.account = $account' },
  {
    table: 'publish_key',
    owned: `(select e.account from event_occurrence e where e.document_id = t.event_id) = $account`,
  },
]

/** Written anew where the account is, from the rows that were copied. */
export const DERIVED: readonly string[] = [
  'webhook_queue',
  'realtime_queue',
  'webhook_count',
  // Without the account: the deliveries that come and go with it are counted.
  'webhook_delivery_minute',
]

/** Empty for an account that moves: it waits until they are. */
export const DRAINED: readonly string[] = ['event_queue', 'event_outbox', 'webhook_fan_out', 'webhook_outcome_batch']

/** In home alone, or replicated from there. */
export const OF_HOME: readonly string[] = [
  ...['account', 'account_cell', 'account_invitation', 'account_limit', 'account_member', 'account_member_role'],
  ...['account_move', 'address_proof', 'api_key', 'catalogue_sync', 'cell', 'connection', 'connection_activity'],
  ...[
    'connection_domain',
    'connection_group_role',
    'connection_identity',
    'connection_proof',
    'contract',
    'email_change',
    'engine_grant',
    'engine_session',
  ],
  ...['event', 'factor_challenge', 'identity', 'kept_mail', 'login_code', 'login_flow', 'login_throttle'],
  ...['mail_outbox', 'oauth_client', 'oauth_client_logo', 'oauth_client_secret', 'oauth_ended_grant'],
  ...['oauth_engine_decision', 'oauth_grant', 'oauth_grant_use', 'oauth_signing_key', 'oauth_state', 'passkey'],
  ...['permission', 'portal_session', 'proof_token', 'provisioning_attempt', 'provisioning_delivery'],
  ...['provisioning_job', 'provisioning_stream', 'provisioning_target', 'provisioning_target_claim'],
  ...['provisioning_total', 'recovery_code', 'role', 'role_permission', 'saml_assertion', 'session'],
  ...['session_refresh', 'sso_nonce', 'stranger_row', 'totp_factor', 'user', 'user_picture', 'user_role'],
  ...['webhook_mail_recipient', 'webhook_mail_setting', 'webhook_mail_told'],
]

/** Of a database, its processes, or what a provider reports to it. */
export const OF_DATABASE: readonly string[] = [
  ...['account_fence', 'activity_counted', 'activity_sum', 'database_identity', 'delivery_worker'],
  ...['event_log', 'log_intake', 'process_skew', 'rate_limit', 'realtime_channel_event', 'realtime_channel_state'],
  ...['realtime_grant', 'realtime_grant_token', 'realtime_process', 'realtime_relay', 'realtime_watch'],
  'schema_migration',
]
