import { findScope } from './scope-catalogue.ts'

/** The names in a `scope` (RFC 6749 section 3.3), each once, in the order given. Pure. */
export function listScopeNames(scope: string): string[] {
  return [...new Set(scope.split(' ').filter((name) => name !== ''))]
}

/**
 * The names in the catalogue. A grant has no others: a scope of a later release must not be granted before the user
 * could read its description, and a request must not grow the row of a grant. Pure.
 */
export function keepKnownScopes(names: Iterable<string>): string[] {
  return [...new Set(names)].filter((name) => findScope(name) !== undefined)
}

/**
 * The ceiling of an app (docs/contract/oauth-exchange.md#scope-ceiling): the permissions that the scopes open, each
 * once. Permissions that the user lacks stay closed. An unknown name opens nothing. Pure.
 */
export function findPermissionsOf(scope: string): string[] {
  const opened = listScopeNames(scope).flatMap((name) => findScope(name)?.permissions ?? [])
  return [...new Set(opened)].sort()
}
