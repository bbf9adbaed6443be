import { Readable } from 'node:stream'
import type { ListFields, Listing } from '../../http/listing/listing.ts'
import { buildList, findListed } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { columnsOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { DispatchRow } from '../ledger/dispatch.schema.ts'
import { listDispatches, toDispatchRecord } from '../ledger/dispatch.store.ts'
import { toDispatchRow } from '../ledger/dispatch-row.ts'
import { keepOwnWebhooks } from '../reach/account-reach.store.ts'
import { WebhookRow } from '../registry/webhook.schema.ts'
import { selectWebhooks, toWebhookRow } from '../registry/webhook.store.ts'
import { type ExportedRow, type ExportFormat, formatExport } from './export-format.ts'

/** Rows read at once, the maximum in memory. */
const BATCH_SIZE = 500

/** Maximum number of deliveries in one file (docs/contract/delivery.md#export-of-the-ledger). */
const LEDGER_EXPORT_LIMIT = 50_000

/** Selection, order and format of an export. */
export interface ExportInput {
  listing: Listing
  scope: PermissionScope
  fields: ListFields
  format: ExportFormat
}

/**
 * Streams the existing webhooks within `scope` that match the filters of `listing`, without their secrets. Batches are
 * found by position, like pages of a list, and read with back-pressure; destroying the stream stops the reads. No
 * transaction stays open.
 */
export function streamWebhooks(db: Database, { format, listing, ...rest }: ExportInput): Readable {
  const list = buildList(rest.scope, (own) => keepOwnWebhooks(selectWebhooks(db), own))
  const batches = readBatches(listing, (page) => findListed(db, { ...list, ...rest, listing: page }))
  return streamRows(format, columnsOf(WebhookRow), mapBatches(batches, toWebhookRow))
}

/** Streams the deliveries likewise, the first `limit` of them. */
export function streamDispatches(
  db: Database,
  { format, listing, ...rest }: ExportInput,
  limit = LEDGER_EXPORT_LIMIT,
): Readable {
  const list = listDispatches(db, listing.filters, rest.scope)
  const batches = readBatches(listing, (page) => findListed(db, { ...list, ...rest, listing: page }), limit)
  const toRow = (row: Parameters<typeof toDispatchRecord>[0]) => toDispatchRow(toDispatchRecord(row))
  return streamRows(format, columnsOf(DispatchRow), mapBatches(batches, toRow))
}

function streamRows(
  format: ExportFormat,
  columns: readonly string[],
  batches: AsyncIterable<readonly ExportedRow[]>,
): Readable {
  return Readable.from(formatExport(format, columns, batches), { objectMode: false })
}

async function* mapBatches<Found, Row>(batches: AsyncIterable<readonly Found[]>, toRow: (found: Found) => Row) {
  for await (const batch of batches) yield batch.map((row) => toRow(row))
}

/** Reads a list batch by batch, up to `limit` rows; `find` returns the rows of a page and one more. */
async function* readBatches<Found extends { listing_sort: unknown; listing_id: string }>(
  listing: Listing,
  find: (page: Listing) => Promise<Found[]>,
  limit = Number.POSITIVE_INFINITY,
) {
  let { after } = listing
  for (let left = limit; left > 0; left -= BATCH_SIZE) {
    const pageSize = Math.min(BATCH_SIZE, left)
    const found = await find({ ...listing, pageSize, after })
    const rows = found.slice(0, pageSize)
    yield rows
    const last = rows.at(-1)
    if (!last || found.length <= pageSize) return
    after = { value: last.listing_sort as NonNullable<Listing['after']>['value'], id: last.listing_id }
  }
}
