import type { AccountId, UserId } from '../../base/id.ts'
import { rowStatement } from '../../postgres/statement/statement.ts'
import { HOLDINGS, HOLDINGS_OF_USER } from '../access/delegation.store.ts'
import type { Holdings } from '../access/delegation.ts'
import { GIVEN_ROLE, type GivenRole } from '../access/role.store.ts'
import { LIVING, OF_USER, type UserWithRoles } from '../user-record/user.store.ts'

/** A user with the holdings that decide who may change it. */
export interface ManagedUser extends UserWithRoles {
  /** The names of `roles`, in the same order. */
  roleNames: string[]
  holdings: Holdings
  /** The only account that the user may belong to, because a connection of it knows the user. */
  connectedAccount: AccountId | null
  /** Whether an account closed its ways in to members with the address of this user, who keeps them by its roles alone. */
  isExempt: boolean
  /** The existing requested roles, locked against changes. */
  asked: GivenRole[]
  /** The other active holders of the role to keep, locked; null where this user does not leave it. */
  otherHolders: number | null
}

/** The user of a change, and what decides on it beside its holdings. */
export interface UserQuestion {
  id: string
  /** The ids of the new roles of the user. */
  roles: readonly string[]
  /** The name of a role that must keep an active holder: when the user has it, and it is not among `roles`. */
  keptRole: string | null
}

/**
 * Locks a user, not deleted, until the transaction ends, and reads the facts for a change behind the lock, which blocks
 * changes of its roles and memberships. Each part uses the one before, so that the locks are taken in this order: the
 * user, the asked roles, the role to keep.
 */
export const lockUser = rowStatement<ManagedUser, UserQuestion>(`
  with u as (
    select * ${LIVING} for no key update
  ), held as (
    select h.*, r.* from u ${HOLDINGS_OF_USER} cross join lateral roles_of(u.document_id) r
  ), asked as (
    select r.* from role r, (select count(*) from held) locked
    where r.document_id = any($roles) order by r.document_id for share of r
  ), given as (
    select coalesce(json_agg(${GIVEN_ROLE}), '[]') as roles, coalesce(bool_or(r.name = $keptRole), false) as is_kept
    from asked r
  )
  select ${OF_USER}, h.roles, h.role_names as "roleNames", ${HOLDINGS}, g.roles as asked,
    connected_account_of(u.document_id) as "connectedAccount", is_exempt_by_role(u.document_id, u.email) as "isExempt",
    case when $keptRole = any(h.role_names) and not g.is_kept
      then other_holders(u.document_id, $keptRole) end as "otherHolders"
  from u, held h, given g`)

/** A user with the numbers of its unrevoked sessions and API keys. */
interface ManagedTokens {
  id: UserId
  holdings: Holdings
  sessions: number
  apiKeys: number
}

/** Locks a user that is not deleted, with its unrevoked sessions and API keys, and reads its holdings. */
export const lockUserTokens = rowStatement<ManagedTokens, { id: string }>(`
  with u as (select document_id ${LIVING} for no key update)
  select u.document_id as id, ${HOLDINGS}, cardinality(t.sessions) as sessions, cardinality(t.api_keys) as "apiKeys"
  from u ${HOLDINGS_OF_USER} cross join lateral lock_tokens(u.document_id) t`)
