import type { FieldError, FieldErrorCode, FieldParams } from './field-error.ts'

/**
 * The closed registry of errors (docs/contract/api.md#errors, RFC 9457). Each code has one status, one title and one page
 * at `/docs/errors/<code>`, rendered from `docs/errors.md`; a test compares both lists in both directions.
 */
export const PROBLEMS = {
  malformed_request: { status: 400, title: 'Malformed request' },
  unauthenticated: { status: 401, title: 'Authentication required' },
  login_failed: { status: 401, title: 'Wrong e-mail or password' },
  social_login_failed: { status: 401, title: 'Sign-in not completed' },
  second_factor_required: { status: 401, title: 'Second factor required' },
  second_factor_failed: { status: 401, title: 'Second factor not accepted' },
  refresh_failed: { status: 401, title: 'Invalid refresh token' },
  sso_exchange_failed: { status: 401, title: 'Handshake not accepted' },
  oauth_exchange_failed: { status: 401, title: 'Access token not accepted' },
  signature_invalid: { status: 401, title: 'Invalid signature' },
  permission_denied: { status: 403, title: 'Permission denied' },
  fresh_factor_required: { status: 403, title: 'Fresh proof of identity required' },
  email_required: { status: 403, title: 'E-mail address required' },
  connection_required: { status: 403, title: 'Sign-in by the connection required' },
  email_not_verified: { status: 403, title: 'E-mail address not verified' },
  form_refused: { status: 403, title: 'Form refused' },
  sign_in_by_mail_off: { status: 403, title: 'Sign-in by mail switched off' },
  sign_up_closed: { status: 403, title: 'Sign-up closed' },
  provider_unknown: { status: 404, title: 'Unknown sign-in provider' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  request_timeout: { status: 408, title: 'Request timeout' },
  conflict: { status: 409, title: 'Conflict with the current state' },
  domain_unproven: { status: 409, title: 'Domain not proven' },
  identity_not_linked: { status: 409, title: 'Identity not linked' },
  duplicate_not_confirmed: { status: 409, title: 'Possible duplicate not confirmed' },
  webhook_inactive: { status: 409, title: 'Webhook inactive or deleted' },
  target_inactive: { status: 409, title: 'Target inactive or deleted' },
  delivery_superseded: { status: 409, title: 'Delivery superseded by a later one' },
  limit_reached: { status: 409, title: 'Limit reached' },
  idempotency_in_progress: { status: 409, title: 'First request with this key in progress' },
  link_invalid: { status: 410, title: 'Link not valid' },
  precondition_failed: { status: 412, title: 'Changed since it was read' },
  body_too_large: { status: 413, title: 'Body too large' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  validation_failed: { status: 422, title: 'Validation failed' },
  redirect_url_not_allowed: { status: 422, title: 'Redirect URL not allowed' },
  read_too_expensive: { status: 422, title: 'Read too expensive' },
  idempotency_key_reused: { status: 422, title: 'Idempotency key reused' },
  rate_limited: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'Request headers too large' },
  internal_error: { status: 500, title: 'Internal error' },
  account_moving: { status: 503, title: 'Account moving' },
  overloaded: { status: 503, title: 'Overloaded' },
  realtime_unavailable: { status: 503, title: 'Realtime not available' },
  sink_fails: { status: 503, title: 'Sink fails on request' },
  dependency_unavailable: { status: 503, title: 'Dependency unavailable' },
} as const

/** A code of the registry. */
export type ProblemCode = keyof typeof PROBLEMS

/** Requirement of a `second_factor_required`. */
export interface FactorHint {
  /** To be sent back with the proof. */
  challenge: string
  /** The ways in which the user can prove its second factor. */
  methods: readonly string[]
  /** The lifetime of the challenge in seconds. */
  expiresIn: number
}

/** Missing permission of a `permission_denied` (docs/contract/identity.md#refusals). */
export interface Missing {
  /**
   * `permission`: the token lacks it. `scope`: the token has it for some accounts, and the request needs it for all.
   * `account`: the token lacks it for this account. `app_scope`: no scope of the app opens it.
   */
  what: 'permission' | 'scope' | 'account' | 'app_scope'
  permission: string
  account?: string
}

/** A limit of an account that a request would exceed (docs/contract/delivery.md#limits-of-an-account). */
export interface ExceededLimit {
  name: string
  value: number
  account: string
}

/** Maximum number of entries in `errors`, which bounds the size of an answer. */
export const ERRORS_LIMIT = 50

/**
 * An error that the caller receives. Keeps the first 50 of `errors`. `detail` is a sentence that a user can act on;
 * `reason` is logged and not sent. Neither holds a secret, an SQL text or a stack.
 */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly status: number
  readonly detail: string
  readonly errors: FieldError[] | undefined
  readonly headers: Record<string, string>
  readonly reason: string | undefined
  /** For `second_factor_required` only. Sent to the caller, but not to the log or the audit log. */
  readonly secondFactor: FactorHint | undefined
  /** Of `permission_denied`. */
  readonly missing: Missing | undefined
  /** Of `limit_reached` and `rate_limited`, where the limit is one of an account. */
  readonly limit: ExceededLimit | undefined

  constructor(
    code: ProblemCode,
    detail: string,
    options: {
      errors?: FieldError[]
      headers?: Record<string, string>
      reason?: string
      cause?: unknown
      secondFactor?: FactorHint
      missing?: Missing
      limit?: ExceededLimit
    } = {},
  ) {
    super(detail, { cause: options.cause })
    this.name = 'Problem'
    this.code = code
    this.status = PROBLEMS[code].status
    this.detail = detail
    this.errors = options.errors?.slice(0, ERRORS_LIMIT)
    this.headers = options.headers ?? {}
    this.reason = options.reason
    this.secondFactor = options.secondFactor
    this.missing = options.missing
    this.limit = options.limit
  }
}

/** A problem on the wire (RFC 9457). */
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
    ...(problem.missing && { missing: problem.missing }),
    ...(problem.limit && { limit: problem.limit }),
    ...(problem.secondFactor && { second_factor: toHintRow(problem.secondFactor) }),
  }
}

function toHintRow({ challenge, methods, expiresIn }: FactorHint): Record<string, unknown> {
  return { challenge, methods, expires_in: expiresIn }
}

/** A 422 about one field. `message` names the rule and the remedy. */
export function invalidField(path: string, code: FieldErrorCode, message: string): Problem {
  return buildFieldProblem({ path, code, message, params: undefined })
}

/** A 422 about one field, with the numbers and words of the rule. */
export function buildFieldProblem({
  params,
  ...error
}: Omit<FieldError, 'params'> & { params: FieldParams | undefined }): Problem {
  const entry: FieldError = { ...error, ...(params && { params }) }
  return new Problem('validation_failed', `${entry.path}: ${entry.message}`, { errors: [entry] })
}

/** A 404 for one noun. */
export function notFound(noun: string): Problem {
  return new Problem('not_found', `There is no ${noun} with this id, or it was deleted.`)
}

/** A row that was found. Throws the 404 of its noun for none. */
export function orNotFound<Row>(row: Row | undefined, noun: string): Row {
  if (row === undefined) throw notFound(noun)
  return row
}

/** `64 KiB`, `1 MiB`: a limit as users read it. */
export function formatBytes(bytes: number): string {
  return bytes % 1_048_576 === 0 ? `${bytes / 1_048_576} MiB` : `${bytes / 1024} KiB`
}
