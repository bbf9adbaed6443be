import type { Database } from '../../postgres/statement/database.ts'
import { compileFragment, type Fragment, insertOf } from '../../postgres/statement/fragment.ts'
import { AUDIT_COLUMNS, type AuditRecord, toAuditValues } from './audit.store.ts'

/** An entry for all equal ones of its window. */
export interface EqualRecord extends AuditRecord {
  count: number
  /** Equal for equal entries of one window. */
  equalKey: Buffer
}

const COLUMNS = [...AUDIT_COLUMNS, ['count', 'int'], ['equal_key', 'bytea']] as const

const toValues = (entry: EqualRecord) => [...toAuditValues(entry), entry.count, entry.equalKey]

const insert = insertOf(
  'audit_log',
  COLUMNS,
  'on conflict (equal_key) where equal_key is not null do update set count = audit_log.count + excluded.count',
)

/** The statement that appends an entry, or counts it with an existing equal one. */
export const buildEqualInsert = (entry: EqualRecord): Fragment => insert([toValues(entry)])

/** Appends an entry, or counts it with an existing equal one. */
export async function insertEqualEntry(db: Database, entry: EqualRecord): Promise<void> {
  await db.executeQuery(compileFragment(buildEqualInsert(entry)))
}

/** Adds the counts of entries, locked in the order of their keys. */
export async function addEqualEntries(db: Database, entries: readonly EqualRecord[]): Promise<void> {
  const sorted = entries.toSorted((a, b) => Buffer.compare(a.equalKey, b.equalKey))
  await db.executeQuery(compileFragment(insert(sorted.map(toValues))))
}
