import type { Readable } from 'node:stream'
import type { AccountId, SessionId, UserId } from '../../base/id.ts'
import type { Problem } from '../problem/problem.ts'
import type { PortalVisit } from '../shape/caller.ts'

/** A cookie that an answer sets; `value` may be empty with `maxAgeSeconds: 0` to remove it. */
export interface AnswerCookie {
  name: string
  value: string
  path: string
  domain?: string
  maxAgeSeconds?: number
  httpOnly: boolean
  secure: boolean
  sameSite: 'strict' | 'lax' | 'none'
}

/** One resource that an operation changed. The pipeline records one event for each (docs/contract/events.md#emission). */
export interface Changed {
  /** The `document_id` of the resource; null when the operation has no single one (a list). */
  id: string | null
  /** Its owner. Ignored when the route's scope is `none`; null for a purge. */
  account: AccountId | null
  /** The path that reads it, where that is not the `find-one` route of the route's own resource. */
  url?: string | null
}

interface OutcomeFacts {
  /** The resources that changed. Without it the pipeline records no event. */
  changed?: Changed[]
  /** The account that the answer concerns, where `changed` does not say it: who repeats the request must reach it. */
  keptFor?: AccountId | null
  headers?: Record<string, string>
  cookies?: readonly AnswerCookie[]
  /** Additional members of the audit entry. Never a secret. */
  audit?: Record<string, unknown>
  /** The actor for the audit entry, where the request carries no token: a sign-in. */
  actor?: {
    userId: UserId | null
    sessionId: SessionId | null
    account: AccountId | null
    /** The app that acts for the user. */
    clientId?: string | null
    /** The portal session that is opened or ended, and its API key. */
    portal?: PortalVisit
    apiKeyId?: string
  }
}

/** A success with data in the envelope `{ data, message }`, or bare where the declaration says so. */
export interface DataOutcome<Data> extends OutcomeFacts {
  kind?: 'data'
  data: Data
  message: string
  /** The changed row before the change, in the form of `data`, for the audit entry. Never with a secret. */
  before?: object
  /** Set by list routes. */
  /** The cells whose part is not in `data`, since they are away. */
  missingCells?: readonly string[]
  pagination?: { page_size: number; next_cursor: string | null; total?: number; is_total_exact?: boolean }
  /** The path of the created row; becomes the `Location` header of a 201. */
  location?: string
  /** The status of this success, when it is that of the declaration's `also`. */
  status?: number
}

/** A redirect of the browser. */
export interface RedirectOutcome extends OutcomeFacts {
  kind: 'redirect'
  location: string
  /** Default 302; 303 after a POST whose target is read by GET (RFC 9110 section 15.4.4). */
  status?: 302 | 303
}

/** A page of HTML. */
export interface PageOutcome extends OutcomeFacts {
  kind: 'page'
  html: string
  /** Default 200. */
  status?: number
}

/** A success that is streamed. For a GET with `media`. */
export interface StreamOutcome extends OutcomeFacts {
  kind: 'stream'
  contentType: string
  body: Readable
}

/**
 * A refusal that commits what the operation wrote (a spent refresh token, the revocation that its reuse causes). It is
 * audited as a failure and records no event. A thrown `Problem` rolls back.
 */
export interface RefusalOutcome extends Omit<OutcomeFacts, 'changed'> {
  kind: 'refusal'
  problem: Problem
  /**
   * Sent instead of the problem: a page, with the status and headers of the problem, a redirect (303 by default), or the
   * error body of another standard with its status.
   */
  instead?:
    | { html: string }
    | { location: string; status?: 302 }
    | { json: Readonly<Record<string, unknown>>; status: number }
  /** The `document_id` of the request's subject, for the audit entry. */
  target?: string | null
  /** Distinguishes refusals that would otherwise be counted as equal; not part of the audit entry. */
  subject?: string
}

/** Result of an operation for the pipeline. */
export type Outcome<Data> = DataOutcome<Data> | RedirectOutcome | PageOutcome | StreamOutcome | RefusalOutcome
