import { ROUTE_TREE } from '../../../src/app/feature/route-tree.ts'
import type { RouteDeclaration } from '../../../src/http/route/route.ts'
import { hasNotModified, listProblemStatuses } from '../../../src/http/route/schema.ts'
import { sinkRoutes } from '../../../src/webhook/sink/sink.routes.ts'

interface DocumentedRoute {
  method: string
  path: string
  pattern: RegExp
  statuses: ReadonlySet<number>
}

const DOCUMENTED = ([...ROUTE_TREE, ...sinkRoutes] as readonly RouteDeclaration[])
  .map((route): DocumentedRoute => {
    const successes = [
      route.status ?? 200,
      ...(route.also ? [route.also.status] : []),
      ...(route.redirect?.statuses ?? []),
      ...(hasNotModified(route) ? [304] : []),
    ]
    return {
      method: route.method,
      path: route.path,
      pattern: new RegExp(`^${route.path.replace(/\{\w+\}/g, '[^/]+')}$`),
      statuses: new Set([...successes, ...listProblemStatuses(route)]),
    }
  })
  // `/webhook/export` before `/webhook/{id}`, as in the router.
  .sort((a, b) => countParameters(a.path) - countParameters(b.path))

function countParameters(path: string): number {
  return path.split('{').length
}

/**
 * Throws when a route of the v3 tree answers a status that `openapi.json` does not document. Every call of a test app uses
 * it, so each refusal in a test is a documented one.
 */
export function checkDocumentedStatus(method: string, url: string, status: number): void {
  const path = url.split('?', 1)[0] ?? ''
  const route = DOCUMENTED.find((item) => item.method === method && item.pattern.test(path))
  // A 405 is that of a narrower path without the method; a route that was found has it.
  if (!route || status === 405 || route.statuses.has(status)) return
  const documented = [...route.statuses].join(', ')
  throw new Error(
    `${method} ${route.path} answered ${status}, and documents ${documented}: add its code to \`problems\` of the route`,
  )
}
