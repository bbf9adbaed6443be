import { Readable } from 'node:stream'
import type { ListFields, Listing } from '../../http/listing/listing.ts'
import { findMerged, type MergedList, type MergedReads, type MergeSource } from '../../http/listing/merge.ts'
import { buildList, findListed } from '../../http/listing/page.ts'
import type { RequestWait } from '../../http/route/route-declaration.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { columnsOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { DispatchRow } from '../ledger/dispatch.schema.ts'
import { listDispatches, toDispatchRecord } from '../ledger/dispatch.store.ts'
import { toDispatchRow } from '../ledger/dispatch-row.ts'
import { isOfWebhookOf, isWebhookOf, keepOwnWebhooks } from '../reach/account-reach.store.ts'
import { WebhookRow } from '../registry/webhook.schema.ts'
import { selectWebhooks, toWebhookRow } from '../registry/webhook.store.ts'
import { type ExportedRow, type ExportFormat, formatExport } from './export-format.ts'

/** Rows read at once, the maximum in memory. */
const BATCH_SIZE = 500

/** The same of each database, where they are several. */
const MERGED_BATCH_SIZE = 100

/** Maximum number of deliveries in one file (docs/contract/delivery.md#export-of-the-ledger). */
const LEDGER_EXPORT_LIMIT = 50_000

/** Selection, order and format of an export. */
export interface ExportInput {
  listing: Listing
  scope: PermissionScope
  fields: ListFields
  format: ExportFormat
  /** The databases of the rows, where they are several. */
  merged?: MergedReads | undefined
  /** Makes each read after the first (`RequestWait.readOn`). */
  readOn: RequestWait['readOn']
}

/** Streams the webhooks of `scope` that match, in batches without secrets. What refuses the first has a status. */
export function streamWebhooks(db: Database, input: ExportInput): Promise<Readable> {
  const batches = readBatches(db, input, {
    rows: (source) => buildList(source.scope, (own) => keepOwnWebhooks(selectWebhooks(source.db), own)),
    isOf: isWebhookOf,
  })
  return streamRows({ format: input.format, columns: columnsOf(WebhookRow), toRow: toWebhookRow }, batches)
}

/** Streams the deliveries likewise, the first `limit` of them. */
export function streamDispatches(db: Database, input: ExportInput, limit = LEDGER_EXPORT_LIMIT): Promise<Readable> {
  const { filters } = input.listing
  const list = { rows: (source: MergeSource) => listDispatches(source.db, filters, source.scope), isOf: isOfWebhookOf }
  const batches = readBatches(db, input, { ...list, limit })
  const toRow = (row: Parameters<typeof toDispatchRecord>[0]) => toDispatchRow(toDispatchRecord(row))
  return streamRows({ format: input.format, columns: columnsOf(DispatchRow), toRow }, batches)
}

async function streamRows<Found>(
  {
    format,
    columns,
    toRow,
  }: { format: ExportFormat; columns: readonly string[]; toRow: (found: Found) => ExportedRow },
  batches: AsyncGenerator<readonly Found[]>,
): Promise<Readable> {
  const first = await batches.next()
  async function* readRows() {
    if (first.done) return
    yield first.value.map(toRow)
    for await (const batch of batches) yield batch.map(toRow)
  }
  return Readable.from(formatExport(format, columns, readRows()), { objectMode: false })
}

/** Reads a list batch by batch, up to `limit` rows: the first one as part of the request, the others by `readOn`. */
async function* readBatches<Found>(
  db: Database,
  { listing, fields, scope, merged, readOn }: ExportInput,
  { limit = Number.POSITIVE_INFINITY, ...list }: MergedList<Found> & { limit?: number },
) {
  const find = (page: Listing) =>
    merged
      ? findMerged(merged, list, { listing: page, fields })
      : findListed(db, { ...list.rows({ db, scope, elsewhere: [] }), fields, listing: page })
  const size = merged ? MERGED_BATCH_SIZE : BATCH_SIZE
  let { after } = listing
  let isFirst = true
  for (let left = limit; left > 0; left -= size) {
    const pageSize = Math.min(size, left)
    const page = { ...listing, pageSize, after }
    const found = await (isFirst ? find(page) : readOn(() => find(page)))
    isFirst = false
    const rows = found.slice(0, pageSize)
    yield rows
    const last = rows.at(-1)
    if (!last || found.length <= pageSize) return
    after = { value: last.listing_sort, id: last.listing_id }
  }
}
