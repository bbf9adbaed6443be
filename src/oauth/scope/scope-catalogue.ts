/** A scope that an app may request (docs/contract/oauth-exchange.md#scopes). Its texts are `scope.<name>`. */
export interface Scope {
  /** As in the parameter `scope` (RFC 6749 section 3.3). */
  name: string
  /** The permissions that the scope opens, if the user has them. */
  permissions: readonly string[]
  /** Whether the user may decline it and grant the rest. */
  isOptional: boolean
}

function api(name: string, permissions: readonly string[]): Scope {
  return { name, permissions, isOptional: true }
}

/**
 * Every scope of the service, in the order in which a consent page shows them. A scope contains permissions, not
 * patterns: only a change of this list opens a new route to apps.
 */
export const SCOPES: readonly Scope[] = [
  {
    name: 'openid',
    permissions: [],
    isOptional: false,
  },
  {
    name: 'profile',
    permissions: [],
    isOptional: true,
  },
  {
    name: 'email',
    permissions: [],
    isOptional: true,
  },
  {
    name: 'offline_access',
    permissions: [],
    isOptional: true,
  },
  api('session:read', ['session:find-one']),
  api('account:read', ['account:find-all', 'account:find-one']),
  api('contract:read', ['contract:find-all', 'contract:find-one']),
  api('contract:write', ['contract:create', 'contract:update', 'contract:delete']),
  api('webhook:read', [
    'webhook:find-all',
    'webhook:find-one',
    'webhook-event:find-all',
    'webhook-event:find-one',
    'webhook-event:find-set',
    'webhook-dispatch:find-all',
    'webhook-dispatch:find-one',
  ]),
  api('webhook:write', [
    'webhook:create',
    'webhook:update',
    'webhook:active',
    'webhook:delete',
    'webhook:rotate-secret',
    'webhook:rotate-key',
    'webhook:test',
    'webhook-event:create',
    'webhook-event:update',
    'webhook-event:set',
    'webhook-event:delete',
    'webhook-dispatch:replay',
  ]),
  api('event:read', [
    'event:find-all',
    'event:find-one',
    'event-occurrence:find-all',
    'event-occurrence:find-one',
    'event-occurrence:routing',
  ]),
  api('event:publish', ['event:publish']),
]

const BY_NAME = new Map(SCOPES.map((scope) => [scope.name, scope]))

/** The scope of this name. */
export function findScope(name: string): Scope | undefined {
  return BY_NAME.get(name)
}
