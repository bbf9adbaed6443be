import type { IdMaker } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type EventTypeRecord, listEventTypes, syncEntries } from './catalogue.store.ts'
import type { CatalogueEntry } from './catalogue.ts'

/** The comparison of the `event` table with the code (docs/contract/events.md#catalogue-status). */
export interface CatalogueStatus {
  generated_count: number
  synced_count: number
  in_sync: boolean
  /** Event names present in code but not in the database. */
  missing_internals: string[]
  /** Rows whose event type is no longer in the code. They stay subscribable until an operator deactivates them. */
  stale_internals: string[]
}

/** The compared columns of an event type. */
type ComparedType = Pick<EventTypeRecord, 'internal' | 'accountScope' | 'method' | 'route' | 'source' | 'isActived'>

/**
 * Compares the generated catalogue with the rows of the database. External event types are not stale
 * (docs/contract/events.md#publishing-from-outside). In sync means: none missing, no row differs, no stale row is active.
 */
export function compareCatalogue(generated: readonly CatalogueEntry[], rows: readonly ComparedType[]): CatalogueStatus {
  const rowOf = new Map(rows.map((row) => [row.internal, row]))
  const generatedNames = new Set(generated.map((entry) => entry.internal))
  const missing = generated.filter((entry) => !rowOf.has(entry.internal))
  const differing = generated.filter((entry) => {
    const row = rowOf.get(entry.internal)
    return row !== undefined && !isEqual(entry, row)
  })
  const stale = rows.filter((row) => row.source !== 'external' && !generatedNames.has(row.internal))
  return {
    generated_count: generated.length,
    synced_count: generated.length - missing.length,
    in_sync: missing.length === 0 && differing.length === 0 && !stale.some((row) => row.isActived),
    missing_internals: missing.map((entry) => entry.internal),
    stale_internals: stale.map((row) => row.internal),
  }
}

function isEqual(entry: CatalogueEntry, row: ComparedType): boolean {
  return (
    entry.account_scope === row.accountScope &&
    entry.method === row.method &&
    entry.route === row.route &&
    entry.source === row.source
  )
}

/** Compares the current rows. */
export async function readCatalogueStatus(
  db: Database,
  generated: readonly CatalogueEntry[],
): Promise<CatalogueStatus> {
  return compareCatalogue(generated, await listEventTypes(db))
}

/** Writes the generated catalogue into the `event` table and returns the comparison afterwards (docs/contract/events.md#catalogue-sync). */
export async function syncCatalogue(
  deps: { ids: IdMaker; catalogue: readonly CatalogueEntry[] },
  db: Database,
  now: Date,
): Promise<CatalogueStatus & { written: number }> {
  const { rows, written } = await syncEntries(db, deps.ids, deps.catalogue, now)
  const status = compareCatalogue(deps.catalogue, rows)
  // A missing row was inserted by another process after the statement began: the next statement sees it.
  if (status.missing_internals.length === 0) return { ...status, written }
  return { ...(await readCatalogueStatus(db, deps.catalogue)), written }
}
