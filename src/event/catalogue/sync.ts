import type { IdMaker, UserId } from '../../base/id.ts'
import { VERSION } from '../../base/version.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type EventTypeRecord, syncEntries } from './catalogue.store.ts'
import type { CatalogueEntry } from './catalogue.ts'
import { type CatalogueSync, type CountedType, readCatalogueRows } from './status.store.ts'

/** A member of a row that differs from the code: its value in the row, and the value that a sync writes. */
export interface CatalogueDifference {
  internal: string
  member: 'account_scope' | 'method' | 'route' | 'source'
  is: string | null
  becomes: string | null
}

/** The comparison of the `event` table with the code (docs/contract/events.md#catalogue-status). */
export interface CatalogueComparison {
  generated_count: number
  synced_count: number
  in_sync: boolean
  /** Event names present in code but not in the database. */
  missing_internals: string[]
  /** Rows whose event type is no longer in the code. They stay subscribable until an operator deactivates them. */
  stale_internals: string[]
  differences: CatalogueDifference[]
}

/** The comparison, with the stale rows for an operator. */
export interface CatalogueStatus extends CatalogueComparison {
  /** The rows of `stale_internals`. */
  stale: { document_id: string; internal: string; is_actived: boolean; subscribers: number }[]
  last_sync: { at: string; by: UserId | null; written: number; version: string } | null
}

type ComparedType = Pick<EventTypeRecord, 'internal' | 'accountScope' | 'method' | 'route' | 'source' | 'isActived'>

/**
 * Compares the generated catalogue with the rows of the database. External event types are not stale
 * (docs/contract/events.md#publishing-from-outside). In sync means: none missing, no row differs, no stale row is active.
 */
export function compareCatalogue(
  generated: readonly CatalogueEntry[],
  rows: readonly ComparedType[],
): CatalogueComparison {
  const rowOf = new Map(rows.map((row) => [row.internal, row]))
  const missing = generated.filter((entry) => !rowOf.has(entry.internal))
  const differences = generated.flatMap((entry) => {
    const row = rowOf.get(entry.internal)
    return row ? listDifferences(entry, row) : []
  })
  const stale = listStale(generated, rows)
  return {
    generated_count: generated.length,
    synced_count: generated.length - missing.length,
    in_sync: missing.length === 0 && differences.length === 0 && !stale.some((row) => row.isActived),
    missing_internals: missing.map((entry) => entry.internal),
    stale_internals: stale.map((row) => row.internal),
    differences,
  }
}

function listStale<Row extends ComparedType>(generated: readonly CatalogueEntry[], rows: readonly Row[]): Row[] {
  const names = new Set(generated.map(({ internal }) => internal))
  return rows.filter((row) => row.source !== 'external' && !names.has(row.internal))
}

function listDifferences(entry: CatalogueEntry, row: ComparedType): CatalogueDifference[] {
  const pairs = [
    ['account_scope', row.accountScope, entry.account_scope],
    ['method', row.method, entry.method],
    ['route', row.route, entry.route],
    ['source', row.source, entry.source],
  ] as const
  return pairs.flatMap(([member, is, becomes]) =>
    is === becomes ? [] : [{ internal: entry.internal, member, is, becomes }],
  )
}

/** Reads and compares the current rows. */
export async function readCatalogueStatus(
  db: Database,
  generated: readonly CatalogueEntry[],
): Promise<CatalogueStatus> {
  const { rows, lastSync } = await readCatalogueRows(db, listNames(generated))
  return buildStatus(generated, rows, lastSync)
}

const listNames = (generated: readonly CatalogueEntry[]) => generated.map(({ internal }) => internal)

function buildStatus(
  generated: readonly CatalogueEntry[],
  rows: readonly CountedType[],
  lastSync: CatalogueSync | null,
): CatalogueStatus {
  return {
    ...compareCatalogue(generated, rows),
    stale: listStale(generated, rows).map(({ id, internal, isActived, subscribers }) => ({
      ...{ document_id: id, internal, is_actived: isActived, subscribers: subscribers ?? 0 },
    })),
    last_sync: lastSync && { ...lastSync, at: lastSync.at.toISOString() },
  }
}

/** Writes the generated catalogue (docs/contract/events.md#catalogue-sync). `by` is null for a command. */
export async function syncCatalogue(
  deps: { ids: IdMaker; catalogue: readonly CatalogueEntry[] },
  db: Database,
  { now, by }: { now: Date; by: UserId | null },
): Promise<CatalogueComparison & Pick<CatalogueStatus, 'last_sync'> & { written: number }> {
  const { rows, written } = await syncEntries(db, deps.ids, deps.catalogue, { now, by })
  const comparison = compareCatalogue(deps.catalogue, rows)
  const done = { written, last_sync: { at: now.toISOString(), by, written, version: VERSION } }
  // Another process inserted a missing row after the statement began: the next statement sees it.
  if (comparison.missing_internals.length === 0) return { ...comparison, ...done }
  const later = await readCatalogueRows(db, listNames(deps.catalogue))
  return { ...compareCatalogue(deps.catalogue, later.rows), ...done }
}
