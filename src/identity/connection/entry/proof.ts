import type { AccountId, ConnectionId, SessionId, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { foldEmail } from '../../user-record/email-key.ts'
import { type EntryRefusal, findProofFault, type ProvenPerson } from './decide-entry.ts'
import {
  findProvenSession,
  findSessionUser,
  lockEntryPlace,
  saveConnectionIdentity,
  saveSessionProof,
} from './entry.store.ts'
import { type EntryDeps, follow, lockEntrant } from './entry.ts'
import { findSessionEnd } from './session-rule.ts'

/** A proven session, or the reason for none. */
export type ProvenSession =
  | { kind: 'proven'; userId: UserId; sessionId: SessionId; account: AccountId }
  | { kind: 'refused'; reason: EntryRefusal; userId: UserId | null }

/**
 * Proves a session by a person whom the provider of a connection has proven, in the caller's transaction: from then on it
 * reaches the account of the connection, for the hours of the connection
 * (docs/contract/connections.md#members-of-several-accounts). The roles in the account follow the groups of the person.
 * The caller has checked that the browser of the session began the flow, and commits a refusal too.
 */
export async function proveByConnection(
  deps: EntryDeps,
  tx: Database,
  input: { connection: ConnectionId; session: SessionId; person: ProvenPerson; trace: string | null; now: Date },
): Promise<ProvenSession> {
  const { person, session, now } = input
  const userId = await findSessionUser(tx, { session })
  if (userId === undefined) return { kind: 'refused', reason: 'session_ended', userId: null }
  const refuse = (reason: EntryRefusal): ProvenSession => ({ kind: 'refused', reason, userId })
  const place = await lockEntryPlace(tx, { id: input.connection, subject: person.subject, email: person.email })
  if (!place?.isEnabled || !place.hasAccount) return refuse('connection_ended')
  const { account, id: connection } = place
  const found = await lockEntrant(tx, place, { userId, subject: person.subject })
  if (!found) return refuse('disabled')
  const { isOpen, isNarrowed } = await findProvenSession(tx, { session, userId, connection, now })
  const fault = findProofFault(person, {
    isSessionOpen: isOpen,
    isNarrowed,
    isInside: place.isInside,
    isSameAddress: person.email !== null && foldEmail(found.user.email) === foldEmail(person.email),
    knownUser: place.isKnownLiving ? place.knownUser : null,
    user: found.facts,
  })
  if (fault) return refuse(fault)
  await saveSessionProof(tx, { session, connection, expiresAt: findSessionEnd(place.sessionHours, now), now })
  const id = deps.ids.next<'connection identity'>()
  await saveConnectionIdentity(tx, { id, connection, subject: person.subject, userId, now })
  const entry = { person, trace: input.trace, now }
  await follow(deps, tx, { place, entry, found })
  return { kind: 'proven', userId, sessionId: session, account }
}
