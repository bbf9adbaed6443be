import { type Caller, matchesPattern } from '../http/caller.ts'
import { invalidField, Problem } from '../http/problem.ts'

/** A permission `resource:action`, `resource:*` or `*:*` (D11). */
export const PATTERN_PATTERN = '^(\\*:\\*|[a-z][a-z0-9-]*:(\\*|[a-z][a-z0-9-]*))$'

/** Whether `pattern` is about something that exists: `*:*`, a known permission, or `resource:*` of a known resource. */
export function isKnownPattern(pattern: string, permissions: readonly string[]): boolean {
  return pattern === '*:*' || permissions.some((permission) => matchesPattern(pattern, permission))
}

/** Checks that each pattern names something known. Throws a 422 on the first one that does not, at `permissions.<index>`. */
export function checkPatternsKnown(patterns: readonly string[], permissions: readonly string[]): void {
  const at = patterns.findIndex((pattern) => !isKnownPattern(pattern, permissions))
  if (at < 0) return
  const message = `${patterns[at]} names no permission. GET /api/v3/identity/permission lists all.`
  throw invalidField(`permissions.${at}`, 'unknown_permission', message)
}

/** Whether holding `wide` means holding all that `narrow` means. `resource:*` covers itself and each `resource:action`. */
export function coversPattern(wide: string, narrow: string): boolean {
  return matchesPattern(wide, narrow)
}

/** The first of `patterns` that `caller` does not hold everywhere itself, counting what an API key narrows. */
export function findUnheldPattern(caller: Caller, patterns: readonly string[]): string | undefined {
  const holds = (held: readonly string[], pattern: string) => held.some((one) => coversPattern(one, pattern))
  return patterns.find(
    (pattern) =>
      !holds(caller.patterns, pattern) || (caller.keyPatterns !== null && !holds(caller.keyPatterns, pattern)),
  )
}

/**
 * Nobody gives away, or takes over, more than they hold: checks that `caller` holds each of `patterns` everywhere.
 * `action` completes "you cannot ...". Throws 403 `permission_denied` that names the first missing one.
 */
export function checkHoldsPatterns(caller: Caller, patterns: readonly string[], action: string): void {
  const missing = findUnheldPattern(caller, patterns)
  if (missing === undefined) return
  throw new Problem('permission_denied', `You cannot ${action}: it holds ${missing}, which you do not hold yourself.`)
}
