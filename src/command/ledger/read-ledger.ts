import type { ArchiveQuery, FoundRow } from '../../webhook/archive/read-archive.ts'
import type { Storage } from '../../webhook/archive/storage/storage.ts'
import { print, printError } from '../print/print.ts'

/** The options of `signalbox ledger read`. */
export interface ReadOptions extends Omit<ArchiveQuery, 'kinds'> {
  limit: number
  json: boolean
}

/** Prints the rows that match, as they are found. */
export async function readLedger(storage: Storage, { limit, json, ...query }: ReadOptions): Promise<void> {
  const { kindsOf, readArchive } = await import('../../webhook/archive/read-archive.ts')
  let left = limit
  for await (const found of readArchive(storage, { ...query, kinds: kindsOf(query) })) {
    if (left === 0) {
      printError(`There are more rows than ${limit}. Give a narrower range, or --limit.`)
      process.exitCode = 1
      return
    }
    print(json ? toJson(found) : toLine(found))
    left -= 1
  }
}

const toJson = ({ kind, database, row }: FoundRow) =>
  JSON.stringify({ kind: kind === 'events' ? 'event' : 'delivery', database, ...row })

function toLine({ kind, row }: FoundRow): string {
  const at = (row.created_at as Date).toISOString()
  const state = kind === 'events' ? 'event' : `${row.status} after ${row.attempts}`
  return [at, row.document_id, row.event, row.account ?? 'none', state].join('  ')
}
