import { type Sweep, sweepOld, sweepOnce } from '../postgres/sweep.ts'
import { deleteEndedInvitations } from './account/invitation/invitation.store.ts'
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
import { deleteExpiredProofTokens } from './user/proof/proof-token.store.ts'

const DAY_MS = 24 * 3_600_000

/** Sessions that ended are kept this long, for the audit. */
const SESSION_KEPT_MS = 30 * DAY_MS

/** Nonces are kept this much longer than their tokens: clocks of processes differ. */
const NONCE_KEPT_MS = 600_000

/** Mails that were sent or given up are kept this long, without what they said. */
const MAIL_KEPT_MS = 7 * DAY_MS

/** Invitations that ended are kept this long: their list says what became of them. */
const INVITATION_KEPT_MS = 90 * DAY_MS

/** Portal sessions that expired are kept this long: their list says who was there. */
const PORTAL_SESSION_KEPT_MS = 30 * DAY_MS

/** Sessions, links, codes, mails and counts that are over. */
export const identitySweeps: readonly Sweep[] = [
  sweepOld('sessions', SESSION_KEPT_MS, deleteEndedSessions),
  sweepOnce('loginThrottles', ({ db, now }) => deleteForgottenThrottles(db, new Date(now.getTime() - FORGET_AFTER_MS))),
  sweepOld('ssoNonces', NONCE_KEPT_MS, deleteExpiredNonces),
  sweepOld('mails', MAIL_KEPT_MS, deleteEndedMails),
  sweepOld('proofTokens', 0, deleteExpiredProofTokens),
  sweepOld('engineSessions', 0, deleteExpiredEngineSessions),
  sweepOld('loginFlows', 0, deleteExpiredFlows),
  sweepOld('loginCodes', 0, deleteExpiredLoginCodes),
  sweepOld('invitations', INVITATION_KEPT_MS, deleteEndedInvitations),
  sweepOld('portalSessions', PORTAL_SESSION_KEPT_MS, deleteEndedPortalSessions),
  sweepOld('factorChallenges', 0, deleteExpiredChallenges),
]
