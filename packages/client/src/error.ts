import type { Schemas } from './call.ts'

/** A problem as the API answers it (RFC 9457). */
export type Problem = Schemas['Problem']

/** Stable code of a problem: each has a page in the documentation of the service. */
export type ProblemCode = Problem['code']

/** Whatever a call throws, but for what `signal` was aborted with. */
export abstract class SignalboxError extends Error {}

/** The API refused the request, or failed. */
export class ProblemError<Code extends ProblemCode = ProblemCode> extends SignalboxError {
  override readonly name = 'ProblemError'
  readonly code: Code
  readonly status: number
  /** The id under which the service logged the request. */
  readonly requestId: string
  /** The whole answer: `errors` with a path for each invalid member, `missing` permissions, `limit`. */
  readonly problem: Problem
  /** How long to wait before the same request may succeed, ms; undefined when the API does not say. */
  readonly retryAfterMs: number | undefined

  constructor(problem: Problem & { code: Code }, retryAfterMs: number | undefined) {
    super(`${problem.status} ${problem.code}: ${problem.detail ?? problem.title} (request ${problem.request_id})`)
    this.code = problem.code
    this.status = problem.status
    this.requestId = problem.request_id
    this.problem = problem
    this.retryAfterMs = retryAfterMs
  }
}

/** Something answered that is not the API: a proxy, another service at this address. */
export class UnexpectedAnswerError extends SignalboxError {
  override readonly name = 'UnexpectedAnswerError'
  readonly status: number

  constructor(status: number, contentType: string | null) {
    super(
      `the answer ${status} (${contentType ?? 'no content type'}) is not of the API: look at the base URL and proxies`,
    )
    this.status = status
  }
}

/** No answer came: no connection, none in time, or one that ended early. `cause` tells which. */
export class ConnectionError extends SignalboxError {
  override readonly name = 'ConnectionError'

  constructor(url: string, cause: unknown) {
    super(`no answer from ${new URL(url).host}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
  }
}

/** Whether an error is a problem of one of these codes, or of any when none is given. */
export function isProblem<Code extends ProblemCode = ProblemCode>(
  error: unknown,
  ...codes: readonly Code[]
): error is ProblemError<Code> {
  return error instanceof ProblemError && (codes.length === 0 || (codes as readonly string[]).includes(error.code))
}

/** The problem in a body that was refused; undefined when it is not of the API. */
export function readProblem(body: unknown): Problem | undefined {
  const { code, status, request_id } = (typeof body === 'object' && body !== null ? body : {}) as Partial<Problem>
  return typeof code === 'string' && typeof status === 'number' && typeof request_id === 'string'
    ? (body as Problem)
    : undefined
}
