/** Memberships given and changed by a connection: the caller has decided on them behind the locks. */
export {
  type AccountMemberRecord,
  type Candidate,
  insertAccountMember,
  lockCandidate,
  replaceMemberRoles,
} from './account-member.store.ts'
