import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { isAccountRefused, MOVING_RETRY_SECONDS } from '../../postgres/cell/account-fence.ts'
import { isDatabaseUnavailable, isGivenUp, isStatementTimeout } from '../../postgres/statement/database.ts'
import { buildProblemBody, formatBytes, Problem } from './problem.ts'

/** Default limit of a body: 64 KiB. */
export const BODY_LIMIT_BYTES = 65_536

/** A problem as a page. */
export interface ProblemPage {
  html: string
  headers: Record<string, string>
}

export interface ProblemAnswerOptions {
  /** The base URL of the service; a function, because the port may be chosen at start. */
  baseUrl: () => string
  /** Renders a problem for a browser; undefined where the problem itself is sent. */
  renderProblem?: (problem: Problem, request: FastifyRequest) => ProblemPage | undefined
}

/** Maps an error to its problem; an unexpected one to one fixed text (docs/contract/api.md#errors). */
export function toProblem(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error
  const { code, statusCode } = (error ?? {}) as FastifyError
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new Problem('body_too_large', `This route takes a body of at most ${formatBytes(bodyLimitOf(request))}.`)
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE')
    return new Problem('unsupported_media_type', 'Send the body as Content-Type: application/json.')
  // 414 is a path parameter that is longer than any id.
  if (statusCode === 414) return new Problem('not_found', 'There is nothing at this path.')
  if (statusCode === 400)
    return new Problem('malformed_request', 'The request is malformed. Check its headers and body.')
  if (isGivenUp(error)) {
    request.log.warn(
      { err: error },
      'transaction aborted by a concurrent one: see docs/operations.md, concurrent changes',
    )
    return new Problem(
      'dependency_unavailable',
      'A concurrent change aborted this one. Nothing was changed; try again.',
      {
        headers: { 'retry-after': '1' },
      },
    )
  }
  if (isAccountRefused(error))
    return new Problem('account_moving', 'The account is moving to another database. Nothing was changed; try again.', {
      headers: { 'retry-after': `${MOVING_RETRY_SECONDS}` },
    })
  if (isStatementTimeout(error)) {
    request.log.error({ err: error }, 'statement took too long: see docs/operations.md, database')
    return new Problem(
      'dependency_unavailable',
      'The database did not finish this request in time. Nothing was changed; try again.',
      { headers: { 'retry-after': '5' } },
    )
  }
  if (isDatabaseUnavailable(error)) {
    request.log.error({ err: error }, 'database unavailable: see docs/operations.md, database')
    return new Problem(
      'dependency_unavailable',
      'The database is unavailable. Try again; repeat a change with the same Idempotency-Key, in case it was committed.',
      {
        headers: { 'retry-after': '5' },
      },
    )
  }
  request.log.error({ err: error }, 'unexpected error: see docs/operations.md, unexpected errors')
  return new Problem(
    'internal_error',
    'Unexpected error. Report the request id to the operator; repeat a change only with its Idempotency-Key.',
  )
}

function bodyLimitOf(request: FastifyRequest): number {
  return request.routeOptions.bodyLimit ?? BODY_LIMIT_BYTES
}

/** Sends a problem: as a page where `renderProblem` makes one, else as `application/problem+json`. */
export function sendProblem(
  problem: Problem,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
  { baseUrl, renderProblem }: ProblemAnswerOptions,
) {
  request.problem = problem
  for (const [name, value] of Object.entries(problem.headers)) reply.header(name, value)
  reply.code(problem.status).header('cache-control', 'no-store')
  const page = renderProblem?.(problem, request)
  if (page) return reply.headers(page.headers).type('text/html; charset=utf-8').send(page.html)
  return reply
    .header('content-type', 'application/problem+json')
    .serializer((body: unknown) => JSON.stringify(body))
    .send(buildProblemBody(problem, { requestId: request.id, baseUrl: baseUrl() }))
}
