import type { AccountId, ConnectionId, IdMaker, UserId } from '../../../base/id.ts'
import { type EventDraft, recordEvents } from '../../../event/occurrence/event.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { RoleId } from '../../access/role.store.ts'
import { findMemberRoles } from '../../access/role.ts'
import { ACCOUNT_ADMIN_ROLE } from '../../access/system-roles.ts'
import {
  type AccountMemberRecord,
  type Candidate,
  insertAccountMember,
  lockCandidate,
  replaceMemberRoles,
} from '../../account/member.ts'
import type { AccountName } from '../../session/session.store.ts'
import { findUserOfAddress, loadUser, registerUser } from '../../user/user.ts'
import { foldEmail } from '../../user-record/email-key.ts'
import type { UserRecord } from '../../user-record/user.store.ts'
import { decideEntry, decideRoles, type EntryRefusal, type EntryUser, type ProvenPerson } from './decide-entry.ts'
import { type EntryPlace, findEntryFacts, lockEntryPlace, saveConnectionIdentity } from './entry.store.ts'
import { findSessionEnd } from './session-rule.ts'

/** Dependencies of an entry. */
export interface EntryDeps {
  ids: IdMaker
  /** `ENABLE_API_EVENT_QUEUE`. */
  enableApiEventQueue: boolean
}

/** The user of a proven person, or the reason for none. */
export type Entered =
  | {
      kind: 'user'
      user: UserRecord
      isNewUser: boolean
      connection: ConnectionId
      account: AccountId
      /** The account, whose member the transaction has locked. */
      locked: AccountName
      /** The latest end of a session that this sign-in opens. */
      endsAt: Date
      roles: { given: RoleId[]; taken: RoleId[] }
    }
  | { kind: 'refused'; reason: EntryRefusal; userId: UserId | null }

interface Entry {
  connection: ConnectionId
  person: ProvenPerson
  trace: string | null
  now: Date
}

/**
 * Finds, links or registers the user of a person whom the provider of a connection has proven, in the caller's
 * transaction, and lets its roles in the account follow its groups. Every kind of connection ends here: the caller has
 * checked the provider's answer, and opens the session with `signIn` and the `connection`, `account` and `endsAt` of
 * the result (docs/contract/connections.md#who-may-enter). The caller commits a refusal too. Concurrent first sign-ins
 * of a person make one user; a connection that has been disabled admits nobody.
 */
export async function enterByConnection(deps: EntryDeps, tx: Database, entry: Entry): Promise<Entered> {
  const { person } = entry
  const place = await lockEntryPlace(tx, { id: entry.connection, subject: person.subject, email: person.email })
  if (!place?.isEnabled || !place.hasAccount) return { kind: 'refused', reason: 'connection_ended', userId: null }
  const found = await findEntrant(tx, place, person)
  const facts = { account: place.account, isJit: place.isJit, isInside: place.isInside }
  const decision = decideEntry(person, {
    ...facts,
    linked: found?.isLinked ? found.facts : undefined,
    owner: found?.isLinked === false ? found.facts : undefined,
  })
  if (decision.kind === 'refuse') return { kind: 'refused', reason: decision.reason, userId: decision.userId }
  const entered =
    decision.kind === 'register' || !found
      ? await register(deps, tx, { place, entry, email: person.email ?? '' })
      : await follow(deps, tx, { place, entry, found })
  const { user } = entered
  const { now } = entry
  const id = deps.ids.next<'connection identity'>()
  await saveConnectionIdentity(tx, { id, connection: place.id, subject: person.subject, userId: user.id, now })
  const endsAt = findSessionEnd(place.sessionHours, now)
  const locked = { id: place.account, name: place.accountName }
  return { kind: 'user', ...entered, connection: place.id, account: place.account, locked, endsAt }
}

/** An existing user whom a connection may admit, locked. */
interface Entrant {
  user: UserRecord
  candidate: Candidate
  facts: EntryUser
  isOtherAdmin: boolean
}

/** Locks the user with the roles that the connection may give, and reads what decides behind the lock; undefined once deleted. */
export async function lockEntrant(
  tx: Database,
  place: EntryPlace,
  { userId, subject }: { userId: UserId; subject: string },
): Promise<Entrant | undefined> {
  const { account, id: connection } = place
  const roles = [...place.groupRoles.map(({ role }) => role), ...(place.defaultRole ? [place.defaultRole] : [])]
  const candidate = await lockCandidate(tx, { account, userId, roles })
  if (!candidate.isLiving) return undefined
  const asked = { userId, connection, account, subject, role: ACCOUNT_ADMIN_ROLE }
  const { isOtherAdmin, ...known } = await findEntryFacts(tx, asked)
  const user = await loadUser(tx, userId)
  const facts: EntryUser = {
    ...known,
    userId,
    isActived: user.isActived,
    isEmailVerified: user.emailVerifiedAt !== null,
    isMember: candidate.member !== undefined,
    accounts: candidate.holdings.accounts,
  }
  return { user, candidate, facts, isOtherAdmin }
}

async function findEntrant(
  tx: Database,
  place: EntryPlace,
  person: ProvenPerson,
): Promise<(Entrant & { isLinked: boolean }) | undefined> {
  // An address that the provider may not assert leads to no user.
  if (!place.isInside || person.email === null || !person.isEmailVerified) return undefined
  const isLinked = place.isKnownLiving && place.knownUser !== null
  const userId = isLinked ? place.knownUser : (await findUserOfAddress(tx, { email: person.email }))?.id
  if (!userId) return undefined
  const locked = await lockEntrant(tx, place, { userId, subject: person.subject })
  // The address may have changed between look-up and lock.
  if (!locked || (!isLinked && foldEmail(locked.user.email) !== foldEmail(person.email))) return undefined
  return { ...locked, isLinked }
}

export type EnteredUser = Pick<Extract<Entered, { kind: 'user' }>, 'user' | 'isNewUser' | 'roles'>

/** Lets the roles of a member follow its groups. */
export async function follow(
  deps: EntryDeps,
  tx: Database,
  {
    place,
    entry,
    found,
  }: { place: EntryPlace; entry: Pick<Entry, 'person' | 'trace' | 'now'>; found: Omit<Entrant, 'facts'> },
): Promise<EnteredUser> {
  const { user, candidate } = found
  const member = candidate.member as AccountMemberRecord
  const held = member.roles
  const administrator = candidate.asked.find(({ name, isSystem }) => isSystem && name === ACCOUNT_ADMIN_ROLE)?.id
  const kept = administrator && held.includes(administrator) && !found.isOtherAdmin ? administrator : undefined
  const { groupRoles, defaultRole } = place
  const decided = decideRoles({ groups: entry.person.groups, groupRoles, defaultRole, held, kept })
  const scoped = new Set(candidate.asked.filter(({ isAccountScoped }) => isAccountScoped).map(({ id }) => id))
  const roles = decided.filter((role) => scoped.has(role))
  const given = roles.filter((role) => !held.includes(role))
  const taken = held.filter((role) => !roles.includes(role))
  if (given.length > 0 || taken.length > 0) {
    await replaceMemberRoles(tx, { member, roles, now: entry.now })
    await recordEvents(deps, tx, [draftOf('account-member.update', member, entry.trace)], entry.now)
  }
  return { user, isNewUser: false, roles: { given, taken } }
}

/** Registers a person as a user who belongs to the account alone. */
async function register(
  deps: EntryDeps,
  tx: Database,
  { place, entry, email }: { place: EntryPlace; entry: Entry; email: string },
): Promise<EnteredUser> {
  const { person, trace, now } = entry
  const user = await registerUser(deps, tx, { email, emailVerifiedAt: now, name: person.name, now })
  const { groupRoles, defaultRole, account } = place
  const decided = decideRoles({ groups: person.groups, groupRoles, defaultRole, held: [], kept: undefined })
  const roles = (await findMemberRoles(tx, decided)).map(({ id }) => id)
  const id = deps.ids.next<'account member'>()
  const member = await insertAccountMember(tx, { id, account, userId: user.id, roles, now })
  const created: EventDraft = {
    type: 'user.create',
    accountScope: 'none',
    account: null,
    resource: 'user',
    action: 'create',
    resourceId: user.id,
    url: `/api/v3/identity/user/${user.id}`,
    trace,
  }
  await recordEvents(deps, tx, [created, draftOf('account-member.create', member, trace)], now)
  return { user, isNewUser: true, roles: { given: roles, taken: [] } }
}

function draftOf(
  type: 'account-member.create' | 'account-member.update',
  member: AccountMemberRecord,
  trace: string | null,
): EventDraft {
  return {
    type,
    accountScope: 'account',
    account: member.account,
    resource: 'account-member',
    action: type === 'account-member.create' ? 'create' : 'update',
    resourceId: member.id,
    url: null,
    trace,
  }
}
