import { type Sweep, sweepOld } from '../postgres/sweep.ts'
import { deleteEndedInvitations } from './account/invitation/invitation.store.ts'
import { deleteExpiredAddressProofs } from './address-proof/address-proof.store.ts'
import { deleteOldActivity } from './connection/activity/connection-activity.store.ts'
import { deleteExpiredDomains } from './connection/domain/connection-domain.store.ts'
import { deleteExpiredAssertions } from './connection/saml/used-assertion.store.ts'
import { deleteEndedMails } from './mail/outbox.store.ts'
import { deleteEndedPortalSessions } from './portal/portal-session.store.ts'
import { deleteEndedSessions } from './session/session.store.ts'
import { deleteExpiredChallenges } from './sign-in/challenge/factor-challenge.store.ts'
import { deleteExpiredEngineSessions } from './social-login/flow/engine-session.store.ts'
import { deleteExpiredLoginCodes } from './social-login/flow/login-code.store.ts'
import { deleteExpiredFlows } from './social-login/flow/login-flow.store.ts'
import { deleteExpiredNonces } from './sso/exchange.store.ts'
import { deleteForgottenThrottles } from './throttle/login-throttle.store.ts'
import { FORGET_AFTER_MS } from './throttle/login-throttle.ts'
import { deleteOldEmailChanges } from './user/own/email-change.store.ts'
import { EMAIL_CHANGES_WINDOW_MS } from './user/own/email-change.ts'
import { deleteExpiredProofTokens } from './user/proof/proof-token.store.ts'

const DAY_MS = 24 * 3_600_000

/** Retention of ended sessions, for audits. */
const SESSION_KEPT_MS = 30 * DAY_MS

/** Retention of nonces after the expiry of their tokens, for differing clocks. */
const NONCE_KEPT_MS = 600_000

/** Retention of sent and given-up mails, without their content. */
const MAIL_KEPT_MS = 7 * DAY_MS

/** Retention of ended invitations, for their list. */
const INVITATION_KEPT_MS = 90 * DAY_MS

/** Retention of expired portal sessions, for their list. */
const PORTAL_SESSION_KEPT_MS = 30 * DAY_MS

/** Retention of the counts of sign-ins by a connection. */
const CONNECTION_ACTIVITY_KEPT_MS = 31 * DAY_MS

/** Ended sessions, links, codes, mails and counts. */
export const identitySweeps: readonly Sweep[] = [
  sweepOld('sessions', SESSION_KEPT_MS, deleteEndedSessions),
  sweepOld('loginThrottles', FORGET_AFTER_MS, deleteForgottenThrottles),
  sweepOld('ssoNonces', NONCE_KEPT_MS, deleteExpiredNonces),
  sweepOld('mails', MAIL_KEPT_MS, deleteEndedMails),
  sweepOld('proofTokens', 0, deleteExpiredProofTokens),
  sweepOld('emailChanges', EMAIL_CHANGES_WINDOW_MS, deleteOldEmailChanges),
  sweepOld('addressProofs', 0, deleteExpiredAddressProofs),
  sweepOld('engineSessions', 0, deleteExpiredEngineSessions),
  sweepOld('loginFlows', 0, deleteExpiredFlows),
  sweepOld('loginCodes', 0, deleteExpiredLoginCodes),
  sweepOld('invitations', INVITATION_KEPT_MS, deleteEndedInvitations),
  sweepOld('portalSessions', PORTAL_SESSION_KEPT_MS, deleteEndedPortalSessions),
  sweepOld('connectionDomains', 0, deleteExpiredDomains),
  sweepOld('connectionActivity', CONNECTION_ACTIVITY_KEPT_MS, deleteOldActivity),
  sweepOld('samlAssertions', 0, deleteExpiredAssertions),
  sweepOld('factorChallenges', 0, deleteExpiredChallenges),
]
