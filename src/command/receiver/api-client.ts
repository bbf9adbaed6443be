import { FatalError } from '../../app/log/fatal.ts'
import { VERSION } from '../../base/version.ts'

const CALL_LIMIT_MS = 30_000

/** A failed call of the service, with the remedy. `unreachable` and `busy` may be temporary; `refused` is not. */
export class ApiError extends FatalError {
  readonly kind: 'unreachable' | 'busy' | 'refused'
  /** The problem's code (docs/contract/api.md#errors), where the answer was a problem. */
  readonly code: string | undefined
  readonly retryAfterMs: number | undefined

  constructor(kind: ApiError['kind'], message: string, options: { code?: string; retryAfterMs?: number } = {}) {
    super(message)
    this.name = 'ApiError'
    this.kind = kind
    this.code = options.code
    this.retryAfterMs = options.retryAfterMs
  }
}

/** A success of the API (docs/contract/api.md#success). */
export interface ApiAnswer<Data> {
  status: number
  /** Whether it is the kept answer of a change that was made before under this key. */
  isReplayed: boolean
  data: Data
  message: string
  pagination: { page_size: number; next_cursor: string | null; total?: number } | undefined
}

/** The parameters of a list (docs/contract/api.md#filters). `filters` have the form `<field>|<operator>|<values>`. */
export interface ListRequest {
  filters?: readonly string[]
  sort?: string
  pageSize?: number
  count?: boolean
}

/** A change with its key. */
export interface KeyedChange {
  method: 'POST' | 'PUT' | 'PATCH'
  path: string
  body: unknown
  key: string
}

/** Calls the HTTP API of one running service with one token. Every method throws an `ApiError`. */
export interface ApiClient {
  url: string
  call<Data>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<ApiAnswer<Data>>
  /**
   * A change that is made once under its key, however often it is sent (docs/contract/api.md#idempotency). The key is also the
   * request id, so that the audit entry has it: 1 to 128 letters, digits and `._-`.
   */
  callOnce<Data>(change: KeyedChange): Promise<ApiAnswer<Data>>
  /** One page of a list, the first one without `cursor`. */
  listPage<Row>(path: string, request: ListRequest, cursor?: string): Promise<ApiAnswer<Row[]>>
  listAll<Row>(path: string, request: ListRequest): Promise<Row[]>
}

/** Builds a client. `signal` interrupts the calls in flight, which then reject with the signal's reason. */
export function buildApiClient(options: { url: string; token: string; signal?: AbortSignal }): ApiClient {
  const { url, signal } = options
  const send = async <Data>(
    { method, path, body }: { method: string; path: string; body?: unknown },
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer<Data>> => {
    const limit = AbortSignal.timeout(CALL_LIMIT_MS)
    let response: Response
    let text: string
    try {
      response = await fetch(`${url}${path}`, {
        method,
        // A redirect would send the token to another URL, or turn a POST into a GET.
        redirect: 'manual',
        headers: {
          authorization: `Bearer ${options.token}`,
          accept: 'application/json',
          'user-agent': `Signalbox-Command/${VERSION}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      })
      text = await response.text()
    } catch (error) {
      signal?.throwIfAborted()
      throw buildUnreachable(url, error)
    }
    return readAnswer<Data>({ url, method, path }, response, text)
  }
  const call = <Data>(method: string, path: string, body?: unknown) => send<Data>({ method, path, body })
  const listPage = <Row>(path: string, request: ListRequest, cursor?: string) =>
    call<Row[]>('GET', `${path}?${buildListQuery(request, cursor)}`)
  return {
    url,
    call,
    callOnce: ({ key, ...change }) => send(change, { 'idempotency-key': key, 'x-request-id': key }),
    listPage,
    listAll: async <Row>(path: string, request: ListRequest) => {
      const rows: Row[] = []
      let cursor: string | undefined
      do {
        const page = await listPage<Row>(path, { pageSize: 200, ...request }, cursor)
        rows.push(...page.data)
        cursor = page.pagination?.next_cursor ?? undefined
      } while (cursor !== undefined)
      return rows
    },
  }
}

function buildListQuery(request: ListRequest, cursor: string | undefined): URLSearchParams {
  const query = new URLSearchParams()
  for (const filter of request.filters ?? []) query.append('filters', filter)
  if (request.sort !== undefined) query.set('sort', request.sort)
  if (request.pageSize !== undefined) query.set('page_size', String(request.pageSize))
  if (request.count) query.set('count', 'true')
  if (cursor !== undefined) query.set('cursor', cursor)
  return query
}

function buildUnreachable(url: string, error: unknown): ApiError {
  const { name, cause } = error as Error & { cause?: NodeJS.ErrnoException }
  const why =
    name === 'TimeoutError' ? `no answer within ${CALL_LIMIT_MS / 1000} s` : (cause?.code ?? cause?.message ?? name)
  return new ApiError(
    'unreachable',
    `The service cannot be reached at ${url} (${why}). Start it, or name another one with --url or SIGNALBOX_URL.`,
  )
}

interface CallMade {
  url: string
  method: string
  path: string
}

interface ProblemBody {
  code?: unknown
  detail?: unknown
}

function readAnswer<Data>(made: CallMade, response: Response, text: string): ApiAnswer<Data> {
  const body = parseJson(text)
  if (response.ok && body && 'data' in body) {
    const { data, message, pagination } = body as unknown as Omit<ApiAnswer<Data>, 'status' | 'isReplayed'>
    const isReplayed = response.headers.get('idempotency-replayed') === 'true'
    return { status: response.status, isReplayed, data, message, pagination }
  }
  throw buildRefusal(made, response, body)
}

function parseJson(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function buildRefusal({ url, method, path }: CallMade, response: Response, body: ProblemBody | undefined): ApiError {
  const { status } = response
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
  const options = {
    ...(typeof body?.code === 'string' && { code: body.code }),
    ...(Number.isFinite(retryAfter) && { retryAfterMs: retryAfter * 1000 }),
  }
  const detail = typeof body?.detail === 'string' ? body.detail : undefined
  const call = `${method} ${path.split('?')[0]}`
  if (status === 429 || status >= 500)
    return new ApiError('busy', `The service answered ${status} to ${call}: ${detail ?? 'try again later.'}`, options)
  if (status >= 300 && status < 400) {
    const location = response.headers.get('location') ?? 'another place'
    return new ApiError('refused', `${url} redirects to ${location}. Use that URL as --url.`, options)
  }
  if (detail === undefined || options.code === undefined)
    return new ApiError(
      'refused',
      `${url} answered ${status} to ${call} and not as Signalbox does. Check --url.`,
      options,
    )
  if (status === 401)
    return new ApiError(
      'refused',
      `The service refused the token: ${detail} Give another one with --token or SIGNALBOX_TOKEN.`,
      options,
    )
  if (status === 403) return new ApiError('refused', `The token lacks the permission: ${detail}`, options)
  return new ApiError('refused', `${call} was refused (${status} ${options.code}): ${detail}`, options)
}
