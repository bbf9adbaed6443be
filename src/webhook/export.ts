import { Readable } from 'node:stream'
import { applyListing, type ListFields, type Listing } from '../listing/listing.ts'
import type { Database } from '../postgres/database.ts'
import { type ExportFormat, formatExport } from './export-format.ts'
import { toWebhookRow, WebhookRow } from './webhook.schema.ts'
import { selectWebhooks, toWebhookRecord } from './webhook.store.ts'

/** Rows read at once: the most that an export holds in memory. */
const BATCH_SIZE = 500

/** The members of the public row in the order of its schema; the secret is not among them. */
const COLUMNS = Object.keys(WebhookRow.properties)

/**
 * Streams the living webhooks that the filters of `listing` name. Batches are found by position, as pages of a list are,
 * and read only as fast as the reader takes them; destroying the stream ends the reading. No transaction is held open.
 */
export function streamWebhooks(
  db: Database,
  input: { listing: Listing; fields: ListFields; format: ExportFormat },
): Readable {
  const { listing, fields, format } = input
  return Readable.from(formatExport(format, COLUMNS, readBatches(db, listing, fields)), { objectMode: false })
}

async function* readBatches(db: Database, listing: Listing, fields: ListFields) {
  let after = listing.after
  for (;;) {
    const page = { ...listing, pageSize: BATCH_SIZE, after }
    const found = await applyListing(selectWebhooks(db), page, fields).execute()
    const rows = found.slice(0, BATCH_SIZE)
    yield rows.map((row) => toWebhookRow(toWebhookRecord(row)))
    const last = rows.at(-1)
    if (!last || found.length <= BATCH_SIZE) return
    after = { value: last.listing_sort, id: last.listing_id }
  }
}
