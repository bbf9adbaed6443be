import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Row = Readonly<Record<string, unknown>>

/** An answer of a simulator. */
interface Answer {
  status: number
  body: unknown
  headers?: Record<string, string>
}

/** A local server that answers as the API of a source does. */
export interface SourceSimulator extends AsyncDisposable {
  origin: string
  /** `METHOD /path?query` of every request, in order. */
  requests: string[]
  /** Replaces the answers from the `nth` request on (from 1), `times` of them; for ever without it. */
  fail(answer: Answer, options?: { nth?: number; times?: number }): void
  /** Answers as the API again. */
  mend(): void
}

/** The token that every simulator asks for. */
export const SOURCE_TOKEN = 'source-token.of-a-test'

type Answerer = (url: URL) => Answer

const ok = (body: unknown): Answer => ({ status: 200, body })
const missing: Answer = { status: 404, body: { code: 'not_found', detail: 'Entity not found' } }

async function startSimulator(answer: Answerer): Promise<SourceSimulator> {
  const requests: string[] = []
  let fault: { answer: Answer; from: number; until: number } | undefined
  const respond = (request: IncomingMessage, response: ServerResponse) => {
    requests.push(`${request.method} ${request.url}`)
    const isFaulty = fault && requests.length >= fault.from && requests.length < fault.until
    const isKnown = request.headers.authorization === `Bearer ${SOURCE_TOKEN}`
    const refused: Answer = { status: 401, body: { code: 'authentication_failed', detail: 'Invalid token' } }
    const said = isFaulty ? fault!.answer : isKnown ? answer(new URL(request.url!, 'http://source.test')) : refused
    const text = typeof said.body === 'string' ? said.body : JSON.stringify(said.body)
    response.writeHead(said.status, { 'content-type': 'application/json', ...said.headers }).end(text)
  }
  const server = createServer(respond)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    fail: (said, { nth = 1, times = Number.POSITIVE_INFINITY } = {}) => {
      const from = requests.length + nth
      fault = { answer: said, from, until: from + times }
    },
    mend: () => {
      fault = undefined
    },
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** One page of rows, from the position that a cursor names. */
function cutPage(rows: readonly Row[], url: URL, names: { cursor: string; limit: string; most: number }) {
  const start = Number(url.searchParams.get(names.cursor) ?? 0)
  const size = Math.min(Number(url.searchParams.get(names.limit)), names.most)
  const end = start + size
  return { page: rows.slice(start, end), next: end < rows.length ? String(end) : null }
}

/** An endpoint of Svix with the answers about it. */
export interface SvixEndpoint {
  endpoint: Row & { id: string }
  key: string
  headers?: Record<string, string>
  sensitive?: string[]
}

/**
 * Svix: svix/svix-webhooks, server/openapi.json (ListResponse_ApplicationOut_ with `iterator` and `done`, EndpointOut,
 * EndpointSecretOut, EndpointHeadersOut). `pageSize` limits pages as a server may.
 */
export function startSvix(
  apps: readonly { app: Row & { id: string }; endpoints: readonly SvixEndpoint[] }[],
  { pageSize = 250 }: { pageSize?: number } = {},
): Promise<SourceSimulator> {
  const byId = new Map(
    apps.map((entry) => [
      entry.app.id,
      { ...entry, byEndpoint: new Map(entry.endpoints.map((e) => [e.endpoint.id, e])) },
    ]),
  )
  const list = (rows: readonly Row[], url: URL) => {
    const { page, next } = cutPage(rows, url, { cursor: 'iterator', limit: 'limit', most: pageSize })
    return ok({ data: page, iterator: next ?? String(rows.length), prevIterator: null, done: next === null })
  }
  return startSimulator((url) => {
    const [api, version, kind, appId, part, endpointId, detail] = url.pathname
      .slice(1)
      .split('/')
      .map(decodeURIComponent)
    if (`${api}/${version}/${kind}` !== 'api/v1/app') return missing
    if (appId === undefined)
      return list(
        apps.map(({ app }) => app),
        url,
      )
    const app = byId.get(appId)
    if (!app) return missing
    if (part === undefined) return ok(app.app)
    if (endpointId === undefined)
      return list(
        app.endpoints.map(({ endpoint }) => endpoint),
        url,
      )
    const found = app.byEndpoint.get(endpointId)
    if (!found) return missing
    if (detail === 'secret') return ok({ key: found.key })
    if (detail === 'headers') return ok({ headers: found.headers ?? {}, sensitive: found.sensitive ?? [] })
    return ok(found.endpoint)
  })
}

/**
 * Convoy: frain-dev/convoy, api/models (endpoint.go, subscription.go), datastore/models.go (Endpoint, Secret, PaginationData):
 * every answer is `{ status, message, data }`, a list `{ content, pagination }`.
 */
export function startConvoy(project: {
  row: Row & { uid: string }
  endpoints: readonly (Row & { uid: string })[]
  subscriptions: readonly (Row & { endpoint_metadata: { uid: string } })[]
  pageSize?: number
}): Promise<SourceSimulator> {
  const wrap = (data: unknown) => ok({ status: true, message: 'OK', data })
  const list = (rows: readonly Row[], url: URL) => {
    const most = project.pageSize ?? 1000
    const { page, next } = cutPage(rows, url, { cursor: 'next_page_cursor', limit: 'perPage', most })
    const pagination = {
      per_page: most,
      has_next_page: next !== null,
      has_prev_page: false,
      next_page_cursor: next ?? '',
    }
    return wrap({ content: page, pagination })
  }
  return startSimulator((url) => {
    const base = `/api/v1/projects/${project.row.uid}`
    if (url.pathname === base) return wrap(project.row)
    const owner = url.searchParams.get('ownerId')
    const ofOwner = project.endpoints.filter((row) => owner === null || row.owner_id === owner)
    if (url.pathname === `${base}/endpoints`) return list(ofOwner, url)
    const wanted = url.searchParams.getAll('endpointId')
    const isOf = (row: (typeof project.subscriptions)[number]) => wanted.includes(row.endpoint_metadata.uid)
    if (url.pathname === `${base}/subscriptions`) return list(project.subscriptions.filter(isOf), url)
    return { status: 404, body: { status: false, message: 'project not found' } }
  })
}

/** Outpost: hookdeck/outpost, docs/apis/openapi.yaml (TenantPaginatedResult, DestinationWebhook; destinations have no pages). */
export function startOutpost(
  tenants: readonly { row: Row & { id: string }; destinations: readonly Row[] }[],
  { canList = true }: { canList?: boolean } = {},
): Promise<SourceSimulator> {
  const notFound: Answer = { status: 404, body: { status: 404, message: 'tenant not found' } }
  return startSimulator((url) => {
    const [, , top, tenantId, part] = url.pathname.slice(1).split('/').map(decodeURIComponent)
    if (top !== 'tenants') return notFound
    if (tenantId === undefined) {
      if (!canList) return { status: 501, body: { error: 'list tenant not supported' } }
      const { page, next } = cutPage(
        tenants.map(({ row }) => row),
        url,
        { cursor: 'next', limit: 'limit', most: 100 },
      )
      return ok({
        models: page,
        pagination: { order_by: 'created_at', dir: 'asc', next, prev: null },
        count: tenants.length,
      })
    }
    const tenant = tenants.find(({ row }) => row.id === tenantId)
    if (!tenant) return notFound
    return ok(part === 'destinations' ? tenant.destinations : tenant.row)
  })
}

/** Hook0: hook0/hook0, api/src/handlers/applications.rs (list, get) and subscriptions.rs (list): bare arrays. */
export function startHook0(
  organization: string,
  applications: readonly { row: Row & { application_id: string }; subscriptions: readonly Row[] }[],
): Promise<SourceSimulator> {
  const forbidden: Answer = { status: 403, body: { id: 'Forbidden', status: 403, title: 'Insufficient rights' } }
  return startSimulator((url) => {
    const wanted = url.searchParams.get('application_id')
    const app = applications.find(
      ({ row }) => url.pathname.endsWith(`/${row.application_id}`) || row.application_id === wanted,
    )
    if (url.pathname === '/api/v1/applications')
      return url.searchParams.get('organization_id') === organization
        ? ok(applications.map(({ row }) => row))
        : forbidden
    if (!app) return forbidden
    return ok(url.pathname === '/api/v1/subscriptions' ? app.subscriptions : app.row)
  })
}
