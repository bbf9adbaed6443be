import { ConnectionError, ProblemError, readProblem, UnexpectedAnswerError } from './error.ts'
import { decideRetry, type RetryRules, readRetryAfter } from './retry.ts'
import type { Tokens } from './token.ts'

/** The world outside of a client. */
export interface Transport {
  fetch: (request: Request) => Promise<Response>
  tokens: Tokens
  /** How long one try may take, its answer included, ms. */
  timeoutMs: number
  /** Waits; rejects when the signal is aborted. */
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>
  random: () => number
}

/** A whole answer. */
interface Received {
  response: Response
  /** The parsed JSON; the text of any other content; undefined for none. */
  body: unknown
}

/**
 * Sends a request until it is answered for good, and returns the body of a success. Throws the problem, or why there is no
 * answer.
 */
export async function send(
  transport: Transport,
  request: Request,
  given: RetryRules & { signal: AbortSignal | undefined },
): Promise<unknown> {
  for (let before = 0; ; before += 1) {
    const received = await tryWithToken(transport, request, given.signal)
    if (received instanceof Error) {
      const waitMs = decide(transport, given, { before, status: undefined, code: undefined, retryAfterMs: undefined })
      if (waitMs === undefined) throw received
      await transport.sleep(waitMs, given.signal)
      continue
    }
    const { response, body } = received
    if (response.ok) return keepTag(body, response)
    const { status, headers } = response
    const problem = readProblem(body)
    const retryAfterMs = readRetryAfter(headers.get('retry-after'))
    const waitMs = decide(transport, given, { before, status, code: problem?.code, retryAfterMs })
    if (waitMs === undefined)
      throw problem
        ? new ProblemError(problem, retryAfterMs)
        : new UnexpectedAnswerError(status, headers.get('content-type'))
    await transport.sleep(waitMs, given.signal)
  }
}

const tags = new WeakMap<object, string>()

function keepTag(body: unknown, { headers }: Response): unknown {
  const tag = headers.get('etag')
  if (tag !== null && typeof body === 'object' && body !== null) tags.set(body, tag)
  return body
}

/** The tag (`ETag`) that came with an answer: of the row as it was read, for the `ifMatch` of its change. */
export function entityTagOf(answer: object): string | undefined {
  return tags.get(answer)
}

const decide = ({ random }: Transport, rules: RetryRules, made: Parameters<typeof decideRetry>[0]) =>
  decideRetry(made, rules, random)

/** Tries with the token of now, and once more with a newer one when that is refused: a refused request did nothing. */
async function tryWithToken(
  transport: Transport,
  request: Request,
  signal: AbortSignal | undefined,
): Promise<Received | ConnectionError> {
  const token = await transport.tokens.read()
  const received = await tryOnce(transport, withToken(request, token), signal)
  if (received instanceof Error || received.response.status !== 401 || token === undefined) return received
  const newer = await transport.tokens.replace(token)
  return newer === undefined ? received : tryOnce(transport, withToken(request, newer), signal)
}

function withToken(request: Request, token: string | undefined): Request {
  const copy = request.clone()
  if (token !== undefined) copy.headers.set('authorization', `Bearer ${token}`)
  return copy
}

/** One request and its whole answer. An abort of the caller is thrown as it is. */
async function tryOnce(
  { fetch, timeoutMs }: Transport,
  request: Request,
  signal: AbortSignal | undefined,
): Promise<Received | ConnectionError> {
  const limit = AbortSignal.timeout(timeoutMs)
  const until = signal ? AbortSignal.any([signal, limit]) : limit
  try {
    const response = await fetch(new Request(request, { signal: until }))
    return { response, body: readBody(response, await response.text()) }
  } catch (error) {
    signal?.throwIfAborted()
    return new ConnectionError(request.url, error)
  }
}

function readBody(response: Response, text: string): unknown {
  if (text === '') return undefined
  if (!/^application\/(?:[\w.-]+\+)?json\b/.test(response.headers.get('content-type') ?? '')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
