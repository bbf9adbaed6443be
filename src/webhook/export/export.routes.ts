import type { Readable } from 'node:stream'
import { buildListQuery, type ListFields, parseListing } from '../../http/listing/listing.ts'
import type { MergedReads } from '../../http/listing/merge.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import type { RequestWait } from '../../http/route/route-declaration.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { type TObject, Type } from '../../http/shape/schema-type.ts'
import { DISPATCH_FIELDS } from '../ledger/dispatch.routes.ts'
import { DispatchRow } from '../ledger/dispatch.schema.ts'
import { BY_FILTERS } from '../reach/row-owner.ts'
import { WEBHOOK_FIELDS } from '../registry/webhook.routes.ts'
import { WebhookRow } from '../registry/webhook.schema.ts'
import { type ExportInput, streamDispatches, streamWebhooks } from './export.ts'
import { EXPORT_FORMATS, EXPORT_MEDIA, type ExportFormat } from './export-format.ts'

function buildExportQuery(fields: ListFields) {
  const { filters, sort } = (buildListQuery(fields) as TObject).properties
  return Type.Object({
    format: Type.Optional(Type.Unsafe<ExportFormat>({ type: 'string', enum: [...EXPORT_FORMATS], default: 'json' })),
    ...(filters && { filters }),
    ...(sort && { sort }),
  })
}

interface ExportRequest {
  query: { format?: ExportFormat; filters?: unknown; sort?: unknown }
  scope: PermissionScope
  now: Date
  merged?: MergedReads | undefined
  waiting: RequestWait
}

async function buildFile(
  { query, scope, now, merged, waiting: { readOn } }: ExportRequest,
  { name, fields, stream }: { name: string; fields: ListFields; stream: (input: ExportInput) => Promise<Readable> },
) {
  const { format = 'json', filters, sort } = query
  const listing = parseListing({ filters, sort }, fields, scope)
  const file = `${name}-${now.toISOString().slice(0, 10)}.${format}`
  return {
    kind: 'stream' as const,
    contentType: EXPORT_MEDIA[format],
    body: await stream({ listing, scope, fields, format, merged, readOn }),
    headers: { 'content-disposition': `attachment; filename="${file}"` },
  }
}

const FORMS =
  'Streamed; filters and sort as in the list. `json` is one array, `ndjson` one row a line, `csv` RFC 4180 with a ' +
  'header line. A CSV cell that a spreadsheet would run as a formula begins with an apostrophe.'

export const exportRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/webhook/export',
      resource: 'webhook',
      action: 'export',
      accountScope: 'none',
      cell: { by: 'scope', several: 'merge' },
      ownAccounts: true,
      isExpensive: true,
      readsReplica: true,
      summary: 'Export webhooks as a file',
      description: `${FORMS} Never a secret.`,
      query: buildExportQuery(WEBHOOK_FIELDS),
      data: Type.Null(),
      media: {
        'application/json': Type.Array(WebhookRow),
        'application/x-ndjson': Type.String({ description: 'One webhook a line.' }),
        'text/csv': Type.String({ description: 'The members of a webhook as columns.' }),
      },
    },
    async (_deps: object, request) =>
      buildFile(request, {
        name: 'webhooks',
        fields: WEBHOOK_FIELDS,
        stream: (input) => streamWebhooks(request.db, input),
      }),
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/dispatch/export',
      resource: 'webhook-dispatch',
      action: 'export',
      accountScope: 'none',
      cell: BY_FILTERS,
      ownAccounts: true,
      isExpensive: true,
      readsReplica: true,
      summary: 'Export ledger rows as a file',
      description: `${FORMS} A file holds the first 50,000 rows of the order that is asked for.`,
      query: buildExportQuery(DISPATCH_FIELDS),
      data: Type.Null(),
      media: {
        'application/json': Type.Array(DispatchRow),
        'application/x-ndjson': Type.String({ description: 'One ledger row a line.' }),
        'text/csv': Type.String({ description: 'The members of a ledger row as columns.' }),
      },
    },
    async (_deps: object, request) =>
      buildFile(request, {
        name: 'deliveries',
        fields: DISPATCH_FIELDS,
        stream: (input) => streamDispatches(request.db, input),
      }),
  ),
]
