import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { Keyring } from '../../base/keyring.ts'
import { deleteOldIncidents } from '../../delivery/incident/alert.store.ts'
import { deleteExpiredPublishKeys } from '../../event/publish/publish.store.ts'
import { PUBLISH_KEY_KEPT_MS } from '../../event/publish/publish.ts'
import { clearOldPublicationEntries, deleteOldAuditEntries } from '../../event/recording/audit.store.ts'
import { deleteOldRateWindows } from '../../http/rate-limit/rate-limit.store.ts'
import { deleteExpiredIdempotencyKeys } from '../../http/route/idempotency.store.ts'
import { IDEMPOTENCY_KEPT_MS } from '../../http/route/idempotency.ts'
import { deleteEndedInvitations } from '../../identity/account/invitation/invitation.store.ts'
import { deleteEndedMails } from '../../identity/mail/outbox.store.ts'
import { deleteEndedSessions } from '../../identity/session/session.store.ts'
import { deleteExpiredChallenges } from '../../identity/sign-in/challenge/factor-challenge.store.ts'
import { deleteExpiredEngineSessions } from '../../identity/social-login/flow/engine-session.store.ts'
import { deleteExpiredLoginCodes } from '../../identity/social-login/flow/login-code.store.ts'
import { deleteExpiredFlows } from '../../identity/social-login/flow/login-flow.store.ts'
import { deleteExpiredNonces } from '../../identity/sso/exchange.store.ts'
import { deleteForgottenThrottles } from '../../identity/throttle/login-throttle.store.ts'
import { FORGET_AFTER_MS } from '../../identity/throttle/login-throttle.ts'
import { deleteExpiredProofTokens } from '../../identity/user/proof/proof-token.store.ts'
import { deleteUnusedClients } from '../../oauth/client/unused-client.store.ts'
import { deleteOldDecisions } from '../../oauth/engine-consent/engine-decision.store.ts'
import { deleteEndedGrants } from '../../oauth/exchange/exchange.store.ts'
import { clearOldAnswers, deleteExpiredState } from '../../oauth/provider/state/state.store.ts'
import { deleteExpiredStrangers } from '../../oauth/provider/state/stranger.store.ts'
import { deleteExpiredSigningKeys } from '../../oauth/signing-key/signing-key.store.ts'
import { succeedSigningKeys } from '../../oauth/signing-key/signing-key.ts'
import { deleteOldSkews } from '../../operations/health/process-skew.store.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { deleteOldJobs } from '../../provisioning/job/job.store.ts'
import { cancelOrphans, deleteDeadStreams, deleteOldDeliveries } from '../../provisioning/target/removal.store.ts'
import { deleteOldGrants } from '../../realtime/authorization/grant.store.ts'
import { deleteOldChannelEvents, deleteOldChannelStates } from '../../realtime/channel/channel-event.store.ts'
import { deleteOldMessages } from '../../realtime/delivery/settle.store.ts'
import { deleteOldWatches } from '../../realtime/watch/watch.store.ts'
import { foldOldMinutes } from '../../webhook/delivery/delivery-count.store.ts'
import {
  cancelOrphanedDispatches,
  deleteOldDispatches,
  deleteOrphanedDispatches,
} from '../../webhook/ledger/removal.store.ts'
import { foldWebhookCounts } from '../../webhook/registry/webhook-count.store.ts'
import { deleteOldReplayJobs } from '../../webhook/replay/replay-job.store.ts'
import type { Config } from '../config/config.ts'
import { deleteIdleWorkers, deleteOldEvents } from './maintenance.store.ts'
import { buildReencryption } from './reencrypt.ts'

/** Interval between sweeps, in milliseconds. */
const PERIOD_MS = 60_000

/**
 * Rows deleted by one statement: short locks, so that no delivery waits for a sweep
 * (docs/contract/delivery.md#retention).
 */
const BATCH_SIZE = 1_000

const DAY_MS = 24 * 3_600_000

/** Windows of the rate limits are of no use after this. */
const RATE_WINDOW_KEPT_MS = 600_000

/** Counts of deliveries by the minute are kept for as long as the dashboard looks back, and an hour more. */
const MINUTES_KEPT_MS = DAY_MS + 3_600_000

/** Workers that are gone are kept this long, and so is the place of a purged webhook in the queue. */
const WORKER_KEPT_MS = 3_600_000

/** Mails that were sent or given up are kept this long, without what they said. */
const MAIL_KEPT_MS = 7 * DAY_MS

/** Invitations that ended are kept this long: their list says what became of them. */
const INVITATION_KEPT_MS = 90 * DAY_MS

/** Sessions that ended are kept this long, for the audit. */
const SESSION_KEPT_MS = 30 * DAY_MS

/** Realtime messages that ended are kept this long, for the inspector. */
const MESSAGE_KEPT_MS = 3 * DAY_MS

/** The state of a realtime channel is kept this long after the last report of it. */
const CHANNEL_KEPT_MS = 30 * DAY_MS

/** Authorized subscriptions are kept this long: a connection that lives longer is authorized again when it returns. */
const GRANT_KEPT_MS = 7 * DAY_MS

/** Nonces are kept this much longer than their tokens: clocks of processes differ. */
const NONCE_KEPT_MS = 600_000
/** Ended grants are kept until the last access token of them has expired: a token lives for a day at most. */
const ENDED_GRANT_KEPT_MS = 2 * DAY_MS
/** Answers to refreshes are repeated for a minute at most (`OAUTH_REFRESH_REPEAT_SECONDS`). */
const REFRESH_ANSWER_KEPT_MS = 120_000
/** Decisions at a managed engine are kept this long after they expired: the log then tells a late answer from a forged one. */
const FLOW_KEPT_MS = 3_600_000
/** A client that registered itself and that nobody has ever allowed anything is kept this long. */
const UNUSED_CLIENT_KEPT_MS = 7 * DAY_MS

export interface MaintenanceDeps {
  db: Database
  clock: Clock
  logger: Logger
  config: Pick<Config, 'webhookLedgerRetentionDays' | 'auditRetentionDays'>
  keyring: Keyring
  workerId: string
  /** Whether the clock may be trusted; while not, nothing is swept. Default: always. */
  isTrusted?: () => boolean
  /** Gets what each sweep did. */
  onSwept?: (report: SweepReport) => void
}

/** What one sweep removed or mended. */
export type SweepReport = Record<
  | 'dispatches'
  | 'attempts'
  | 'events'
  | 'cancelled'
  | 'orphans'
  | 'workers'
  | 'minutes'
  | 'webhookCounts'
  | 'replayJobs'
  | 'publishKeys'
  | 'idempotencyKeys'
  | 'rateWindows'
  | 'sessions'
  | 'loginThrottles'
  | 'ssoNonces'
  | 'endedGrants'
  | 'mails'
  | 'proofTokens'
  | 'invitations'
  | 'engineSessions'
  | 'engineDecisions'
  | 'loginFlows'
  | 'loginCodes'
  | 'factorChallenges'
  | 'oauthState'
  | 'strangerRows'
  | 'unusedClients'
  | 'oauthAnswers'
  | 'oauthKeys'
  | 'oauthExpiredKeys'
  | 'realtimeMessages'
  | 'realtimeWatches'
  | 'realtimeChannelEvents'
  | 'realtimeChannelStates'
  | 'realtimeGrants'
  | 'provisioningDeliveries'
  | 'provisioningOrphans'
  | 'provisioningStreams'
  | 'provisioningJobs'
  | 'incidents'
  | 'processSkews'
  | 'auditEntries'
  | 'reencrypted'
  | 'reencryptedFactors',
  number
>

/** What a sweep did, without the steps that did nothing, in the case of log fields. */
function toLogFields(report: SweepReport): Record<string, number> {
  const done = Object.entries(report).filter(([, count]) => count > 0)
  return Object.fromEntries(
    done.map(([name, count]) => [name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), count]),
  )
}

/** Sweeps: retention, expired keys, orphans, secrets under an old key. One for each process with the role `maintenance`. */
export interface Maintenance {
  sweep(): Promise<SweepReport>
  run(): Promise<void>
  stop(): void
}

/**
 * Builds the maintenance. Every step may run in several processes at once: each statement takes what it can lock. One that
 * fails is logged and made again with the next sweep; the others do not wait for it.
 */
export function buildMaintenance(deps: MaintenanceDeps): Maintenance {
  const { db, clock, logger, config, keyring, workerId, isTrusted = () => true } = deps
  const stopping = new AbortController()

  async function inBatches(deleteBatch: () => Promise<number>): Promise<number> {
    let total = 0
    for (;;) {
      const count = await deleteBatch()
      total += count
      if (count < BATCH_SIZE || stopping.signal.aborted || !isTrusted()) return total
    }
  }

  const reencryption = buildReencryption(keyring, db)

  async function reencrypt(): Promise<number> {
    const ofReceivers = (await reencryption.webhook()) + (await reencryption.provisioning_target())
    return ofReceivers + (await reencryption.oauth_signing_key())
  }

  /** Entries from before are over; with 0 days none is. */
  const findAuditEnd = (now: number) =>
    new Date(config.auditRetentionDays === 0 ? 0 : now - config.auditRetentionDays * DAY_MS)

  async function deleteAudit(now: number): Promise<number> {
    const before = findAuditEnd(now)
    const deleted = await inBatches(() => deleteOldAuditEntries(db, before, BATCH_SIZE))
    return deleted + (await inBatches(() => clearOldPublicationEntries(db, before, BATCH_SIZE)))
  }

  function buildSteps(now: number): Record<keyof SweepReport, () => Promise<number>> {
    const before = (ms: number) => new Date(now - ms)
    let attempts = 0
    const ledgerKeptMs = config.webhookLedgerRetentionDays * DAY_MS
    const orphans = { workerId, now: new Date(now), limit: BATCH_SIZE }
    const oldEvents = { before: before(ledgerKeptMs), auditBefore: findAuditEnd(now), limit: BATCH_SIZE }
    return {
      dispatches: () =>
        inBatches(async () => {
          const gone = await deleteOldDispatches(db, before(ledgerKeptMs), BATCH_SIZE)
          attempts += gone.attempts
          return gone.dispatches
        }),
      // They go with their dispatches.
      attempts: async () => attempts,
      events: () => inBatches(() => deleteOldEvents(db, oldEvents)),
      replayJobs: () => inBatches(() => deleteOldReplayJobs(db, before(ledgerKeptMs), BATCH_SIZE)),
      publishKeys: () => inBatches(() => deleteExpiredPublishKeys(db, before(PUBLISH_KEY_KEPT_MS), BATCH_SIZE)),
      cancelled: () => inBatches(() => cancelOrphanedDispatches(db, orphans)),
      orphans: () => inBatches(() => deleteOrphanedDispatches(db, before(WORKER_KEPT_MS), BATCH_SIZE)),
      minutes: () => foldOldMinutes(db, before(MINUTES_KEPT_MS)),
      webhookCounts: () => foldWebhookCounts(db, BATCH_SIZE),
      workers: () => deleteIdleWorkers(db, before(WORKER_KEPT_MS)),
      idempotencyKeys: () => inBatches(() => deleteExpiredIdempotencyKeys(db, before(IDEMPOTENCY_KEPT_MS), BATCH_SIZE)),
      rateWindows: () => deleteOldRateWindows(db, before(RATE_WINDOW_KEPT_MS)),
      sessions: () => inBatches(() => deleteEndedSessions(db, before(SESSION_KEPT_MS), BATCH_SIZE)),
      loginThrottles: () => deleteForgottenThrottles(db, before(FORGET_AFTER_MS)),
      ssoNonces: () => inBatches(() => deleteExpiredNonces(db, before(NONCE_KEPT_MS), BATCH_SIZE)),
      endedGrants: () => inBatches(() => deleteEndedGrants(db, before(ENDED_GRANT_KEPT_MS), BATCH_SIZE)),
      mails: () => inBatches(() => deleteEndedMails(db, before(MAIL_KEPT_MS), BATCH_SIZE)),
      proofTokens: () => inBatches(() => deleteExpiredProofTokens(db, before(0), BATCH_SIZE)),
      engineSessions: () => inBatches(() => deleteExpiredEngineSessions(db, before(0), BATCH_SIZE)),
      engineDecisions: () => inBatches(() => deleteOldDecisions(db, before(FLOW_KEPT_MS), BATCH_SIZE)),
      loginFlows: () => inBatches(() => deleteExpiredFlows(db, before(0), BATCH_SIZE)),
      loginCodes: () => inBatches(() => deleteExpiredLoginCodes(db, before(0), BATCH_SIZE)),
      invitations: () => inBatches(() => deleteEndedInvitations(db, before(INVITATION_KEPT_MS), BATCH_SIZE)),
      factorChallenges: () => inBatches(() => deleteExpiredChallenges(db, before(0), BATCH_SIZE)),
      oauthState: () => inBatches(() => deleteExpiredState(db, before(0), BATCH_SIZE)),
      strangerRows: () => inBatches(() => deleteExpiredStrangers(db, before(0), BATCH_SIZE)),
      unusedClients: () => inBatches(() => deleteUnusedClients(db, before(UNUSED_CLIENT_KEPT_MS), BATCH_SIZE)),
      oauthAnswers: () => inBatches(() => clearOldAnswers(db, before(REFRESH_ANSWER_KEPT_MS), BATCH_SIZE)),
      oauthKeys: () => succeedSigningKeys(keyring, db, before(0)),
      oauthExpiredKeys: () => deleteExpiredSigningKeys(db, before(0)),
      realtimeMessages: () => inBatches(() => deleteOldMessages(db, before(MESSAGE_KEPT_MS), BATCH_SIZE)),
      realtimeWatches: () => deleteOldWatches(db, before(WORKER_KEPT_MS)),
      realtimeChannelEvents: () => inBatches(() => deleteOldChannelEvents(db, before(DAY_MS), BATCH_SIZE)),
      realtimeChannelStates: () => inBatches(() => deleteOldChannelStates(db, before(CHANNEL_KEPT_MS), BATCH_SIZE)),
      realtimeGrants: () => inBatches(() => deleteOldGrants(db, before(GRANT_KEPT_MS), BATCH_SIZE)),
      provisioningDeliveries: () => inBatches(() => deleteOldDeliveries(db, before(ledgerKeptMs), BATCH_SIZE)),
      provisioningOrphans: () => inBatches(() => cancelOrphans(db, new Date(now), BATCH_SIZE)),
      provisioningStreams: () => inBatches(() => deleteDeadStreams(db, before(ledgerKeptMs), BATCH_SIZE)),
      provisioningJobs: () => inBatches(() => deleteOldJobs(db, before(ledgerKeptMs), BATCH_SIZE)),
      incidents: () => inBatches(() => deleteOldIncidents(db, before(ledgerKeptMs), BATCH_SIZE)),
      processSkews: () => inBatches(() => deleteOldSkews(db, before(WORKER_KEPT_MS), BATCH_SIZE)),
      auditEntries: () => deleteAudit(now),
      reencryptedFactors: reencryption.totp_factor,
      reencrypted: reencrypt,
    }
  }

  const buildReport = () =>
    Object.fromEntries(Object.keys(buildSteps(clock.now())).map((name) => [name, 0])) as SweepReport

  // The counts of all steps begin at 0.
  deps.onSwept?.(buildReport())

  async function sweep(): Promise<SweepReport> {
    const steps = buildSteps(clock.now())
    const report = buildReport()
    for (const [name, step] of Object.entries(steps)) {
      // Asked at each step: a clock may be wrong from one moment to the next, and a sweep takes minutes.
      if (stopping.signal.aborted || !isTrusted()) break
      try {
        report[name as keyof SweepReport] = await step()
      } catch (error) {
        logger.error({ err: error, step: name }, 'maintenance failed: see docs/operations.md, maintenance')
      }
    }
    return report
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const report = await sweep()
      deps.onSwept?.(report)
      if (Object.values(report).some((count) => count > 0)) logger.info(toLogFields(report), 'maintenance')
      await clock.sleep(PERIOD_MS, stopping.signal)
    }
  }

  return { sweep, run, stop: () => stopping.abort() }
}
