import { FatalError } from '../../../app/log/fatal.ts'
import { type Foreign, findText, findTexts, isFilled, isObject, readId, readList, readObject } from './foreign.ts'
import type { Endpoint, Hindrance, Source, SourceApi, Tenant } from './source.ts'
import { readPages, type SourcePage } from './source-client.ts'

/**
 * Convoy (frain-dev/convoy, docs/v3/openapi3.json: `GetProject`, `GetEndpoints`, `GetSubscriptions`; rows as of
 * datastore/models.go). A key of a project cannot list projects, so they are named. An exported endpoint has its subscriptions
 * as `subscriptions`.
 */
export const convoy: Source = {
  name: 'convoy',
  signature:
    'Receivers verify x-convoy-signature, which is not sent here: they need the code for x-service-signature or ' +
    'Standard Webhooks, with the secret whsec_<base64 of the text of the present one>.',
  readTenant: (row) => ({ id: readId(row, 'uid'), name: findText(row, 'name') }),
  readEndpointId: (row) => readId(row, 'uid'),
  readEndpoint,
  async *listTenants(api, { only }) {
    if (only.length === 0)
      throw new FatalError('A key of Convoy belongs to one project. Name the project with --only <id>.')
    for (const id of only) yield readData(await api.get(`/api/v1/projects/${encodeURIComponent(id)}`), 'The project')
  },
  listEndpoints: (api, tenant) => listRows(api, { tenant, kind: 'endpoints', query: {} }),
  complete: async (api, tenant, row) => {
    const subscriptions: Foreign[] = []
    const query = { endpointId: readId(row, 'uid') }
    for await (const one of listRows(api, { tenant, kind: 'subscriptions', query })) subscriptions.push(one)
    return { ...row, subscriptions }
  },
}

/** Every answer of Convoy is `{ status, message, data }`. */
const readData = (body: unknown, place: string) => readObject(readObject(body, place).data, place)

interface ListOf {
  tenant: Tenant
  kind: 'endpoints' | 'subscriptions'
  query: Readonly<Record<string, string>>
}

async function* listRows(api: SourceApi, { tenant, kind, query }: ListOf): AsyncGenerator<Foreign> {
  const path = `/api/v1/projects/${encodeURIComponent(tenant.id)}/${kind}`
  const load = async (cursor: string | undefined): Promise<SourcePage> => {
    const more = cursor === undefined ? {} : { next_page_cursor: cursor }
    const data = readData(await api.get(path, { ...query, perPage: '100', direction: 'next', ...more }), `GET ${path}`)
    const pagination = isObject(data.pagination) ? data.pagination : {}
    const next = pagination.has_next_page === true ? findText(pagination, 'next_page_cursor') : undefined
    return { rows: readList(data.content, `content of GET ${path}`), next }
  }
  for await (const row of readPages(load)) yield readObject(row, `A row of GET ${path}`)
}

function readEndpoint(row: Foreign): Endpoint {
  const hindrances: Hindrance[] = []
  const url = findText(row, 'target_url') ?? findText(row, 'url')
  if (url === undefined) hindrances.push({ code: 'malformed', detail: 'url' })
  const { eventTypes, isFiltered } = readSubscriptions(row, hindrances)
  if (isFiltered) hindrances.push({ code: 'narrower_filter', detail: 'filter of a subscription' })
  const type = findText(row, 'content_type')
  if (type !== undefined && type !== 'application/json') hindrances.push({ code: 'content_type', detail: type })
  const rate = row.rate_limit
  const hasRate = typeof rate === 'number' && rate > 0
  return {
    id: readId(row, 'uid'),
    url: url ?? '',
    name: findText(row, 'name') ?? findText(row, 'title'),
    description: findText(row, 'description'),
    // `pending` is a state of an endpoint that failed and is tried again: it is in use.
    isDisabled: row.status === 'inactive' || row.status === 'paused',
    eventTypes: eventTypes.includes('*') ? 'all' : eventTypes,
    secret: findSecret(row.secrets),
    headers: readAuthentication(row.authentication, hindrances),
    hindrances,
    notes: hasRate
      ? [`the limit of ${rate} messages each ${String(row.rate_limit_duration)} has no counterpart here`]
      : [],
  }
}

/** An endpoint receives what any of its subscriptions matches. */
function readSubscriptions(row: Foreign, hindrances: Hindrance[]): { eventTypes: string[]; isFiltered: boolean } {
  const all = Array.isArray(row.subscriptions) ? row.subscriptions.filter(isObject) : []
  if (!Array.isArray(row.subscriptions)) hindrances.push({ code: 'malformed', detail: 'subscriptions' })
  const configs = all.map(({ filter_config: config }) => (isObject(config) ? config : {}))
  const lists = configs.map((config) => findTexts(config.event_types))
  if (lists.includes(undefined)) hindrances.push({ code: 'malformed', detail: 'filter_config.event_types' })
  return {
    eventTypes: [...new Set(lists.flatMap((types) => types ?? []))],
    isFiltered: configs.some(({ filter }) => isObject(filter) && FILTERS.some((part) => isFilled(filter[part]))),
  }
}

/** Parts of a filter that look at an event; its other members say how. */
const FILTERS = ['headers', 'body', 'query', 'path'] as const

/** The secret in use: the one that does not expire. During a rotation the older one still stands beside it. */
function findSecret(secrets: unknown): string | undefined {
  const rows = Array.isArray(secrets) ? secrets.filter(isObject) : []
  const lasting = rows.filter((one) => typeof one.expires_at !== 'string' && typeof one.deleted_at !== 'string')
  const last = lasting.at(-1)
  return last && findText(last, 'value')
}

/** A key in a header is a header here. Other ways of authentication fetch a token or sign, which nothing here does. */
function readAuthentication(value: unknown, hindrances: Hindrance[]): ReadonlyMap<string, string> {
  const type = isObject(value) ? findText(value, 'type') : undefined
  if (!isObject(value) || type === undefined) return new Map()
  const key = isObject(value.api_key) ? value.api_key : {}
  const [name, text] = [findText(key, 'header_name'), findText(key, 'header_value')]
  if (type === 'api_key' && name !== undefined && text !== undefined) return new Map([[name, text]])
  hindrances.push({ code: 'authentication', detail: type })
  return new Map()
}
