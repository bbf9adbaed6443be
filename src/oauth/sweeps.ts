import { type Sweep, sweepOld, sweepOnce } from '../postgres/sweep.ts'
import { deleteExpiredSecrets } from './client/secret-list.store.ts'
import { deleteUnusedClients } from './client/unused-client.store.ts'
import { deleteOldDecisions } from './engine-consent/engine-decision.store.ts'
import { deleteEndedGrants } from './exchange/exchange.store.ts'
import { clearOldAnswers, deleteExpiredState } from './provider/state/state.store.ts'
import { deleteExpiredStrangers } from './provider/state/stranger.store.ts'
import { deleteExpiredSigningKeys } from './signing-key/signing-key.store.ts'
import { succeedSigningKeys } from './signing-key/signing-key.ts'

const DAY_MS = 24 * 3_600_000

/** Retention of revoked grants, until their last access token has expired: a token is valid for a day at most. */
const ENDED_GRANT_KEPT_MS = 2 * DAY_MS

/** Retention of expired decisions at a managed engine: the log distinguishes a late answer from a forged one. */
const DECISION_KEPT_MS = 3_600_000

/** Retention of self-registered clients without a grant. */
const UNUSED_CLIENT_KEPT_MS = 7 * DAY_MS

/** Answers to refreshes are repeated for a minute at most (`OAUTH_REFRESH_REPEAT_SECONDS`). */
const REFRESH_ANSWER_KEPT_MS = 120_000

/** Grants, state, unused clients, secrets and signing keys. */
export const oauthSweeps: readonly Sweep[] = [
  sweepOld('endedGrants', ENDED_GRANT_KEPT_MS, deleteEndedGrants),
  sweepOld('engineDecisions', DECISION_KEPT_MS, deleteOldDecisions),
  sweepOld('oauthState', 0, deleteExpiredState),
  sweepOld('strangerRows', 0, deleteExpiredStrangers),
  sweepOld('unusedClients', UNUSED_CLIENT_KEPT_MS, deleteUnusedClients),
  sweepOld('expiredSecrets', 0, deleteExpiredSecrets),
  sweepOld('oauthAnswers', REFRESH_ANSWER_KEPT_MS, clearOldAnswers),
  sweepOnce('oauthKeys', ({ db, keyring, now }) => succeedSigningKeys(keyring, db, now)),
  sweepOnce('oauthExpiredKeys', ({ db, now }) => deleteExpiredSigningKeys(db, { before: now })),
]
