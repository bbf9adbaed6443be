import { FatalError } from '../../../app/log/fatal.ts'
import { type Foreign, findText, findTextMap, findTexts, isObject, readId, readList, readObject } from './foreign.ts'
import type { Endpoint, Hindrance, Source } from './source.ts'

/**
 * Hook0 (hook0/hook0, api/src/handlers/applications.rs and subscriptions.rs: `applications.list`, `applications.get`,
 * `subscriptions.list`; neither list has pages). Its lists name neither deleted applications nor deleted subscriptions.
 */
export const hook0: Source = {
  name: 'hook0',
  signature:
    'Receivers verify x-hook0-signature, which is not sent here: they need the code for x-service-signature or Standard ' +
    'Webhooks, with the secret whsec_<base64 of the text of the present one>.',
  readTenant: (row) => ({ id: readId(row, 'application_id'), name: findText(row, 'name') }),
  readEndpointId: (row) => readId(row, 'subscription_id'),
  readEndpoint,
  async *listTenants(api, { only, organization }) {
    for (const id of only)
      yield readObject(await api.get(`/api/v1/applications/${encodeURIComponent(id)}`), 'The application')
    if (only.length > 0) return
    if (organization === undefined)
      throw new FatalError('Hook0 lists the applications of one organization. Name it with --organization <id>.')
    const rows = await api.get('/api/v1/applications', { organization_id: organization })
    for (const row of readList(rows, 'GET /api/v1/applications')) yield readObject(row, 'An application')
  },
  async *listEndpoints(api, { id }) {
    const rows = await api.get('/api/v1/subscriptions', { application_id: id })
    for (const row of readList(rows, 'GET /api/v1/subscriptions')) yield readObject(row, 'A subscription')
  },
}

function readEndpoint(row: Foreign): Endpoint {
  const hindrances: Hindrance[] = []
  const target = isObject(row.target) ? row.target : {}
  if (target.type !== 'http') hindrances.push({ code: 'not_http', detail: String(findText(target, 'type')) })
  const method = findText(target, 'method')
  if (method?.toUpperCase() !== 'POST') hindrances.push({ code: 'method', detail: method ?? 'none' })
  const url = findText(target, 'url')
  if (url === undefined) hindrances.push({ code: 'malformed', detail: 'target.url' })
  const eventTypes = findTexts(row.event_types)
  if (!eventTypes) hindrances.push({ code: 'malformed', detail: 'event_types' })
  const headers = findTextMap(target.headers)
  if (!headers) hindrances.push({ code: 'malformed', detail: 'target.headers' })
  // Every subscription has labels: only events with the same ones reach it.
  const labels = findTextMap(row.labels) ?? new Map([[findText(row, 'label_key') ?? '', '']])
  if (labels.size > 0) hindrances.push({ code: 'narrower_filter', detail: `labels ${[...labels.keys()].join(', ')}` })
  return {
    id: readId(row, 'subscription_id'),
    url: url ?? '',
    name: undefined,
    description: findText(row, 'description'),
    isDisabled: row.is_enabled === false,
    eventTypes: eventTypes ?? [],
    secret: findText(row, 'secret'),
    headers: headers ?? new Map(),
    hindrances,
    maxPerSecond: null,
    notes: [],
  }
}
