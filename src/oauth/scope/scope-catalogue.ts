/** A scope that an app may request (docs/contract/oauth-exchange.md#scopes). Its texts are `scope.<name>`. */
export interface Scope {
  /** As in the parameter `scope` (RFC 6749 section 3.3). */
  name: string
  /** The permissions that the scope opens, if the user has them. */
  permissions: readonly string[]
  /** Whether the user may decline it and grant the rest. */
  isOptional: boolean
}

const optional = (name: string, permissions: readonly string[] = []): Scope => ({ name, permissions, isOptional: true })

/**
 * Every scope of the service, in the order in which a consent page shows them. A scope contains permissions, not
 * patterns: only a change of this list opens a new route to apps.
 */
export const SCOPES: readonly Scope[] = [
  { name: 'openid', permissions: [], isOptional: false },
  optional('profile'),
  optional('email'),
  optional('offline_access'),
  optional('session:read', ['session:find-one']),
  optional('account:read', ['account:find-all', 'account:find-one']),
  optional('contract:read', ['contract:find-all', 'contract:find-one']),
  optional('contract:write', ['contract:create', 'contract:update', 'contract:delete']),
  optional('webhook:read', [
    'webhook:find-all',
    'webhook:find-one',
    'webhook-event:find-all',
    'webhook-event:find-one',
    'webhook-event:find-set',
    'webhook-dispatch:find-all',
    'webhook-dispatch:find-one',
  ]),
  optional('webhook:write', [
    'webhook:create',
    'webhook:update',
    'webhook:active',
    'webhook:delete',
    'webhook:rotate-secret',
    'webhook:rotate-key',
    'webhook:test',
    'webhook:pull',
    'webhook-event:create',
    'webhook-event:update',
    'webhook-event:set',
    'webhook-event:delete',
    'webhook-dispatch:replay',
  ]),
  optional('event:read', [
    'event:find-all',
    'event:find-one',
    'event-occurrence:find-all',
    'event-occurrence:find-one',
    'event-occurrence:routing',
  ]),
  optional('event:publish', ['event:publish']),
]

const BY_NAME = new Map(SCOPES.map((scope) => [scope.name, scope]))

/** The scope of this name. */
export function findScope(name: string): Scope | undefined {
  return BY_NAME.get(name)
}
