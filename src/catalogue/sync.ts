import type { IdMaker } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { type EventTypeRecord, listEventTypes, upsertEntries } from './catalogue.store.ts'
import type { CatalogueEntry } from './catalogue.ts'

/** How the `event` table stands against the code (docs/contract/events.md#catalogue-status). */
export interface CatalogueStatus {
  generated_count: number
  synced_count: number
  in_sync: boolean
  /** Event names present in code but not in the database. */
  missing_internals: string[]
  /** Rows that no route produces any more. They stay subscribable until an operator deactivates them. */
  stale_internals: string[]
}

/**
 * Compares the generated catalogue with the rows of the database. External event types are somebody else's and never
 * stale (docs/contract/events.md#publishing-from-outside). It is in sync when nothing is missing, no row differs, and no stale row is still active.
 */
export function compareCatalogue(
  generated: readonly CatalogueEntry[],
  rows: readonly EventTypeRecord[],
): CatalogueStatus {
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

function isEqual(entry: CatalogueEntry, row: EventTypeRecord): boolean {
  return (
    entry.account_scope === row.accountScope &&
    entry.method === row.method &&
    entry.route === row.route &&
    entry.source === row.source
  )
}

/** How the database stands now. */
export async function readCatalogueStatus(
  db: Database,
  generated: readonly CatalogueEntry[],
): Promise<CatalogueStatus> {
  return compareCatalogue(generated, await listEventTypes(db))
}

/** Writes the generated catalogue into the `event` table and says how it stands afterwards (docs/contract/events.md#catalogue-sync). */
export async function syncCatalogue(
  deps: { ids: IdMaker; catalogue: readonly CatalogueEntry[] },
  db: Database,
  now: Date,
): Promise<CatalogueStatus & { written: number }> {
  const written = await upsertEntries(db, deps.ids, deps.catalogue, now)
  return { ...(await readCatalogueStatus(db, deps.catalogue)), written }
}
