import { join } from 'node:path'
import type { Database } from '../../postgres/statement/database.ts'
import {
  findReplayedDays,
  hasOpenDelivery,
  listArchivedAccounts,
  listArchivedDays,
  readArchivePage,
} from './archive.store.ts'
import { ARCHIVE_KINDS, type ArchiveRow } from './archive-kind.ts'
import {
  type ArchivedDay,
  type ArchivedFile,
  FileSummary,
  fileName,
  MANIFEST_BYTES,
  type ManifestKey,
  manifestName,
  parseManifest,
} from './manifest.ts'
import { type ArchiveWriter, openArchiveWriter, readArchiveFile } from './parquet.ts'
import { boundsOf, type DayPass, planDay } from './plan-day.ts'
import { ArchiveError } from './storage/archive-error.ts'
import type { Digest, Storage } from './storage/storage.ts'

const PAGE_ROWS = 1_000

/** Rows of one file: a longer day has several. */
const FILE_ROWS = 1_000_000

/** Rows and files after which the manifest is stored: what an interrupted export writes again. */
const UNRECORDED = { rows: 10_000, files: 50 }

/** Age at which the end of a delivery is committed in every process. */
const SETTLED_MS = 600_000

/** Age of the end of the last day, so that its events are committed. */
const BEFORE_AGE_MS = 3_600_000

export interface ExportDeps {
  db: Database
  /** `home`, or the name of a cell. */
  database: string
  storage: Storage
  /** Now, by the clock of the database. */
  now: () => Date
  /** Program and version, for the files. */
  createdBy: string
  onFile: (file: ArchivedFile) => void
  /** Other limits than the usual ones, for tests. */
  limits?: { pageRows?: number; groupRows?: number; fileRows?: number }
}

export interface ExportTotals {
  files: number
  rows: number
}

/** Writes what days before `before` lack, page by page. An interrupted export goes on where its manifests end. */
export async function exportArchive(deps: ExportDeps, before: Date): Promise<ExportTotals> {
  const totals = { files: 0, rows: 0 }
  for (const kind of ARCHIVE_KINDS) {
    for await (const account of withNone(listArchivedAccounts(deps.db, kind))) {
      const part = await exportAccount(deps, { database: deps.database, kind, account }, before)
      totals.files += part.files
      totals.rows += part.rows
    }
  }
  return totals
}

async function* withNone(accounts: AsyncIterable<string>): AsyncGenerator<string | null> {
  yield null
  yield* accounts
}

async function exportAccount(deps: ExportDeps, key: ManifestKey, before: Date): Promise<ExportTotals> {
  const { db } = deps
  const { kind, account } = key
  const book = await openBook(deps.storage, key)
  const replays = kind === 'deliveries' ? await findReplayedDays(db, { account, before }) : new Map<string, Date>()
  for (const day of await listArchivedDays(db, kind, { account, before })) {
    if (book.removedBefore !== undefined && day < book.removedBefore) continue
    const pass = planDay(day, book.days.get(day), replays.get(day))
    if (pass) await exportDay({ deps, key, book }, day, pass)
  }
  await book.store()
  return book.totals
}

/** The manifest of an account while its days are exported. */
interface Book {
  /** Days before this one were removed. */
  removedBefore: string | undefined
  days: Map<string, ArchivedDay>
  totals: ExportTotals
  /** Notes the state of a day, with a new file or without. */
  note(day: ArchivedDay, file?: ArchivedFile): Promise<void>
  /** Stores the manifest, if it changed. */
  store(): Promise<void>
}

async function openBook(storage: Storage, key: ManifestKey): Promise<Book> {
  const name = manifestName(key)
  const text = await storage.readText(name, MANIFEST_BYTES)
  const known = text === undefined ? undefined : parseManifest(text, name)
  const removed = known?.removed_before === undefined ? {} : { removed_before: known.removed_before }
  const days = new Map(known?.days.map((day) => [day.day, day]))
  const totals = { files: 0, rows: 0 }
  let [isChanged, rows, files] = [false, 0, 0]
  const store = async () => {
    if (!isChanged) return
    const sorted = [...days.values()].sort((a, b) => (a.day < b.day ? -1 : 1))
    await storage.putText(name, `${JSON.stringify({ format: 1, ...key, ...removed, days: sorted })}\n`)
    ;[isChanged, rows, files] = [false, 0, 0]
  }
  return {
    removedBefore: known?.removed_before,
    days,
    totals,
    store,
    note: async (day, file) => {
      days.set(day.day, day)
      isChanged = true
      if (!file) return
      totals.files += 1
      totals.rows += file.rows
      rows += file.rows
      files += 1
      if (rows >= UNRECORDED.rows || files >= UNRECORDED.files) await store()
    },
  }
}

interface DayWork {
  deps: ExportDeps
  key: ManifestKey
  book: Book
}

async function exportDay({ deps, key, book }: DayWork, day: string, pass: DayPass): Promise<void> {
  const { start, end } = boundsOf(day)
  const { pageRows = PAGE_ROWS, fileRows = FILE_ROWS } = deps.limits ?? {}
  const isOpen = key.kind === 'deliveries' && (await hasOpenDelivery(deps.db, { account: key.account, start, end }))
  const { since, through = new Date(deps.now().getTime() - SETTLED_MS).toISOString() } = pass
  const files = [...(book.days.get(day)?.files ?? [])]
  const state = { day, through, since }
  let later = 0
  await using open = openFiles(deps, { nameOf: (number) => fileName(key, day, number), first: pass.number, since })
  for (let after = pass.after, isLast = false; !isLast; ) {
    const page = await readArchivePage(deps.db, key.kind, {
      ...{ account: key.account, after, end, since, through, limit: pageRows },
    })
    later += page.later
    await open.add(key, page.rows)
    after = page.last ?? after
    isLast = page.seen < pageRows
    if (!isLast && open.rows() < fileRows) continue
    const file = await open.finish()
    if (file) files.push(file)
    // Rows that ended late before an interruption are not counted any more.
    const isClosed = isLast && !isOpen && later === 0 && !pass.isResumed
    await book.note({ ...state, is_closed: isClosed, position: isLast ? null : after, files: [...files] }, file)
  }
}

/** The files of a pass, one after the other; each is made for its first row. */
function openFiles(
  deps: ExportDeps,
  { nameOf, first, since }: { nameOf: (number: number) => string; first: number; since: string | null },
) {
  const path = join(deps.storage.workDir, 'rows.parquet')
  let number = first
  let writer: ArchiveWriter | undefined
  let summary = new FileSummary()
  return {
    rows: () => summary.rows,
    add: async ({ kind }: ManifestKey, rows: readonly ArchiveRow[]): Promise<void> => {
      if (rows.length === 0) return
      writer ??= await openArchiveWriter(path, {
        ...{ kind, createdBy: deps.createdBy, groupRows: deps.limits?.groupRows },
      })
      for (const row of rows) summary.add(row)
      await writer.add(rows)
    },
    finish: async (): Promise<ArchivedFile | undefined> => {
      if (!writer) return undefined
      const digest = await writer.finish()
      const file = { file: nameOf(number), since, ...summary.build(), ...digest }
      writer = undefined
      summary = new FileSummary()
      number += 1
      await storeVerified(deps.storage, { path, file, digest })
      deps.onFile(file)
      return file
    },
    [Symbol.asyncDispose]: async () => {
      await writer?.close()
    },
  }
}

/** Stores a file and reads it back: its bytes, and its ids row by row. */
async function storeVerified(
  storage: Storage,
  { path, file, digest }: { path: string; file: ArchivedFile; digest: Digest },
): Promise<void> {
  await storage.put(file.file, path, digest)
  const stored = await storage.digest(file.file)
  const found = new FileSummary()
  if (stored.sha256 === digest.sha256)
    for await (const rows of readArchiveFile(
      {
        name: file.file,
        bytes: stored.bytes,
        read: (start, end) => storage.readRange(file.file, start, end),
      },
      { columns: ['document_id'] },
    ))
      for (const row of rows) found.add(row)
  const { rows, ids } = found.build()
  const isSame = rows === file.rows && ids?.[0] === file.ids[0] && ids?.[1] === file.ids[1]
  if (stored.bytes !== digest.bytes || stored.sha256 !== digest.sha256 || !isSame)
    throw new ArchiveError(
      'verification_failed',
      `${file.file} reads back otherwise than it was written. Check the storage, and export again.`,
    )
}

/** The latest day of UTC whose days before have ended for long enough: that of an hour ago. Pure. */
export function findLatestBefore(now: Date): Date {
  return new Date(new Date(now.getTime() - BEFORE_AGE_MS).setUTCHours(0, 0, 0, 0))
}

/** Checks that the days before `before` have ended for long enough. Throws `before_too_late`. */
export function checkBefore(before: Date, now: Date): void {
  if (before <= findLatestBefore(now)) return
  throw new ArchiveError(
    'before_too_late',
    'The days before --before must have ended an hour ago, by UTC: what happens now is not exported. Give an earlier date.',
  )
}
