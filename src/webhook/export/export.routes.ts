import { buildListQuery, parseListing } from '../../http/listing/listing.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { type TObject, Type } from '../../http/shape/schema-type.ts'
import { WEBHOOK_FIELDS } from '../registry/webhook.routes.ts'
import { WebhookRow } from '../registry/webhook.schema.ts'
import { streamWebhooks } from './export.ts'
import { EXPORT_FORMATS, EXPORT_MEDIA } from './export-format.ts'

/** Of a list's parameters an export takes those that choose and order; it has no pages. */
const LIST_QUERY = (buildListQuery(WEBHOOK_FIELDS) as TObject).properties
const ExportQuery = Type.Object({
  format: Type.Optional(
    Type.Unsafe<(typeof EXPORT_FORMATS)[number]>({ type: 'string', enum: [...EXPORT_FORMATS], default: 'json' }),
  ),
  ...(LIST_QUERY.filters && { filters: LIST_QUERY.filters }),
  ...(LIST_QUERY.sort && { sort: LIST_QUERY.sort }),
})

export const exportRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/webhook/export',
      resource: 'webhook',
      action: 'export',
      accountScope: 'none',
      ownAccounts: true,
      isExpensive: true,
      summary: 'Export webhooks as a file',
      description:
        'Streamed; filters and sort as in the list. `json` is one array, `ndjson` one row a line, `csv` RFC 4180 with a ' +
        'header line. A CSV cell that a spreadsheet would run as a formula begins with an apostrophe. Never a secret.',
      query: ExportQuery,
      data: Type.Null(),
      media: {
        'application/json': Type.Array(WebhookRow),
        'application/x-ndjson': Type.String({ description: 'One webhook a line.' }),
        'text/csv': Type.String({ description: 'The members of a webhook as columns.' }),
      },
    },
    {
      handle: async (_deps: object, { db, scope, query, now }) => {
        const { format = 'json', filters, sort } = query
        const listing = parseListing({ filters, sort }, WEBHOOK_FIELDS, scope)
        const name = `webhooks-${now.toISOString().slice(0, 10)}.${format}`
        return {
          kind: 'stream',
          contentType: EXPORT_MEDIA[format],
          body: streamWebhooks(db, { listing, scope, fields: WEBHOOK_FIELDS, format }),
          headers: { 'content-disposition': `attachment; filename="${name}"` },
        }
      },
    },
  ),
]
