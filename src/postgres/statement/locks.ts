interface AdvisoryLock {
  /** The locked number, or the prefix of the text whose hash is locked. */
  key: number | string
  /** Waiting statements. */
  serializes: string
}

/** Every advisory lock of the service, also of functions of the database (`advisory-locks.test.ts`). */
export const ADVISORY_LOCKS = {
  migration: { key: 7_320_114, serializes: 'migrations of the schema' },
  webhookClaims: { key: 7_320_115, serializes: 'claims of dispatches, which share it, with statements that route' },
  provisioningClaims: { key: 7_320_116, serializes: 'claims of provisioning' },
  provisioningTargets: { key: 7_320_117, serializes: 'new provisioning targets, which are counted' },
  signingKeys: { key: 'oauth_signing_key', serializes: 'changes of the signing keys of OAuth' },
  invitations: { key: 'signalbox invitations ', serializes: 'new invitations of an account, which are counted' },
  signInIdentity: {
    key: 'identity ',
    serializes: 'sign-ins by an identity at a provider or a connection, and its disconnection',
  },
  signInAddress: { key: 'address ', serializes: 'sign-ins at providers with one e-mail address' },
  oauthClient: {
    key: 'oauth client ',
    serializes: 'exchanges of the tokens of a client, which share it, with its end',
  },
  oauthGrant: { key: 'oauth grant ', serializes: 'exchanges of the tokens of a grant, which share it, with its end' },
  strangers: {
    key: 'signalbox stranger ',
    serializes: 'rows of strangers of a network or a client, which are counted',
  },
  addressProofs: {
    key: 'signalbox address proof ',
    serializes: 'proofs that strangers ask for, of an address or from a network, which are counted',
  },
  mailRecipients: {
    key: 'signalbox mail ',
    serializes: 'mails of a kind to an address, which are counted',
  },
  accountFence: {
    key: 'signalbox account ',
    serializes: 'writes for an account, which share it, with the steps of its move (decision 62)',
  },
  realtimeProcess: { key: 'realtime ', serializes: 'nothing: a process holds it while its connection lives' },
  ledgerExport: { key: 7_320_118, serializes: 'exports of the ledger, of which a second one gives up' },
  sample: { key: 'signalbox sample', serializes: 'fills of sample data in development' },
  worker: { key: '', serializes: 'nothing: a worker holds its id while its listening connection lives' },
} as const satisfies Record<string, AdvisoryLock>

/**
 * The order in which a transaction takes its locks: rows of tables, and advisory locks by their names above. The holder
 * of a lock waits for no earlier one, so that no two transactions deadlock. Rows of one table are locked in the order
 * of their ids. An unlisted table comes last. (`docs/decisions/0030-locks.md`, `test/harness/plan/lock-order.ts`)
 */
export const LOCK_ORDER = [
  // Of cells and moves alone.
  'cell',
  'account_move',
  'account_cell',
  'account_fence',
  'addressProofs',
  'account',
  'connection',
  'connection_domain',
  'signInIdentity',
  'signInAddress',
  'user',
  'oauth_client',
  'engine_grant',
  'oauthClient',
  'oauth_grant',
  'oauthGrant',
  'permission',
  'role',
  'invitations',
  'account_invitation',
  'account_member',
  'account_member_role',
  'role_permission',
  'connection_proof',
  'session_refresh',
  'session',
  'api_key',
  'portal_session',
  'oauth_state',
  'oauth_client_secret',
  'signingKeys',
  'contract',
  'event',
  'webhook',
  'webhook_event',
  'event_queue',
  'webhook_fan_out',
  'webhookClaims',
  'webhook_dispatch_open',
  'webhook_dispatch_ended',
  'webhook_attempt',
  'webhook_queue',
  'webhook_throttle',
  'replay_job',
  'provisioningTargets',
  'provisioningClaims',
  'provisioning_target',
  'provisioning_job',
  'provisioning_stream',
  'provisioning_delivery',
  'login_flow',
  'strangers',
  'login_throttle',
  'webhook_mail_notice',
  'webhook_mail_turn',
  'webhook_mail_told',
  'mailRecipients',
  // Taken by triggers, after what their statement locks. Who holds it alone waits for no other lock.
  'accountFence',
] as const

/** Rows that change only behind the lock of their user, so they need no order of their own. */
export const ROWS_OF_A_USER = [
  'identity',
  'connection_identity',
  'totp_factor',
  'passkey',
  'recovery_code',
  'factor_challenge',
  'proof_token',
  'address_proof',
  'email_change',
  'user_picture',
  'login_code',
  'user_role',
] as const
