/**
 * The closed registry of errors (docs/contract/api.md#errors, RFC 9457). Each code has one status, one title and one page at `/docs/errors/<code>`,
 * whose text is `docs/errors.md`; a test holds the two together in both directions.
 */
export const PROBLEMS = {
  malformed_request: { status: 400, title: 'The request could not be read' },
  unauthenticated: { status: 401, title: 'A valid bearer token is needed' },
  login_failed: { status: 401, title: 'E-mail or password is wrong' },
  refresh_failed: { status: 401, title: 'The refresh token is not valid' },
  signature_invalid: { status: 401, title: 'The signature is not valid' },
  permission_denied: { status: 403, title: 'A permission is missing' },
  not_found: { status: 404, title: 'There is no such thing' },
  method_not_allowed: { status: 405, title: 'The path does not take this method' },
  request_timeout: { status: 408, title: 'The request did not arrive in time' },
  conflict: { status: 409, title: 'The state does not allow this' },
  duplicate_not_confirmed: { status: 409, title: 'The delivery may repeat; confirm it' },
  webhook_inactive: { status: 409, title: 'The webhook is inactive or deleted' },
  limit_reached: { status: 409, title: 'A limit is reached' },
  idempotency_in_progress: { status: 409, title: 'The first request with this key still runs' },
  body_too_large: { status: 413, title: 'The body is too large' },
  unsupported_media_type: { status: 415, title: 'The content type is not taken' },
  validation_failed: { status: 422, title: 'The request breaks a rule' },
  idempotency_key_reused: { status: 422, title: 'The key was used with another body' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The headers are too large' },
  internal_error: { status: 500, title: 'Something went wrong on our side' },
  overloaded: { status: 503, title: 'Too many requests of this kind at once' },
  dependency_unavailable: { status: 503, title: 'Something we depend on is down' },
} as const

/** A code of the registry. */
export type ProblemCode = keyof typeof PROBLEMS

/** One broken rule of a validation problem. `path` is the member in dotted form (`events.0`), or a query parameter's name. */
export interface FieldError {
  path: string
  code: string
  message: string
}

/** More than a person reads; a body of a million faults is not answered with a million sentences. */
export const ERRORS_LIMIT = 50

/**
 * An error that a caller may read. Of `errors` it keeps the first 50. `detail` is a sentence a person can act on; `reason` goes to the log only.
 * Never put a secret, an SQL text or a stack into either.
 */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly status: number
  readonly detail: string
  readonly errors: FieldError[] | undefined
  readonly headers: Record<string, string>
  readonly reason: string | undefined

  constructor(
    code: ProblemCode,
    detail: string,
    options: { errors?: FieldError[]; headers?: Record<string, string>; reason?: string; cause?: unknown } = {},
  ) {
    super(detail, { cause: options.cause })
    this.name = 'Problem'
    this.code = code
    this.status = PROBLEMS[code].status
    this.detail = detail
    this.errors = options.errors?.slice(0, ERRORS_LIMIT)
    this.headers = options.headers ?? {}
    this.reason = options.reason
  }
}

/** A problem as it goes over the wire (RFC 9457). */
export function buildProblemBody(
  problem: Problem,
  { requestId, baseUrl }: { requestId: string; baseUrl: string },
): Record<string, unknown> {
  return {
    type: `${baseUrl}/docs/errors/${problem.code}`,
    title: PROBLEMS[problem.code].title,
    status: problem.status,
    code: problem.code,
    detail: problem.detail,
    request_id: requestId,
    ...(problem.errors && { errors: problem.errors }),
  }
}

/** A 422 about one field. `message` names the rule and the remedy. */
export function invalidField(path: string, code: string, message: string): Problem {
  return new Problem('validation_failed', `${path}: ${message}`, { errors: [{ path, code, message }] })
}

/** A 404 for one noun. */
export function notFound(noun: string): Problem {
  return new Problem('not_found', `There is no ${noun} with this id, or it was deleted.`)
}

/** `64 KiB`, `1 MiB`: a limit as people read it. */
export function formatBytes(bytes: number): string {
  return bytes % 1_048_576 === 0 ? `${bytes / 1_048_576} MiB` : `${bytes / 1024} KiB`
}
