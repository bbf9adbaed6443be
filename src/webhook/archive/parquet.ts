import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import {
  type AsyncBuffer,
  type FileMetaData,
  type ParquetQueryFilter,
  parquetMetadataAsync,
  parquetReadObjects,
} from 'hyparquet'
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer'
import { type ArchiveKind, type ArchiveRow, buildSchema, toColumnData } from './archive-kind.ts'
import { ArchiveError } from './storage/archive-error.ts'
import type { Digest } from './storage/storage.ts'

/** Rows of a row group: what is in memory at once, and what a reader skips or reads by its statistics. */
const GROUP_ROWS = 10_000

/** Limit of one page after decompression, in bytes: pages of this writer have a MiB. */
const PAGE_BYTES = 64 * 1024 * 1024

/** Bytes at the end of a file that are read at first: the description of some 20 row groups. */
const FOOTER_BYTES = 64 * 1024

/** Length of the bounds in statistics: that of an id. */
const BOUND_BYTES = 36

export interface ArchiveWriter {
  add(rows: readonly ArchiveRow[]): Promise<void>
  /** Ends the file. */
  finish(): Promise<Digest>
  /** Gives it up. */
  close(): Promise<void>
}

/** Opens a file for rows of a kind. Row groups are written as they fill. */
export async function openArchiveWriter(
  path: string,
  { kind, createdBy, groupRows = GROUP_ROWS }: { kind: ArchiveKind; createdBy: string; groupRows?: number | undefined },
): Promise<ArchiveWriter> {
  const handle = await open(path, 'w')
  const hash = createHash('sha256')
  const writer = new ByteWriter()
  let bytes = 0
  const flush = async () => {
    const chunk = writer.getBytes().slice()
    writer.index = 0
    hash.update(chunk)
    bytes += chunk.length
    await handle.appendFile(chunk)
  }
  const parquet = new ParquetWriter({
    ...{ writer: Object.assign(writer, { flush, finish: flush }), schema: buildSchema(kind), createdBy },
    ...{ codec: 'ZSTD', compressors: { ZSTD: (input) => zstdCompressSync(input) } },
    statisticsTruncateLength: BOUND_BYTES,
  })
  let pending: ArchiveRow[] = []
  const writeGroup = async () => {
    const columnData = toColumnData(kind, pending) as ColumnSource[]
    pending = []
    await parquet.write({ columnData, rowGroupSize: groupRows })
  }
  return {
    add: async (rows) => {
      pending.push(...rows)
      if (pending.length >= groupRows) await writeGroup()
    },
    finish: async () => {
      if (pending.length > 0) await writeGroup()
      await parquet.finish()
      await handle.close()
      return { bytes, sha256: hash.digest('hex') }
    },
    close: () => handle.close(),
  }
}

const COMPRESSORS = {
  ZSTD: (input: Uint8Array, length: number) => {
    if (length > PAGE_BYTES) throw new Error('a page is too long')
    return new Uint8Array(zstdDecompressSync(input, { maxOutputLength: Math.max(length, 1) }))
  },
}

export interface ArchiveFile {
  name: string
  bytes: number
  read: (start: number, end: number) => Promise<ArrayBuffer>
}

/** Reads the rows that match `filter`, without groups whose bounds exclude them. Throws `file_damaged`. */
export async function* readArchiveFile(
  file: ArchiveFile,
  { filter, columns }: { filter?: ParquetQueryFilter; columns?: string[] } = {},
): AsyncGenerator<ArchiveRow[]> {
  const buffer = bufferOf(file)
  const metadata = await intact(file.name, () =>
    parquetMetadataAsync(buffer, { initialFetchSize: FOOTER_BYTES, geoparquet: false }),
  )
  for (const [rowStart, rowEnd] of listGroups(metadata)) {
    const options = { file: buffer, metadata, rowStart, rowEnd, compressors: COMPRESSORS, geoparquet: false }
    const rows = await intact(file.name, () =>
      parquetReadObjects({ ...options, ...(filter && { filter }), ...(columns && { columns }) }),
    )
    if (rows.length > 0) yield rows
  }
}

function bufferOf({ name, bytes, read }: ArchiveFile): AsyncBuffer {
  return {
    byteLength: bytes,
    slice: (start, end = bytes) => {
      if (start < 0 || end > bytes || start > end)
        throw new ArchiveError('file_damaged', `${name} refers to bytes outside of itself.`)
      return read(start, end)
    },
  }
}

function listGroups({ row_groups: groups }: FileMetaData): [start: number, end: number][] {
  let start = 0
  return groups.map(({ num_rows }) => {
    const end = start + Number(num_rows)
    const range: [number, number] = [start, end]
    start = end
    return range
  })
}

async function intact<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ArchiveError) throw error
    throw new ArchiveError('file_damaged', `${name} is not a whole Parquet file. Export its day again.`, {
      cause: error,
    })
  }
}
