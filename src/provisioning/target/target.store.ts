import type { Id, UserId } from '../../base/id.ts'
import { columnsOf, wireOf } from '../../http/shape/wire-row.ts'
import { writeAtEnd } from '../../postgres/statement/closing.ts'
import { asPart, columnChange } from '../../postgres/statement/column-change.ts'
import { countBehindLock } from '../../postgres/statement/counted-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf, selectRecord } from '../../postgres/statement/record.ts'
import { soleRowStatement, statement } from '../../postgres/statement/statement.ts'
import { TargetRow } from './target.schema.ts'

export type TargetId = Id<'provisioning target'>

/** Protocol of a target: signed events, or SCIM 2.0 (RFC 7644). */
export type TargetProtocol = 'webhook' | 'scim'

/** A target: every column that the API shows, so that no read can leak its secret. */
const target = defineRecord('provisioning_target', columnsOf(TargetRow)).typed<{
  createdBy: UserId | null
  updatedBy: UserId | null
}>()
export type TargetRecord = RecordOf<typeof target>
export const toTargetRow = wireOf(target, TargetRow)

/** The existing targets, as the base of a list. */
export function selectTargets(db: Database) {
  return selectRecord(db.selectFrom('provisioning_target'), target).where('deleted_at', 'is', null)
}

const FIND = `select ${target.members()} from provisioning_target where document_id = $id and deleted_at is null`
const selectOne = statement<TargetRecord, { id: string }>(FIND)
const selectAndLock = statement<TargetRecord, { id: string }>(`${FIND} for no key update`)

/** The existing target with this id; `lock` locks it until the transaction ends. */
export async function findTarget(
  db: Database,
  id: string,
  options: { lock?: boolean } = {},
): Promise<TargetRecord | undefined> {
  const [row] = await (options.lock ? selectAndLock : selectOne)(db, { id })
  return row
}

/** A new target, and the maximum number of existing ones. */
interface NewTarget {
  id: TargetId
  protocol: TargetProtocol
  url: string
  name: string | null
  description: string | null
  secretEncrypted: string
  by: UserId | null
  now: Date
  limit: number
}

/** Creations follow each other, so that they count each other. */
const insert = countBehindLock<TargetRecord, NewTarget>({
  counts: 'provisioning targets',
  lock: 'provisioningTargets',
  by: 'count_targets_under_lock',
  adds: true,
  call: `
    insert into provisioning_target (document_id, protocol, url, name, description, secret_encrypted, created_by,
      updated_by, created_at, updated_at)
    select $id, $protocol, $url, $name, $description, $secretEncrypted, $by, $by, $now, $now
    where count_targets_under_lock() < $limit
    returning ${target.members()}`,
})

/** Inserts an active target. Undefined when `limit` targets exist. */
export async function insertTarget(db: Database, row: NewTarget): Promise<TargetRecord | undefined> {
  const [inserted] = await insert(db, row)
  return inserted
}

/** Changes of a target. Omitted members stay. */
export interface TargetChange {
  url?: string
  name?: string | null
  description?: string | null
  isActived?: boolean
  secretEncrypted?: string
  deletedAt?: Date
}

const changeColumns = columnChange<TargetChange & { by: UserId; now: Date }>('provisioning_target', {
  // The ids of users at the target are those of the former URL.
  url: 'url = $url, generation = generation + 1',
  name: 'name = $name',
  description: 'description = $description',
  isActived: 'is_actived = $isActived',
  secretEncrypted: 'secret_encrypted = $secretEncrypted',
  deletedAt: 'deleted_at = $deletedAt',
  by: 'updated_by = $by',
  now: 'updated_at = $now',
})

/** Changes a locked target with the last statement of the transaction. Returns the changed row. */
export async function changeLockedTarget(
  db: Database,
  before: TargetRecord,
  change: TargetChange,
  { by, now }: { by: UserId; now: Date },
): Promise<TargetRecord> {
  const { secretEncrypted: _, ...columns } = change
  const parts = asPart('changed_target', changeColumns(before.id, { ...change, by, now }))
  await writeAtEnd(db, { parts, ...(change.deletedAt !== undefined && { invalidations: 't' }) })
  return { ...before, ...columns, updatedBy: by, updatedAt: now }
}

/** The stale secrets of targets after `after`, by their ids, for `reencryptSecrets`; locked. */
export const listStaleTargetSecrets = statement<
  { id: TargetId; secretEncrypted: string },
  { prefix: string; after: string | null; limit: number }
>(`
  select document_id as id, secret_encrypted as "secretEncrypted" from provisioning_target
  where not starts_with(secret_encrypted, $prefix) and ($after::uuid is null or document_id > $after::uuid)
  order by document_id limit $limit for update`)

/** Replaces the encrypted form of a secret; the secret itself and the row's times stay. */
export async function replaceTargetSecret(db: Database, id: string, secretEncrypted: string): Promise<void> {
  const change = { secret_encrypted: secretEncrypted }
  await db.updateTable('provisioning_target').set(change).where('document_id', '=', id).execute()
}

/** Whether there is a target, or an open delivery of a deleted one. */
export const hasProvisioningWork = soleRowStatement<{ has: boolean }, undefined, boolean>(
  `select exists (select from provisioning_target where deleted_at is null)
    or exists (select from provisioning_stream where due_at is not null)
    or exists (select from provisioning_stream where lease_owner is not null) as has`,
  ({ has }) => has,
)
