import { matchesPattern } from '../http/caller.ts'
import { invalidField } from '../http/problem.ts'

/** A permission `resource:action`, `resource:*` or `*:*` (docs/contract/identity.md#system-roles). */
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
