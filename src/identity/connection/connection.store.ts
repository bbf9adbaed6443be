import { sql } from 'kysely'
import type { AccountId, ConnectionId, UserId } from '../../base/id.ts'
import { writeAtEnd } from '../../postgres/statement/closing.ts'
import { asPart, columnChange } from '../../postgres/statement/column-change.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { closingStatement, rowStatement, statement } from '../../postgres/statement/statement.ts'
import type { RoleId } from '../access/role.store.ts'

/** The own identity provider of an account, without its secret. */
export const connection = defineRecord('connection', [
  'document_id',
  'account',
  'kind',
  'name',
  'is_enabled',
  'is_enforced',
  'is_jit',
  'default_role',
  'session_hours',
  'issuer',
  'client_id',
  'scopes',
  'groups_claim',
  'is_email_trusted',
  'sso_url',
  'certificates',
  'certificates_end_at',
  'email_attribute',
  'name_attribute',
  'created_by',
  'updated_by',
  'created_at',
  'updated_at',
]).typed<{ createdBy: UserId | null; updatedBy: UserId | null }>()

/** A role that a group of the provider gives. */
export interface GroupRole {
  group: string
  role: RoleId
}

export interface ConnectionRecord extends RecordOf<typeof connection> {
  groupRoles: GroupRole[]
}

const MEMBERS = `${connection.members('c')}, group_roles_of(c.document_id) as "groupRoles"`

/** The connections of an account, as the base of a list. */
export function selectConnections(db: Database, account: AccountId) {
  return selectRecord(db.selectFrom('connection'), connection)
    .select(sql<GroupRole[]>`group_roles_of(connection.document_id)`.as('groupRoles'))
    .where('account', '=', account)
}

/** The connection with this id. */
export const findConnection = rowStatement<ConnectionRecord, { id: string }>(
  `select ${MEMBERS} from connection c where c.document_id = $id`,
)

/** The connection with this id, locked until the transaction ends, also against sign-ins by it. */
export const lockConnection = rowStatement<ConnectionRecord, { id: string }>(`
  with c as (select * from connection where document_id = $id for update) select ${MEMBERS} from c`)

/** A connection with what a sign-in at its provider needs. */
export interface SignInConnection extends ConnectionRecord {
  secretEncrypted: string | null
}

const selectForSignIn = statement<SignInConnection & { hasAccount: boolean }, { id: string }>(`
  select ${MEMBERS}, c.secret_encrypted as "secretEncrypted",
    (select a.deleted_at is null from account a where a.document_id = c.account) as "hasAccount"
  from connection c where c.document_id = $id`)

/** The enabled connection with this id, of an account that is not deleted. */
export async function findSignInConnection(db: Database, id: string): Promise<SignInConnection | undefined> {
  const [row] = await selectForSignIn(db, { id })
  if (!row?.hasAccount || !row.isEnabled) return undefined
  const { hasAccount: _, ...found } = row
  return found
}

/** Creations in one account are serialized, so that they count each other. */
const countConnections = countBehindLock<{ id: AccountId; connections: number }, { account: string }>({
  counts: 'connections of an account',
  lock: 'account',
  rows: 'select a.document_id from account a where a.document_id = $account and a.deleted_at is null',
  read: 'select a.document_id as id, count_connections(a.document_id) as connections from locked a',
})

/** Locks an account until the transaction ends, and counts its connections. Undefined for an unknown account. */
export async function countConnectionsOf(db: Database, account: string): Promise<number | undefined> {
  return (await countConnections(db, { account }))[0]?.connections
}

/** A new connection. */
export type NewConnection = Omit<ConnectionRecord, 'createdBy' | 'updatedBy' | 'createdAt' | 'updatedAt'> & {
  secretEncrypted: string | null
  by: UserId
  now: Date
}

type GroupLists = { groups: readonly string[]; groupRoleIds: readonly RoleId[] }

const toLists = (groupRoles: readonly GroupRole[]): GroupLists => ({
  groups: groupRoles.map(({ group }) => group),
  groupRoleIds: groupRoles.map(({ role }) => role),
})

const insert = closingStatement<Omit<NewConnection, 'groupRoles'> & GroupLists>(`
  new_connection as (
    insert into connection (document_id, account, kind, name, is_enabled, is_enforced, is_jit, default_role,
      session_hours, issuer, client_id, scopes, groups_claim, is_email_trusted, sso_url, certificates, certificates_end_at,
      email_attribute, name_attribute, secret_encrypted, created_by, updated_by, created_at, updated_at)
    values ($id, $account, $kind, $name, $isEnabled, $isEnforced, $isJit, $defaultRole, $sessionHours, $issuer,
      $clientId, $scopes, $groupsClaim, $isEmailTrusted, $ssoUrl, $certificates, $certificatesEndAt,
      $emailAttribute, $nameAttribute, $secretEncrypted, $by, $by, $now, $now)
    returning document_id
  ), new_group_roles as (
    insert into connection_group_role (connection, group_name, role)
    select c.document_id, x.group_name, x.role from new_connection c,
      unnest($groups::text[], $groupRoleIds::uuid[]) x (group_name, role) on conflict do nothing)`)

/** Inserts a connection with the roles of its groups, with the last statement of the transaction. */
export async function insertConnection(db: Database, row: NewConnection): Promise<ConnectionRecord> {
  const { groupRoles, secretEncrypted, by, now, ...kept } = row
  await insert(db, { ...kept, secretEncrypted, by, now, ...toLists(groupRoles) })
  return { ...kept, groupRoles, createdBy: by, updatedBy: by, createdAt: now, updatedAt: now }
}

/** The columns that one kind has, and the others leave null. */
export type KindColumns = Pick<
  NewConnection,
  | 'issuer'
  | 'clientId'
  | 'scopes'
  | 'groupsClaim'
  | 'isEmailTrusted'
  | 'ssoUrl'
  | 'certificates'
  | 'certificatesEndAt'
  | 'emailAttribute'
  | 'nameAttribute'
>

/** Changes of a connection. Omitted members stay. */
export type ConnectionChange = Partial<
  KindColumns &
    Pick<
      NewConnection,
      'name' | 'isEnabled' | 'isEnforced' | 'isJit' | 'defaultRole' | 'sessionHours' | 'secretEncrypted'
    >
>

const changeColumns = columnChange<ConnectionChange & { by: UserId; now: Date }>('connection', {
  name: 'name = $name',
  isEnabled: 'is_enabled = $isEnabled',
  isEnforced: 'is_enforced = $isEnforced',
  isJit: 'is_jit = $isJit',
  defaultRole: 'default_role = $defaultRole',
  sessionHours: 'session_hours = $sessionHours',
  issuer: 'issuer = $issuer',
  clientId: 'client_id = $clientId',
  scopes: 'scopes = $scopes',
  groupsClaim: 'groups_claim = $groupsClaim',
  isEmailTrusted: 'is_email_trusted = $isEmailTrusted',
  ssoUrl: 'sso_url = $ssoUrl',
  certificates: 'certificates = $certificates',
  certificatesEndAt: 'certificates_end_at = $certificatesEndAt',
  emailAttribute: 'email_attribute = $emailAttribute',
  nameAttribute: 'name_attribute = $nameAttribute',
  secretEncrypted: 'secret_encrypted = $secretEncrypted',
  by: 'updated_by = $by',
  now: 'updated_at = $now',
})

const replaceGroupRoles = closingStatement<{ id: ConnectionId } & GroupLists>(`
  taken_group_roles as (
    delete from connection_group_role g where g.connection = $id
      and not exists (select from unnest($groups::text[], $groupRoleIds::uuid[]) x (group_name, role)
        where x.group_name = g.group_name and x.role = g.role)
  ), given_group_roles as (
    insert into connection_group_role (connection, group_name, role)
    select $id, x.group_name, x.role from unnest($groups::text[], $groupRoleIds::uuid[]) x (group_name, role)
    on conflict do nothing)`)

/** Changes a locked connection with the last statement of the transaction. Returns the changed row. */
export async function changeLockedConnection(
  db: Database,
  before: ConnectionRecord,
  { groupRoles, ...change }: ConnectionChange & { groupRoles?: GroupRole[] },
  { by, now }: { by: UserId; now: Date },
): Promise<ConnectionRecord> {
  const { secretEncrypted: _, ...columns } = change
  await writeAtEnd(db, { parts: asPart('changed_connection', changeColumns(before.id, { ...change, by, now })) })
  if (groupRoles) await replaceGroupRoles(db, { id: before.id, ...toLists(groupRoles) })
  return { ...before, ...columns, ...(groupRoles && { groupRoles }), updatedBy: by, updatedAt: now }
}

/** Deletes a locked connection, with the last statement of the transaction. */
export const deleteConnectionRow = closingStatement<{ id: ConnectionId }>(
  'removed_connection as (delete from connection where document_id = $id)',
)

/** The stale secrets of connections, as `reencryptSecrets` reads them. */
export const listStaleConnectionSecrets = statement<
  { id: ConnectionId; secretEncrypted: string },
  { prefix: string; after: string | null; limit: number }
>(`
  select document_id as id, secret_encrypted as "secretEncrypted" from connection
  where secret_encrypted is not null and not starts_with(secret_encrypted, $prefix)
    and ($after::uuid is null or document_id > $after::uuid)
  order by document_id limit $limit for update`)

/** Replaces the encrypted form of a secret; the secret itself and the row's times stay. */
export async function replaceConnectionSecret(db: Database, id: string, secretEncrypted: string): Promise<void> {
  await db.updateTable('connection').set({ secret_encrypted: secretEncrypted }).where('document_id', '=', id).execute()
}
