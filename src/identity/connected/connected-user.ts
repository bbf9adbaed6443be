/**
 * Ends of access after operations on accounts, memberships and connections, for users whom a connection knows
 * (docs/contract/connections.md#what-ends-the-access-of-a-connection).
 */
export {
  endAccessOfAccount,
  endClosedAccess,
  endConnectionAccess,
  endNarrowing,
  isClosedFor,
  lockConnectionUsers,
  lockJoinsOf,
  removeMemberOf,
} from './connected-user.store.ts'
