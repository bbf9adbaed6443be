import { permissionOf, type RouteDeclaration } from '../../http/route/route.ts'
import { FEATURES } from './features.ts'

/** The v3 route tree: the declarations of every feature, as the app mounts them. */
export const ROUTE_TREE: readonly RouteDeclaration[] = FEATURES.flatMap(({ routes }) => routes)

/** Whether a permission matters at the route: for its access, or for the accessible rows. */
function asksForPermission(route: RouteDeclaration): boolean {
  return route.access === undefined || route.access === 'permission' || route.opensAll === true
}

/** The permissions that can have an effect where they hold for some accounts only: those of routes that look at the owner. */
export function listAccountPermissions(routes: readonly RouteDeclaration[]): string[] {
  const open = routes.filter((route) => asksForPermission(route) && route.ownAccounts === true)
  return [...new Set(open.map(permissionOf))].sort()
}

/** Every permission of the routes, with its description, by name. */
export function listPermissions(routes: readonly RouteDeclaration[]): { name: string; description: string }[] {
  const needed = routes.filter(asksForPermission)
  // Two routes may share a permission; the route with its name describes it.
  const inOrder = [...needed.filter((route) => route.permission), ...needed.filter((route) => !route.permission)]
  const descriptions = new Map<string, string>(inOrder.map((route) => [permissionOf(route), route.summary]))
  for (const { morePermissions = {} } of needed)
    for (const [name, description] of Object.entries(morePermissions)) descriptions.set(name, description)
  return [...descriptions]
    .map(([name, description]) => ({ name, description }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}
