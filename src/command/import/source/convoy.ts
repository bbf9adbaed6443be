import { FatalError } from '../../../app/log/fatal.ts'
import { type Foreign, findText, findTexts, isFilled, isObject, readId, readList, readObject } from './foreign.ts'
import { readRate, readSeconds } from './rate.ts'
import type { Endpoint, Hindrance, Source, SourceApi } from './source.ts'
import { readPages, type SourcePage } from './source-client.ts'

/**
 * Convoy (frain-dev/convoy, docs/v3/openapi3.json: `GetProject`, `GetEndpoints`, `GetSubscriptions`; rows as of
 * datastore/models.go). A key of a project cannot list projects, so they are named. Events go to the endpoints of one owner, so
 * each `owner_id` of a project is a tenant of its own: `<project>/<owner>`. An exported endpoint has its subscriptions as
 * `subscriptions`.
 */
export const convoy: Source = {
  name: 'convoy',
  signature:
    'Receivers verify x-convoy-signature, which is not sent here: they need the code for x-service-signature or ' +
    'Standard Webhooks, with the secret whsec_<base64 of the text of the present one>.',
  readTenant: (row) => {
    const [id, name, owner] = [readId(row, 'uid'), findText(row, 'name'), findText(row, 'owner_id')]
    return owner === undefined ? { id, name } : { id: `${id}/${owner}`, name: `${name ?? ''} ${owner}` }
  },
  readEndpointId: (row) => readId(row, 'uid'),
  readEndpoint,
  async *listTenants(api, { only }) {
    if (only.length === 0)
      throw new FatalError('A key of Convoy belongs to one project. Name the project with --only <id>.')
    for (const id of only) {
      const project = readData(await api.get(`/api/v1/projects/${encodeURIComponent(id)}`), 'The project')
      yield* splitByOwner(api, project)
    }
  },
  async *listEndpoints(api, { id }) {
    const [project = '', ...owner] = id.split('/')
    const ownerId = owner.join('/')
    const query = ownerId === '' ? {} : { ownerId }
    // The account stands for the owner from here on.
    for await (const row of listRows(api, { project, kind: 'endpoints', query }))
      if ((findText(row, 'owner_id') ?? '') === ownerId) yield { ...row, owner_id: '' }
  },
  complete: async (api, { id }, row) => {
    const [project = ''] = id.split('/')
    const subscriptions: Foreign[] = []
    const query = { endpointId: readId(row, 'uid') }
    for await (const subscription of listRows(api, { project, kind: 'subscriptions', query }))
      subscriptions.push(subscription)
    return { ...row, subscriptions }
  },
}

/** Every answer of Convoy is `{ status, message, data }`. */
const readData = (body: unknown, place: string) => readObject(readObject(body, place).data, place)

/** A project for its endpoints without an owner, then one for each owner. */
async function* splitByOwner(api: SourceApi, row: Foreign): AsyncGenerator<Foreign> {
  const owners = new Set<string>()
  for await (const endpoint of listRows(api, { project: readId(row, 'uid'), kind: 'endpoints', query: {} }))
    owners.add(findText(endpoint, 'owner_id') ?? '')
  const { owner_id: _none, ...project } = row
  if (owners.delete('') || owners.size === 0) yield project
  for (const owner of owners) yield { ...project, owner_id: owner }
}

interface ListOf {
  project: string
  kind: 'endpoints' | 'subscriptions'
  query: Readonly<Record<string, string>>
}

async function* listRows(api: SourceApi, { project, kind, query }: ListOf): AsyncGenerator<Foreign> {
  const path = `/api/v1/projects/${encodeURIComponent(project)}/${kind}`
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
  const owner = findText(row, 'owner_id')
  if (owner !== undefined) hindrances.push({ code: 'narrower_filter', detail: `owner_id ${owner}` })
  const type = findText(row, 'content_type')
  if (type !== undefined && type !== 'application/json') hindrances.push({ code: 'content_type', detail: type })
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
    ...readRate(row.rate_limit, readSeconds(row.rate_limit_duration)),
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
  const lasting = rows.filter((row) => typeof row.expires_at !== 'string' && typeof row.deleted_at !== 'string')
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
