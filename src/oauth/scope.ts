import { findScope } from './scope-catalogue.ts'

/** The names in a `scope` (RFC 6749 section 3.3), each once, in the order given. Pure. */
export function listScopeNames(scope: string): string[] {
  return [...new Set(scope.split(' ').filter((name) => name !== ''))]
}

/**
 * The ceiling of an app (docs/contract/oauth-exchange.md#scope-ceiling): the permissions that the scopes open, each once. What the
 * user does not hold stays closed, whatever the ceiling says. A name that the catalogue does not have opens nothing. Pure.
 */
export function findPermissionsOf(scope: string): string[] {
  const opened = listScopeNames(scope).flatMap((name) => findScope(name)?.permissions ?? [])
  return [...new Set(opened)].sort()
}
