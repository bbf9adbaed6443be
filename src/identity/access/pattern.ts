import { invalidField } from '../../http/problem/problem.ts'
import { matchesPattern } from '../../http/shape/caller.ts'

/** A permission `resource:action`, `resource:*` or `*:*` (docs/contract/identity.md#system-roles). */
export const PATTERN_PATTERN = '^(\\*:\\*|[a-z][a-z0-9-]*:(\\*|[a-z][a-z0-9-]*))$'

/** Whether `pattern` matches a known permission: `*:*`, a permission, or `resource:*` of a known resource. */
export function isKnownPattern(pattern: string, permissions: readonly string[]): boolean {
  return permissions.some((permission) => matchesPattern(pattern, permission))
}

/** Checks that each pattern is known. Throws a 422 at `permissions.<index>` of the first one that is not. */
export function checkPatternsKnown(patterns: readonly string[], permissions: readonly string[]): void {
  const at = patterns.findIndex((pattern) => !isKnownPattern(pattern, permissions))
  if (at < 0) return
  const message = `${patterns[at]} matches no permission. GET /api/v3/identity/permission lists all.`
  throw invalidField(`permissions.${at}`, 'unknown_permission', message)
}

/**
 * Checks that each pattern matches a permission with an effect when limited to some accounts. `holder` starts the
 * message. Throws a 422 at `permissions.<index>` of the first one that does not.
 */
export function checkPatternsHaveEffect(
  patterns: readonly string[],
  accountPermissions: readonly string[],
  holder: string,
): void {
  const at = patterns.findIndex((pattern) => !isKnownPattern(pattern, accountPermissions))
  if (at < 0) return
  const message = `${holder} holds its permissions for single accounts, and ${patterns[at]} has an effect only where it holds for all: no route takes it for one account.`
  throw invalidField(`permissions.${at}`, 'no_effect_in_scope', message)
}

/** Whether `wide` covers `narrow`. `resource:*` covers itself and each `resource:action`. */
export function coversPattern(wide: string, narrow: string): boolean {
  return matchesPattern(wide, narrow)
}
