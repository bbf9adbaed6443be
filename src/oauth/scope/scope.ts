import { findScope } from './scope-catalogue.ts'

/** The names in a `scope` (RFC 6749 section 3.3), each once, in the order given. Pure. */
export function listScopeNames(scope: string): string[] {
  return [...new Set(scope.split(' ').filter((name) => name !== ''))]
}

/**
 * The names that the catalogue has. A grant holds no other one: a scope of a later release must not be allowed before the
 * user could read what it means, and a request must not make the row of a grant grow. Pure.
 */
export function keepKnownScopes(names: Iterable<string>): string[] {
  return [...new Set(names)].filter((name) => findScope(name) !== undefined)
}

/**
 * The ceiling of an app (docs/contract/oauth-exchange.md#scope-ceiling): the permissions that the scopes open, each once. What the
 * user does not hold stays closed, whatever the ceiling says. A name that the catalogue does not have opens nothing. Pure.
 */
export function findPermissionsOf(scope: string): string[] {
  const opened = listScopeNames(scope).flatMap((name) => findScope(name)?.permissions ?? [])
  return [...new Set(opened)].sort()
}
