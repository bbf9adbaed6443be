import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROUTER = join(import.meta.dirname, '..', '..', 'console', 'src', 'frame', 'router.tsx')

/**
 * The row that a route with an id shows: a list of the API whose first row it is. A route with several ids has a list for
 * each, in which `{id}` is the id of the list before.
 */
export const ROWS: Readonly<Record<string, string | readonly string[]>> = {
  'accounts/$id': '/api/v3/identity/account?sort=created_at',
  'accounts/$id/sign-in/$connection': [
    '/api/v3/identity/account?sort=created_at',
    '/api/v3/identity/account/{id}/connection?sort=created_at',
  ],
  'accounts/$id/sign-in/new': '/api/v3/identity/account?sort=created_at',
  'apps/$id': '/api/v3/oauth/client?sort=created_at',
  'catalogue/$id': '/api/v3/webhook/event?filters=internal|eq|contract.update',
  'deliveries/$id': '/api/v3/webhook/dispatch?filters=status|eq|exhausted',
  'events/$id': '/api/v3/webhook/event-occurrence?filters=event|eq|contract.update',
  'provisioning/$id': '/api/v3/provisioning/target?sort=created_at',
  'provisioning/deliveries/$id': '/api/v3/provisioning/delivery?filters=status|eq|dead_letter',
  'users/$id': '/api/v3/identity/user?filters=email|like|finch.example',
  'webhooks/$id': '/api/v3/webhook/webhook?filters=name|eq|Dunning',
}

/** Paths below `/console` of every route, as the router declares them: `webhooks/$id`. */
export function listConsoleRoutes(source = readFileSync(ROUTER, 'utf8')): string[] {
  const paths = new Map<string, string>()
  for (const [, name = '', path = ''] of source.matchAll(/^const (\w+) = create(?:Screen|Searchable)\(\s*'([^']*)'/gm))
    paths.set(name, path)
  for (const [, name = '', options = ''] of source.matchAll(/^const (\w+) = createRoute\(\{([\s\S]*?)\}\)$/gm)) {
    const parent = /getParentRoute: \(\) => (\w+)/.exec(options)?.[1] ?? ''
    const path = /\bpath: '([^']*)'/.exec(options)?.[1]
    if (path !== undefined) paths.set(name, [paths.get(parent), path].filter(Boolean).join('/').replace(/^\//, ''))
  }
  return [...paths.values()].filter((path) => path !== '').sort()
}
