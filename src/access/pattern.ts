import { matchesPattern } from '../http/caller.ts'
import { invalidField } from '../http/problem.ts'

/** A permission `resource:action`, `resource:*` or `*:*` (docs/contract/identity.md#system-roles). */
export const PATTERN_PATTERN = '^(\\*:\\*|[a-z][a-z0-9-]*:(\\*|[a-z][a-z0-9-]*))$'

/** Whether `pattern` matches a known permission: `*:*`, a permission, or `resource:*` of a known resource. */
export function isKnownPattern(pattern: string, permissions: readonly string[]): boolean {
  return pattern === '*:*' || permissions.some((permission) => matchesPattern(pattern, permission))
}

/** Checks that each pattern is known. Throws a 422 at `permissions.<index>` of the first one that is not. */
export function checkPatternsKnown(patterns: readonly string[], permissions: readonly string[]): void {
  const at = patterns.findIndex((pattern) => !isKnownPattern(pattern, permissions))
  if (at < 0) return
  const message = `${patterns[at]} matches no permission. GET /api/v3/identity/permission lists all.`
  throw invalidField(`permissions.${at}`, 'unknown_permission', message)
}

/** Whether `wide` covers `narrow`. `resource:*` covers itself and each `resource:action`. */
export function coversPattern(wide: string, narrow: string): boolean {
  return matchesPattern(wide, narrow)
}
