import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent,
  type RouteComponent,
  redirect,
} from '@tanstack/react-router'
import { ProblemCard } from '../parts/problem.tsx'
import { AUDIT_FILTERS } from '../screens/audit/audit-filters.ts'
import { readDeliveryFilters } from '../screens/deliveries/filters.ts'
import { OverviewScreen } from '../screens/overview/overview-screen.tsx'
import { USER_FILTERS } from '../screens/users/user-filters.ts'
import { NotFound, Root } from './root.tsx'
import { readTexts } from './search-texts.ts'

const root = createRootRoute({ component: Root, notFoundComponent: NotFound })

/** A detail screen with tabs: the URL names the one that is open. */
function createTabbed<const Path extends string>(path: Path, component: RouteComponent) {
  return createRoute({ getParentRoute: () => root, path, component, validateSearch: readTexts('tab') })
}

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/overview' })
  },
})
const overview = createRoute({
  getParentRoute: () => root,
  path: 'overview',
  component: OverviewScreen,
  validateSearch: readTexts('range'),
})
const deliveries = createRoute({
  getParentRoute: () => root,
  path: 'deliveries',
  component: lazyRouteComponent(() => import('../screens/deliveries/deliveries-screen.tsx'), 'DeliveriesScreen'),
  validateSearch: readDeliveryFilters,
})
const delivery = createRoute({
  getParentRoute: () => deliveries,
  path: '$id',
  component: lazyRouteComponent(() => import('../screens/deliveries/delivery-drawer.tsx'), 'DeliveryScreen'),
})
const webhooks = createRoute({
  getParentRoute: () => root,
  path: 'webhooks',
  component: lazyRouteComponent(() => import('../screens/webhooks/list/webhooks-screen.tsx'), 'WebhooksScreen'),
  validateSearch: readTexts('q', 'state', 'scope', 'account', 'event'),
})
const createWebhook = createRoute({
  getParentRoute: () => root,
  path: 'webhooks/new',
  component: lazyRouteComponent(
    () => import('../screens/webhooks/create/create-webhook-screen.tsx'),
    'CreateWebhookScreen',
  ),
  validateSearch: readTexts('step'),
})
const webhook = createRoute({
  getParentRoute: () => root,
  path: 'webhooks/$id',
  component: lazyRouteComponent(() => import('../screens/webhooks/detail/webhook-screen.tsx'), 'WebhookScreen'),
  validateSearch: readTexts('tab', 'range'),
})
const events = createRoute({
  getParentRoute: () => root,
  path: 'events',
  component: lazyRouteComponent(() => import('../screens/events/events-screen.tsx'), 'EventsScreen'),
  validateSearch: readTexts('event', 'account', 'resource_id'),
})
const event = createRoute({
  getParentRoute: () => root,
  path: 'events/$id',
  component: lazyRouteComponent(() => import('../screens/events/event-screen.tsx'), 'EventScreen'),
})
const users = createRoute({
  getParentRoute: () => root,
  path: 'users',
  component: lazyRouteComponent(() => import('../screens/users/users-screen.tsx'), 'UsersScreen'),
  validateSearch: readTexts(...USER_FILTERS),
})
const user = createTabbed(
  'users/$id',
  lazyRouteComponent(() => import('../screens/users/user-screen.tsx'), 'UserScreen'),
)
const accounts = createRoute({
  getParentRoute: () => root,
  path: 'accounts',
  component: lazyRouteComponent(() => import('../screens/accounts/accounts-screen.tsx'), 'AccountsScreen'),
  validateSearch: readTexts('q'),
})
const account = createTabbed(
  'accounts/$id',
  lazyRouteComponent(() => import('../screens/accounts/account-screen.tsx'), 'AccountScreen'),
)
const createConnection = createRoute({
  getParentRoute: () => root,
  path: 'accounts/$id/sign-in/new',
  component: lazyRouteComponent(
    () => import('../screens/connections/create-connection-screen.tsx'),
    'CreateConnectionScreen',
  ),
})
const connection = createTabbed(
  'accounts/$id/sign-in/$connection',
  lazyRouteComponent(() => import('../screens/connections/connection-screen.tsx'), 'ConnectionScreen'),
)
const roles = createRoute({
  getParentRoute: () => root,
  path: 'roles',
  component: lazyRouteComponent(() => import('../screens/roles/roles-screen.tsx'), 'RolesScreen'),
})
const sessions = createRoute({
  getParentRoute: () => root,
  path: 'sessions',
  component: lazyRouteComponent(() => import('../screens/sessions/sessions-screen.tsx'), 'SessionsScreen'),
  validateSearch: readTexts('address', 'kind'),
})
const keys = createRoute({
  getParentRoute: () => root,
  path: 'keys',
  component: lazyRouteComponent(() => import('../screens/keys/keys-screen.tsx'), 'KeysScreen'),
  validateSearch: readTexts('q'),
})
const consents = createRoute({
  getParentRoute: () => root,
  path: 'consents',
  component: lazyRouteComponent(() => import('../screens/consents/consents-screen.tsx'), 'ConsentsScreen'),
})
const providers = createRoute({
  getParentRoute: () => root,
  path: 'providers',
  component: lazyRouteComponent(() => import('../screens/providers/providers-screen.tsx'), 'ProvidersScreen'),
})
const handshake = createRoute({
  getParentRoute: () => root,
  path: 'handshake',
  component: lazyRouteComponent(() => import('../screens/handshake/handshake-screen.tsx'), 'HandshakeScreen'),
})
const apps = createRoute({
  getParentRoute: () => root,
  path: 'apps',
  component: lazyRouteComponent(() => import('../screens/apps/apps-screen.tsx'), 'AppsScreen'),
  validateSearch: readTexts('q', 'type'),
})
const createApp = createRoute({
  getParentRoute: () => root,
  path: 'apps/new',
  component: lazyRouteComponent(() => import('../screens/apps/create-app-screen.tsx'), 'CreateAppScreen'),
  validateSearch: readTexts('step'),
})
const app = createTabbed(
  'apps/$id',
  lazyRouteComponent(() => import('../screens/apps/app-screen.tsx'), 'AppScreen'),
)
const audit = createRoute({
  getParentRoute: () => root,
  path: 'audit',
  component: lazyRouteComponent(() => import('../screens/audit/audit-screen.tsx'), 'AuditScreen'),
  validateSearch: readTexts(...AUDIT_FILTERS),
})
const health = createRoute({
  getParentRoute: () => root,
  path: 'health',
  component: lazyRouteComponent(() => import('../screens/health/health-screen.tsx'), 'HealthScreen'),
})
const catalogue = createRoute({
  getParentRoute: () => root,
  path: 'catalogue',
  component: lazyRouteComponent(() => import('../screens/catalogue/catalogue-screen.tsx'), 'CatalogueScreen'),
  validateSearch: readTexts('q', 'resource', 'state', 'group'),
})
const catalogueStatus = createRoute({
  getParentRoute: () => root,
  path: 'catalogue/status',
  component: lazyRouteComponent(() => import('../screens/catalogue/status-screen.tsx'), 'CatalogueStatusScreen'),
})
const eventType = createRoute({
  getParentRoute: () => root,
  path: 'catalogue/$id',
  component: lazyRouteComponent(() => import('../screens/catalogue/event-type-screen.tsx'), 'EventTypeScreen'),
  validateSearch: readTexts('account', 'webhook'),
})
const realtime = createRoute({
  getParentRoute: () => root,
  path: 'realtime',
  component: lazyRouteComponent(() => import('../screens/realtime/realtime-screen.tsx'), 'RealtimeScreen'),
  validateSearch: readTexts('tab', 'channel', 'status', 'account'),
})
const provisioning = createRoute({
  getParentRoute: () => root,
  path: 'provisioning',
  component: lazyRouteComponent(() => import('../screens/provisioning/targets-screen.tsx'), 'TargetsScreen'),
})
const createTarget = createRoute({
  getParentRoute: () => root,
  path: 'provisioning/new',
  component: lazyRouteComponent(() => import('../screens/provisioning/create-target-screen.tsx'), 'CreateTargetScreen'),
})
const provisioned = createRoute({
  getParentRoute: () => root,
  path: 'provisioning/deliveries',
  component: lazyRouteComponent(() => import('../screens/provisioning/provisioned-screen.tsx'), 'ProvisionedScreen'),
  validateSearch: readTexts('status', 'target', 'user', 'job'),
})
const provisionedOne = createRoute({
  getParentRoute: () => provisioned,
  path: '$id',
  component: lazyRouteComponent(() => import('../screens/provisioning/provisioned-drawer.tsx'), 'ProvisionedDrawer'),
})
const jobs = createRoute({
  getParentRoute: () => root,
  path: 'provisioning/jobs',
  component: lazyRouteComponent(() => import('../screens/provisioning/jobs-screen.tsx'), 'JobsScreen'),
  validateSearch: readTexts('target'),
})
const target = createRoute({
  getParentRoute: () => root,
  path: 'provisioning/$id',
  component: lazyRouteComponent(() => import('../screens/provisioning/target-screen.tsx'), 'TargetScreen'),
  validateSearch: readTexts('tab', 'user'),
})
const preferences = createRoute({
  getParentRoute: () => root,
  path: 'settings',
  component: lazyRouteComponent(() => import('../screens/settings/settings-screen.tsx'), 'SettingsScreen'),
})

const routes = root.addChildren([
  home,
  overview,
  deliveries.addChildren([delivery]),
  webhooks,
  createWebhook,
  webhook,
  events,
  event,
  users,
  user,
  accounts,
  account,
  createConnection,
  connection,
  roles,
  sessions,
  keys,
  consents,
  providers,
  handshake,
  apps,
  createApp,
  app,
  audit,
  health,
  catalogue,
  catalogueStatus,
  eventType,
  realtime,
  provisioning,
  createTarget,
  provisioned.addChildren([provisionedOne]),
  jobs,
  target,
  preferences,
])

function Fault({ error, reset }: ErrorComponentProps) {
  return <ProblemCard error={error} onRetry={reset} />
}

/** Builds the routes of the console, below `/console`. */
export function buildConsoleRouter() {
  return createRouter({
    routeTree: routes,
    basepath: '/console',
    defaultErrorComponent: Fault,
    defaultNotFoundComponent: NotFound,
    scrollRestoration: true,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof buildConsoleRouter>
  }
}
