import { apiKeyRoutes } from '../access/api-key.routes.ts'
import { roleRoutes } from '../access/role.routes.ts'
import { accountRoutes } from '../account/account.routes.ts'
import { accountMemberRoutes } from '../account/account-member.routes.ts'
import { auditRoutes } from '../audit/audit.routes.ts'
import { catalogueRoutes } from '../catalogue/catalogue.routes.ts'
import { contractRoutes } from '../contract/contract.routes.ts'
import { dashboardRoutes } from '../dashboard/dashboard.routes.ts'
import { eventRoutes } from '../event/event.routes.ts'
import { healthRoutes } from '../health/health.routes.ts'
import { permissionOf, type RouteDeclaration } from '../http/route.ts'
import { sessionRoutes } from '../session/session.routes.ts'
import { loginRoutes } from '../sign-in/login.routes.ts'
import { userRoutes } from '../user/user.routes.ts'
import { exportRoutes } from '../webhook/export.routes.ts'
import { dispatchRoutes } from '../webhook/ledger/dispatch.routes.ts'
import { replayJobRoutes } from '../webhook/replay/replay-job.routes.ts'
import { routingExplanationRoutes } from '../webhook/routing-explanation.routes.ts'
import { subscriptionRoutes } from '../webhook/subscription.routes.ts'
import { webhookRoutes } from '../webhook/webhook.routes.ts'

/**
 * The v3 route tree: the routes of every feature, as the app mounts them. What is listed here is catalogued, permitted,
 * described in OpenAPI and audited; what is not listed does not exist. The sink stands apart: it is no part of the tree,
 * since only some environments have it.
 */
export const ROUTE_TREE = [
  ...loginRoutes,
  ...sessionRoutes,
  ...userRoutes,
  ...accountRoutes,
  ...accountMemberRoutes,
  ...roleRoutes,
  ...apiKeyRoutes,
  ...auditRoutes,
  ...contractRoutes,
  ...exportRoutes,
  ...webhookRoutes,
  ...subscriptionRoutes,
  ...catalogueRoutes,
  ...eventRoutes,
  ...routingExplanationRoutes,
  ...dispatchRoutes,
  ...replayJobRoutes,
  ...dashboardRoutes,
  ...healthRoutes,
] as const

/** What all routes of the tree together use: each feature names its own part. */
export type RouteDeps = (typeof ROUTE_TREE)[number] extends infer Each
  ? (Each extends { handle: (deps: infer Deps, request: never) => unknown } ? (deps: Deps) => void : never) extends (
      deps: infer All,
    ) => void
    ? All
    : never
  : never

/** Whether a permission decides something at the route: whether it opens at all, or for whose rows. */
function asksForPermission(route: RouteDeclaration): boolean {
  return route.access === undefined || route.access === 'permission' || route.opensAll === true
}

/** Every permission that some route asks for, with what it allows, by name (D9). */
export function listPermissions(routes: readonly RouteDeclaration[]): { name: string; description: string }[] {
  const needed = routes.filter(asksForPermission)
  // Two routes may share a permission; the one that it is named after describes it.
  const inOrder = [...needed.filter((route) => route.permission), ...needed.filter((route) => !route.permission)]
  const descriptions = new Map(inOrder.map((route) => [permissionOf(route), route.summary]))
  return [...descriptions]
    .map(([name, description]) => ({ name, description }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}
