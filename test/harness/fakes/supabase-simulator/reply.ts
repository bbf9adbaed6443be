import type { User } from './directory.ts'

/** An answer of the simulator; a text is sent as text, everything else as JSON. */
export interface Reply {
  status: number
  body?: unknown
  headers?: Record<string, string>
}

/** Answer of an endpoint to a user: `session` is the id of the session of its token. */
export type AnswerUser = (user: User, session: string) => Reply

/** An error in the shape of a server without a version; `toVersion` turns it into the other one. */
export function fail(status: number, code: string, message: string): Reply {
  return { status, body: { code: status, error_code: code, msg: message }, headers: { 'x-sb-error-code': code } }
}

/** The body of an error in the shape of version 2024-01-01; other bodies stay as they are. */
export function toVersion(body: unknown): unknown {
  const { error_code: code, msg: message } = (body ?? {}) as Record<string, unknown>
  return code === undefined ? body : { code, message }
}
