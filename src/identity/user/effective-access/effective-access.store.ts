import type { AccountId, ConnectionId } from '../../../base/id.ts'
import { rowStatement } from '../../../postgres/statement/statement.ts'
import type { RoleId } from '../../access/role.store.ts'

/** Maximum number of memberships that are read: a user of more accounts gets the first ones (`isComplete`). */
const MEMBERSHIPS_LIMIT = 100

/** A role that a user has, by itself or in an account. */
export interface HeldRole {
  id: RoleId
  name: string
  isAccountScoped: boolean
  requiresSecondFactor: boolean
  patterns: string[]
}

/** A membership of a user in an account that is not deleted, with the roles of the membership. */
export interface HeldMembership {
  account: AccountId
  name: string
  roles: HeldRole[]
  /** The connection that must have proven a session of the user for it to reach the account; null where none must. */
  connection: ConnectionId | null
}

/** The roles and memberships of a user. */
export interface RolesAndMemberships {
  roles: HeldRole[]
  /** In the order in which the user joined. */
  memberships: HeldMembership[]
  /** Whether `memberships` are all of them. */
  isComplete: boolean
}

const HELD_ROLE = `json_build_object('id', r.document_id, 'name', r.name, 'isAccountScoped', r.is_account_scoped,
  'requiresSecondFactor', r.requires_second_factor, 'patterns', patterns_of(r.document_id))`

/** The roles and memberships of the user with this id, not deleted. */
export const findRolesAndMemberships = rowStatement<
  Omit<RolesAndMemberships, 'isComplete'>,
  { id: string },
  RolesAndMemberships
>(
  `select
    array(select ${HELD_ROLE} from user_role ur join role r on r.document_id = ur.role
      where ur."user" = u.document_id order by r.name) as roles,
    array(select json_build_object('account', a.document_id, 'name', a.name,
        'connection', (select n.connection from narrowing_of(u.document_id) n where n.account = a.document_id),
        'roles', array(
        select ${HELD_ROLE}
        from (select x.role from account_member_role x where x.member = m.document_id offset 0) mr
        join role r on r.document_id = mr.role order by r.name))
      from (select x.document_id, x.account, x.created_at from account_member x
        where x."user" = u.document_id order by x.created_at, x.document_id limit ${MEMBERSHIPS_LIMIT + 1}) m
      cross join lateral (select y.document_id, y.name, y.deleted_at from account y
        where y.document_id = m.account offset 0) a
      where a.deleted_at is null order by m.created_at, m.document_id) as memberships
  from "user" u where u.document_id = $id and u.deleted_at is null`,
  ({ roles, memberships }) => ({
    roles,
    memberships: memberships.slice(0, MEMBERSHIPS_LIMIT),
    isComplete: memberships.length <= MEMBERSHIPS_LIMIT,
  }),
)
