import { Readable } from 'node:stream'
import type { ListFields, Listing } from '../../http/listing/listing.ts'
import { buildList, findListed } from '../../http/listing/page.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { columnsOf } from '../../http/shape/wire-row.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { keepOwnWebhooks } from '../reach/account-reach.store.ts'
import { WebhookRow } from '../registry/webhook.schema.ts'
import { selectWebhooks, toWebhookRow } from '../registry/webhook.store.ts'
import { type ExportFormat, formatExport } from './export-format.ts'

/** Rows read at once: the most that an export holds in memory. */
const BATCH_SIZE = 500

/** The members of the public row in the order of its schema; the secret is not among them. */
const COLUMNS = columnsOf(WebhookRow)

/** Which webhooks an export holds, and in which order. */
interface ExportInput {
  listing: Listing
  scope: PermissionScope
  fields: ListFields
}

/**
 * Streams the living webhooks within `scope` that the filters of `listing` name. Batches are found by position, as pages of a list are,
 * and read only as fast as the reader takes them; destroying the stream ends the reading. No transaction is held open.
 */
export function streamWebhooks(db: Database, input: ExportInput & { format: ExportFormat }): Readable {
  return Readable.from(formatExport(input.format, COLUMNS, readBatches(db, input)), { objectMode: false })
}

async function* readBatches(db: Database, { listing, scope, fields }: ExportInput) {
  let after = listing.after
  for (;;) {
    const page = { ...listing, pageSize: BATCH_SIZE, after }
    const list = buildList(scope, (own) => keepOwnWebhooks(selectWebhooks(db), own))
    const found = await findListed(db, { ...list, listing: page, fields })
    const rows = found.slice(0, BATCH_SIZE)
    yield rows.map(toWebhookRow)
    const last = rows.at(-1)
    if (!last || found.length <= BATCH_SIZE) return
    after = { value: last.listing_sort, id: last.listing_id }
  }
}
