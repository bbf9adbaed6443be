import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent as lazy,
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

function createScreen<const Path extends string>(path: Path, component: RouteComponent) {
  return createRoute({ getParentRoute: () => root, path, component })
}

/** A screen with a query: filters, the open tab, the step of a form. Another member is dropped. */
function createSearchable<const Path extends string, Search>(
  path: Path,
  component: RouteComponent,
  validateSearch: (search: Record<string, unknown>) => Search,
) {
  return createRoute({ getParentRoute: () => root, path, component, validateSearch })
}

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/overview' })
  },
})
const overview = createSearchable('overview', OverviewScreen, readTexts('range'))
const deliveries = createSearchable(
  'deliveries',
  lazy(() => import('../screens/deliveries/deliveries-screen.tsx'), 'DeliveriesScreen'),
  readDeliveryFilters,
)
const delivery = createRoute({
  getParentRoute: () => deliveries,
  path: '$id',
  component: lazy(() => import('../screens/deliveries/delivery-drawer.tsx'), 'DeliveryScreen'),
})
const webhooks = createSearchable(
  'webhooks',
  lazy(() => import('../screens/webhooks/list/webhooks-screen.tsx'), 'WebhooksScreen'),
  readTexts('q', 'state', 'scope', 'account', 'event'),
)
const createWebhook = createSearchable(
  'webhooks/new',
  lazy(() => import('../screens/webhooks/create/create-webhook-screen.tsx'), 'CreateWebhookScreen'),
  readTexts('step'),
)
const webhook = createSearchable(
  'webhooks/$id',
  lazy(() => import('../screens/webhooks/detail/webhook-screen.tsx'), 'WebhookScreen'),
  readTexts('tab', 'range'),
)
const events = createSearchable(
  'events',
  lazy(() => import('../screens/events/events-screen.tsx'), 'EventsScreen'),
  readTexts('event', 'account', 'resource_id'),
)
const event = createScreen(
  'events/$id',
  lazy(() => import('../screens/events/event-screen.tsx'), 'EventScreen'),
)
const users = createSearchable(
  'users',
  lazy(() => import('../screens/users/users-screen.tsx'), 'UsersScreen'),
  readTexts(...USER_FILTERS),
)
const user = createSearchable(
  'users/$id',
  lazy(() => import('../screens/users/user-screen.tsx'), 'UserScreen'),
  readTexts('tab'),
)
const accounts = createSearchable(
  'accounts',
  lazy(() => import('../screens/accounts/accounts-screen.tsx'), 'AccountsScreen'),
  readTexts('q'),
)
const account = createSearchable(
  'accounts/$id',
  lazy(() => import('../screens/accounts/account-screen.tsx'), 'AccountScreen'),
  readTexts('tab'),
)
const createConnection = createScreen(
  'accounts/$id/sign-in/new',
  lazy(() => import('../screens/connections/create-connection-screen.tsx'), 'CreateConnectionScreen'),
)
const connection = createSearchable(
  'accounts/$id/sign-in/$connection',
  lazy(() => import('../screens/connections/connection-screen.tsx'), 'ConnectionScreen'),
  readTexts('tab'),
)
const roles = createScreen(
  'roles',
  lazy(() => import('../screens/roles/roles-screen.tsx'), 'RolesScreen'),
)
const sessions = createSearchable(
  'sessions',
  lazy(() => import('../screens/sessions/sessions-screen.tsx'), 'SessionsScreen'),
  readTexts('address', 'kind'),
)
const keys = createSearchable(
  'keys',
  lazy(() => import('../screens/keys/keys-screen.tsx'), 'KeysScreen'),
  readTexts('q'),
)
const consents = createScreen(
  'consents',
  lazy(() => import('../screens/consents/consents-screen.tsx'), 'ConsentsScreen'),
)
const providers = createScreen(
  'providers',
  lazy(() => import('../screens/providers/providers-screen.tsx'), 'ProvidersScreen'),
)
const handshake = createScreen(
  'handshake',
  lazy(() => import('../screens/handshake/handshake-screen.tsx'), 'HandshakeScreen'),
)
const apps = createSearchable(
  'apps',
  lazy(() => import('../screens/apps/apps-screen.tsx'), 'AppsScreen'),
  readTexts('q', 'type'),
)
const createApp = createSearchable(
  'apps/new',
  lazy(() => import('../screens/apps/create-app-screen.tsx'), 'CreateAppScreen'),
  readTexts('step'),
)
const app = createSearchable(
  'apps/$id',
  lazy(() => import('../screens/apps/app-screen.tsx'), 'AppScreen'),
  readTexts('tab'),
)
const audit = createSearchable(
  'audit',
  lazy(() => import('../screens/audit/audit-screen.tsx'), 'AuditScreen'),
  readTexts(...AUDIT_FILTERS),
)
const health = createScreen(
  'health',
  lazy(() => import('../screens/health/health-screen.tsx'), 'HealthScreen'),
)
const catalogue = createSearchable(
  'catalogue',
  lazy(() => import('../screens/catalogue/catalogue-screen.tsx'), 'CatalogueScreen'),
  readTexts('q', 'resource', 'state', 'group'),
)
const catalogueStatus = createScreen(
  'catalogue/status',
  lazy(() => import('../screens/catalogue/status-screen.tsx'), 'CatalogueStatusScreen'),
)
const eventType = createSearchable(
  'catalogue/$id',
  lazy(() => import('../screens/catalogue/event-type-screen.tsx'), 'EventTypeScreen'),
  readTexts('account', 'webhook'),
)
const realtime = createSearchable(
  'realtime',
  lazy(() => import('../screens/realtime/realtime-screen.tsx'), 'RealtimeScreen'),
  readTexts('tab', 'channel', 'status', 'account'),
)
const provisioning = createScreen(
  'provisioning',
  lazy(() => import('../screens/provisioning/targets-screen.tsx'), 'TargetsScreen'),
)
const createTarget = createScreen(
  'provisioning/new',
  lazy(() => import('../screens/provisioning/create-target-screen.tsx'), 'CreateTargetScreen'),
)
const provisioned = createSearchable(
  'provisioning/deliveries',
  lazy(() => import('../screens/provisioning/provisioned-screen.tsx'), 'ProvisionedScreen'),
  readTexts('status', 'target', 'user', 'job'),
)
const provisionedOne = createRoute({
  getParentRoute: () => provisioned,
  path: '$id',
  component: lazy(() => import('../screens/provisioning/provisioned-drawer.tsx'), 'ProvisionedDrawer'),
})
const jobs = createSearchable(
  'provisioning/jobs',
  lazy(() => import('../screens/provisioning/jobs-screen.tsx'), 'JobsScreen'),
  readTexts('target'),
)
const target = createSearchable(
  'provisioning/$id',
  lazy(() => import('../screens/provisioning/target-screen.tsx'), 'TargetScreen'),
  readTexts('tab', 'user'),
)
const preferences = createScreen(
  'settings',
  lazy(() => import('../screens/settings/settings-screen.tsx'), 'SettingsScreen'),
)

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
