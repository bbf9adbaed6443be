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
import { readRate } from './rate.ts'
import type { Endpoint, Hindrance, Source, SourceApi } from './source.ts'
import { readPages, type SourcePage } from './source-client.ts'

const PAGE_SIZE = '250'

/**
 * Svix, hosted or its server (svix/svix-webhooks, server/openapi.json: `v1.application.list`, `v1.endpoint.list`,
 * `v1.endpoint.get-secret`, `v1.endpoint.get-headers`). An exported endpoint has the answers of the last two as `secret` and
 * `headers`.
 */
export const svix: Source = {
  name: 'svix',
  signature:
    'Receivers keep their secret. The libraries svix and standardwebhooks verify the deliveries unchanged; code that ' +
    'reads svix-id, svix-timestamp and svix-signature itself must read webhook-id, webhook-timestamp and webhook-signature.',
  readTenant: (row) => ({ id: readId(row, 'id'), name: findText(row, 'name') }),
  readEndpointId: (row) => readId(row, 'id'),
  readEndpoint,
  async *listTenants(api, { only }) {
    for (const id of only) yield readObject(await api.get(`/api/v1/app/${encodeURIComponent(id)}`), 'The application')
    if (only.length === 0) yield* listRows(api, '/api/v1/app')
  },
  listEndpoints: (api, { id }) => listRows(api, `/api/v1/app/${encodeURIComponent(id)}/endpoint`),
  complete: async (api, { id }, row) => {
    const path = `/api/v1/app/${encodeURIComponent(id)}/endpoint/${encodeURIComponent(readId(row, 'id'))}`
    return { ...row, secret: await api.get(`${path}/secret`), headers: await api.get(`${path}/headers`) }
  },
}

async function* listRows(api: SourceApi, path: string): AsyncGenerator<Foreign> {
  const load = async (iterator: string | undefined): Promise<SourcePage> => {
    const page = readObject(await api.get(path, { limit: PAGE_SIZE, ...(iterator && { iterator }) }), `GET ${path}`)
    const next = page.done === true ? undefined : findText(page, 'iterator')
    return { rows: readList(page.data, `data of GET ${path}`), next }
  }
  for await (const row of readPages(load)) yield readObject(row, `A row of GET ${path}`)
}

function readEndpoint(row: Foreign): Endpoint {
  const hindrances: Hindrance[] = []
  // `filterTypes` is the member's former name; older servers answer it alone.
  const given = row.eventTypes ?? row.filterTypes ?? undefined
  const filter = given === undefined ? 'all' : findTexts(given)
  const url = findText(row, 'url')
  if (url === undefined) hindrances.push({ code: 'malformed', detail: 'url' })
  if (filter === undefined) hindrances.push({ code: 'malformed', detail: 'eventTypes' })
  if (isFilled(row.channels))
    hindrances.push({ code: 'narrower_filter', detail: `channels ${(findTexts(row.channels) ?? []).join(', ')}` })
  const extra = isObject(row.headers) ? row.headers : {}
  const headers = findTextMap(extra.headers)
  if (!headers) hindrances.push({ code: 'malformed', detail: 'headers' })
  const hidden = (findTexts(extra.sensitive) ?? []).filter((name) => !headers?.has(name))
  if (hidden.length > 0) hindrances.push({ code: 'header_unreadable', detail: hidden.join(', ') })
  return {
    id: readId(row, 'id'),
    url: url ?? '',
    name: findText(row, 'uid'),
    description: findText(row, 'description'),
    isDisabled: row.disabled === true,
    // An empty list is no filter either: Svix refuses to store one.
    eventTypes: filter?.length === 0 ? 'all' : (filter ?? []),
    secret: isObject(row.secret) ? findText(row.secret, 'key') : undefined,
    headers: headers ?? new Map(),
    hindrances,
    ...readRate(row.throttleRate ?? row.rateLimit),
  }
}
