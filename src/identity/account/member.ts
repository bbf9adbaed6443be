/** Memberships as a connection gives and changes them: the caller has decided on them behind the locks. */
export {
  type AccountMemberRecord,
  type Candidate,
  insertAccountMember,
  lockCandidate,
  replaceMemberRoles,
} from './account-member.store.ts'
