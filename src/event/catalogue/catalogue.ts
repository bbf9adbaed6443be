import { type AccountScope, eventNameOf, type RouteDeclaration } from '../../http/route/route.ts'

/** One event type as the code declares it (docs/contract/events.md#catalogue-fields). */
export interface CatalogueEntry {
  /** `<resource>.<action>` */
  internal: string
  account_scope: AccountScope
  /** Null for a synthetic event type. */
  method: RouteDeclaration['method'] | null
  route: string | null
  source: 'route' | 'synthetic'
  description: string
  /** Group in lists: the module of its route. */
  group: string
  /** Path that reads the resource, with `{id}`; null where none does. */
  read_path: string | null
  /** From when on it should not be subscribed to, ISO 8601, and what to do instead; both null unless it is deprecated. */
  deprecated_at: string | null
  deprecation_remedy: string | null
}

const NOT_DEPRECATED = { deprecated_at: null, deprecation_remedy: null } as const

/** Event types of the service itself, without a route. */
const SYNTHETIC_ENTRIES: CatalogueEntry[] = [
  synthetic(
    'webhook',
    'webhook.failing',
    'A webhook has failed 10 or 15 deliveries in a row and will be disabled at 20.',
  ),
  synthetic('webhook', 'webhook.auto-disable', 'A webhook was disabled after 20 failed deliveries in a row.'),
  synthetic('webhook', 'webhook.recovered', 'A failing webhook has accepted a delivery again.'),
  synthetic('oauth', 'oauth-signing-key.rotate', 'An operator has made new signing keys of the OAuth provider.'),
  synthetic(
    'provisioning',
    'provisioning-delivery.dead-letter',
    'A change of a user has not reached a target with all eight POSTs.',
  ),
  synthetic('webhook', 'webhook-dispatch.exhausted', 'A delivery has failed with all five POSTs.'),
]

function synthetic(group: string, internal: string, description: string): CatalogueEntry {
  const route = { method: null, route: null, source: 'synthetic', description, group } as const
  return { internal, account_scope: 'none', ...route, ...NOT_DEPRECATED, read_path: null }
}

/** The catalogue of event types, by name (docs/contract/events.md#event-types). Throws for two routes of one name. */
export function buildCatalogue(routes: readonly RouteDeclaration[]): CatalogueEntry[] {
  const entries = new Map<string, CatalogueEntry>()
  const add = (entry: CatalogueEntry) => {
    const other = entries.get(entry.internal)
    if (other) throw new Error(`two sources of the event ${entry.internal}: ${other.route} and ${entry.route}`)
    entries.set(entry.internal, entry)
  }
  for (const entry of SYNTHETIC_ENTRIES) add(entry)
  const readPaths = new Map(
    routes.filter(({ action }) => action === 'find-one').map(({ resource, path }) => [resource, path]),
  )
  for (const route of routes) if (hasOwnType(route)) add(toEntry(route, readPaths.get(route.resource) ?? null))
  return [...entries.values()].sort((a, b) => (a.internal < b.internal ? -1 : 1))
}

const hasOwnType = ({ event, eventAction }: RouteDeclaration) =>
  event !== 'none' && event !== 'shared' && eventAction === undefined

/** Resources whose events concern deliveries, not data of an account. */
const INTERNAL_RESOURCES = /^(?:webhook|webhook-event|webhook-dispatch|event|event-occurrence)[.]/

/** Whether a generated event type is visible to account roles, until an administrator changes it. Pure. */
export function isVisibleByDefault({ internal, account_scope }: CatalogueEntry): boolean {
  return account_scope === 'account' && !INTERNAL_RESOURCES.test(internal)
}

function toEntry(route: RouteDeclaration, readPath: string | null): CatalogueEntry {
  return {
    internal: eventNameOf(route),
    account_scope: route.accountScope,
    method: route.method,
    route: route.path,
    source: route.event === 'operation' ? 'synthetic' : 'route',
    description: route.summary,
    group: route.path.split('/')[3] ?? 'service',
    read_path: readPath,
    ...(route.eventDeprecation
      ? { deprecated_at: route.eventDeprecation.at, deprecation_remedy: route.eventDeprecation.remedy }
      : NOT_DEPRECATED),
  }
}
