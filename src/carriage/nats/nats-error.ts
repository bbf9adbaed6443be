import { LogError, type LogErrorCode } from '../log/log.ts'

/** Codes of the errors of JetStream (`server/errors.json` of nats-server). */
const CODES: Readonly<Record<number, LogErrorCode>> = {
  // Wrong last sequence, with and without the number.
  10071: 'conflict',
  10164: 'conflict',
  // A message of a batch conflicts.
  10176: 'conflict',
  // Not enabled on the server, or for the account; no such stream; limits of the account; batches are off.
  10076: 'unsuitable',
  10039: 'unsuitable',
  10059: 'unsuitable',
  10060: 'unsuitable',
  10174: 'unsuitable',
}

/** Names of client errors for a user that the server refuses. */
const REFUSALS = ['AuthorizationError', 'UserAuthenticationExpiredError', 'PermissionViolationError']

interface ApiError {
  code?: unknown
  err_code?: unknown
  description?: unknown
}

/** The error for a failure of the client or the server, with the server's words, which contain no secret. */
export function toLogError(error: unknown): LogError {
  if (error instanceof LogError) return error
  const given = error as ApiError & { name?: string; message?: string }
  const number = Number(given.err_code ?? given.code)
  const words = String(given.description ?? given.message ?? error)
  const code = CODES[number] ?? (isRefusal(given.name, words) ? 'refused' : 'unreachable')
  return new LogError(code, `NATS: ${words}${Number.isInteger(number) ? ` (${number})` : ''}`, { cause: error })
}

function isRefusal(name: string | undefined, words: string): boolean {
  return (name !== undefined && REFUSALS.includes(name)) || /authorization|permissions? violation/i.test(words)
}
