import type { ParquetQueryFilter } from 'hyparquet'
import { ARCHIVE_KINDS, type ArchiveKind, type ArchiveRow } from './archive-kind.ts'
import {
  type ArchivedDay,
  type ArchivedFile,
  accountOfManifest,
  type IdRange,
  MANIFEST_BYTES,
  manifestFolder,
  parseManifest,
} from './manifest.ts'
import { readArchiveFile } from './parquet.ts'
import { boundsOf } from './plan-day.ts'
import type { Storage } from './storage/storage.ts'

/** Conditions for the rows that are looked for. All hold. */
export interface ArchiveQuery {
  kinds: readonly ArchiveKind[]
  /** An id, or null for the rows of no account. */
  account?: string | null
  /** The id of an event: its row, and its deliveries. */
  event?: string
  webhook?: string
  delivery?: string
  /** Created from here on. */
  since?: Date
  /** Created before this. */
  until?: Date
}

export interface FoundRow {
  kind: ArchiveKind
  /** `home`, or the name of a cell. */
  database: string
  row: ArchiveRow
}

/** The kinds that can match: a webhook and a delivery are columns of deliveries alone. Pure. */
export function kindsOf(query: Omit<ArchiveQuery, 'kinds'>): ArchiveKind[] {
  return query.webhook === undefined && query.delivery === undefined ? [...ARCHIVE_KINDS] : ['deliveries']
}

/**
 * Reads the rows of an archive that match, day by day of each account. Manifests tell which files may have one, the bounds of
 * columns which groups of rows; nothing else is read. Of a delivery that was replayed after its export, the last state is found.
 */
export async function* readArchive(storage: Storage, query: ArchiveQuery): AsyncGenerator<FoundRow> {
  for (const kind of query.kinds) {
    const names = await sortedManifests(storage, kind, query)
    for (const name of names) {
      const text = await storage.readText(name, MANIFEST_BYTES)
      if (text === undefined) continue
      const { database, days } = parseManifest(text, name)
      for (const day of days) {
        if (!mayHaveDay(day, query)) continue
        for await (const row of readDay(storage, day, { kind, query })) yield { kind, database, row }
      }
    }
  }
}

async function sortedManifests(storage: Storage, kind: ArchiveKind, { account }: ArchiveQuery): Promise<string[]> {
  const names: string[] = []
  for await (const name of storage.list(manifestFolder(kind))) {
    const owner = accountOfManifest(name)
    if (owner !== undefined && (account === undefined || owner === account)) names.push(name)
  }
  return names.sort()
}

/** Whether a row of the day can be created in the range that is asked for. Pure. */
export function mayHaveDay({ day }: Pick<ArchivedDay, 'day'>, { since, until }: Pick<ArchiveQuery, 'since' | 'until'>) {
  const { start, end } = boundsOf(day)
  return (since === undefined || end > since) && (until === undefined || start < until)
}

const isIn = (range: IdRange | undefined, id: string | undefined) =>
  id === undefined || range === undefined || (id >= range[0] && id <= range[1])

/** Whether a file can have a row that matches, by its entry. Pure. */
export function mayHaveFile(
  file: ArchivedFile,
  kind: ArchiveKind,
  { event, webhook, delivery }: Pick<ArchiveQuery, 'event' | 'webhook' | 'delivery'>,
): boolean {
  if (kind === 'events') return isIn(file.ids, event)
  const hasWebhook = webhook === undefined || !file.webhooks || file.webhooks.includes(webhook)
  return hasWebhook && isIn(file.ids, delivery) && isIn(file.event_ids, event)
}

/** The condition of a row, which the file is read by. Pure. */
function buildFilter(
  kind: ArchiveKind,
  { event, webhook, delivery, since, until }: Omit<ArchiveQuery, 'kinds'>,
): ParquetQueryFilter | undefined {
  const ids = {
    ...(event !== undefined && { [kind === 'events' ? 'document_id' : 'event_id']: { $eq: event } }),
    ...(webhook !== undefined && { webhook: { $eq: webhook } }),
    ...(delivery !== undefined && { document_id: { $eq: delivery } }),
  }
  const times = { ...(since && { $gte: since }), ...(until && { $lt: until }) }
  const all = { ...ids, ...((since || until) && { created_at: times }) }
  return Object.keys(all).length === 0 ? undefined : all
}

async function* readDay(
  storage: Storage,
  { files }: ArchivedDay,
  { kind, query }: { kind: ArchiveKind; query: ArchiveQuery },
): AsyncGenerator<ArchiveRow> {
  const filter = buildFilter(kind, query)
  // Files of later passes come first: few rows, which ended after the others, some of them again.
  const seen = new Set<string>()
  for (const { file: name, bytes, since } of files.filter((file) => mayHaveFile(file, kind, query)).reverse()) {
    const read = (start: number, end: number) => storage.readRange(name, start, end)
    for await (const rows of readArchiveFile({ name, bytes, read }, filter && { filter }))
      for (const row of rows) {
        const id = row.document_id as string
        if (seen.has(id)) continue
        if (since !== null) seen.add(id)
        yield row
      }
  }
}
