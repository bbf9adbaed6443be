import {
  type Foreign,
  findText,
  findTextMap,
  findTexts,
  isFilled,
  isObject,
  readId,
  readList,
  readObject,
} from './foreign.ts'
import type { Endpoint, Hindrance, Source, SourceApi } from './source.ts'
import { readPages, type SourcePage } from './source-client.ts'

/**
 * Outpost of Hookdeck (hookdeck/outpost, docs/apis/openapi.yaml: `listTenants`, `getTenant`, `listTenantDestinations`, which has
 * no pages). The secret of a webhook destination is shown to the admin key.
 */
export const outpost: Source = {
  name: 'outpost',
  signature:
    'Receivers of Outpost in its mode "standard" keep secret and code. Those of its default mode verify ' +
    'x-outpost-signature, which is not sent here: they need the code for x-service-signature or Standard Webhooks.',
  readTenant: (row) => ({
    id: readId(row, 'id'),
    name: isObject(row.metadata) ? findText(row.metadata, 'name') : undefined,
  }),
  readEndpointId: (row) => readId(row, 'id'),
  readEndpoint,
  async *listTenants(api, { only }) {
    for (const id of only) yield readObject(await api.get(`/tenants/${encodeURIComponent(id)}`), 'The tenant')
    if (only.length === 0) yield* listTenantRows(api)
  },
  async *listEndpoints(api, { id }) {
    const path = `/tenants/${encodeURIComponent(id)}/destinations`
    for (const row of readList(await api.get(path), `GET ${path}`)) yield readObject(row, `A row of GET ${path}`)
  },
}

async function* listTenantRows(api: SourceApi): AsyncGenerator<Foreign> {
  const load = async (next: string | undefined): Promise<SourcePage> => {
    const query = { limit: '100', dir: 'asc', ...(next && { next }) }
    const page = readObject(await api.get('/tenants', query), 'GET /tenants')
    const pagination = isObject(page.pagination) ? page.pagination : {}
    return { rows: readList(page.models, 'models of GET /tenants'), next: findText(pagination, 'next') }
  }
  for await (const row of readPages(load)) yield readObject(row, 'A row of GET /tenants')
}

function readEndpoint(row: Foreign): Endpoint {
  const hindrances: Hindrance[] = []
  const config = isObject(row.config) ? row.config : {}
  const credentials = isObject(row.credentials) ? row.credentials : {}
  if (row.type !== 'webhook') hindrances.push({ code: 'not_http', detail: String(findText(row, 'type')) })
  const url = findText(config, 'url')
  if (url === undefined && row.type === 'webhook') hindrances.push({ code: 'malformed', detail: 'config.url' })
  const topics = row.topics === '*' ? ['*'] : findTexts(row.topics)
  if (!topics) hindrances.push({ code: 'malformed', detail: 'topics' })
  if (isFilled(row.filter)) hindrances.push({ code: 'narrower_filter', detail: 'filter' })
  const headers = findTextMap(parseHeaders(config.custom_headers))
  if (!headers) hindrances.push({ code: 'malformed', detail: 'config.custom_headers' })
  return {
    id: readId(row, 'id'),
    url: url ?? '',
    name: undefined,
    description: undefined,
    isDisabled: typeof row.disabled_at === 'string',
    eventTypes: topics?.includes('*') ? 'all' : (topics ?? []),
    secret: findText(credentials, 'secret'),
    headers: headers ?? new Map(),
    hindrances,
    maxPerSecond: null,
    notes: isFilled(row.delivery_metadata) ? ['delivery_metadata has no counterpart here'] : [],
  }
}

/** Headers are a text of JSON. The reader of texts refuses anything else. */
function parseHeaders(value: unknown): unknown {
  if (typeof value !== 'string' || value === '') return value === '' ? undefined : value
  try {
    return JSON.parse(value) as unknown
  } catch {
    return value
  }
}
