import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '../problem/problem.ts'
import { buildEntityTag, holdsTag } from '../request/entity-tag.ts'
import type { Answer } from './answer.ts'
import type { Outcome } from './outcome.ts'
import type { RouteDeclaration } from './route-declaration.ts'

/** The start of a row's tag: of the members that its change can set, so that a counter of the row does not change it. */
function buildSettableTag({ rowTag }: RouteDeclaration, row: object): string {
  const values = (rowTag ?? []).map((name) => sortList((row as Record<string, unknown>)[name]) ?? null)
  return buildEntityTag(JSON.stringify(values)).slice(1, -1)
}

/** A list has no order of its own: roles, permissions, scopes. One of rows is the ids of these: event types. */
function sortList(value: unknown): unknown {
  if (!Array.isArray(value)) return value
  const items = value.map((item) => item?.document_id ?? item)
  return items.every((item) => typeof item === 'string') ? items.sort() : value
}

/** The tag of the row that an answer shows (docs/contract/api.md#lost-updates): what can be set, then all of it. */
export function addRowTag(route: RouteDeclaration, outcome: Outcome<unknown>, answer: Answer): Answer {
  if (!route.rowTag || (outcome.kind !== undefined && outcome.kind !== 'data')) return answer
  const row = outcome.data as object
  const etag = `"${buildSettableTag(route, row)}.${buildEntityTag(JSON.stringify(row)).slice(1, -1)}"`
  return { ...answer, headers: { ...answer.headers, etag } }
}

/** Refuses `If-Match` where a change is not conditional: it does not protect. Throws 400 `malformed_request`. */
export function checkTakesCondition(route: RouteDeclaration, headers: IncomingHttpHeaders): void {
  if (headers['if-match'] === undefined || route.method === 'GET' || route.rowTag) return
  throw new Problem(
    'malformed_request',
    'This route takes no If-Match: it changes whatever state there is. Leave it out.',
  )
}

/**
 * Compares the row before a change with the tag that the request names in `If-Match`, inside the transaction, so that a
 * refusal rolls it back. Throws 412 `precondition_failed`.
 */
export function checkCondition(route: RouteDeclaration, outcome: Outcome<unknown>, headers: IncomingHttpHeaders): void {
  const given = headers['if-match']
  if (given === undefined || !route.rowTag || !('before' in outcome) || !outcome.before) return
  const settable = `"${buildSettableTag(route, outcome.before)}"`
  if (holdsTag(given.replaceAll(/\.[^",]*"/g, '"'), settable)) return
  throw new Problem(
    'precondition_failed',
    'The row was changed since it was read: its tag is not that of If-Match. Read it again, and decide with what it is now.',
  )
}
