import { Center, Loader } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import {
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  Link,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { Page } from '../parts/page.tsx'
import { ProblemCard } from '../parts/problem.tsx'
import { AppsScreen } from '../screens/apps/apps-screen.tsx'
import { CreateAppScreen } from '../screens/apps/create-app-screen.tsx'
import { AUDIT_FILTERS } from '../screens/audit/audit-filters.ts'
import { DeliveriesScreen } from '../screens/deliveries/deliveries-screen.tsx'
import { DeliveryDrawer } from '../screens/deliveries/delivery-drawer.tsx'
import { readDeliveryFilters } from '../screens/deliveries/filters.ts'
import { EventScreen } from '../screens/events/event-screen.tsx'
import { EventsScreen } from '../screens/events/events-screen.tsx'
import { HealthScreen } from '../screens/health/health-screen.tsx'
import { OverviewScreen } from '../screens/overview/overview-screen.tsx'
import { UsersScreen } from '../screens/users/users-screen.tsx'
import { CreateWebhookScreen } from '../screens/webhooks/create/create-webhook-screen.tsx'
import { WebhookScreen } from '../screens/webhooks/detail/webhook-screen.tsx'
import { WebhooksScreen } from '../screens/webhooks/list/webhooks-screen.tsx'
import { api, isSignedOut } from './api.ts'
import { AccessProvider } from './session.tsx'
import { Shell } from './shell.tsx'

/** The texts of a query that a screen reads: others are dropped. */
function readTexts<Name extends string>(...names: readonly Name[]) {
  return (search: Record<string, unknown>): Partial<Record<Name, string>> =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = search[name]
        return typeof value === 'string' && value !== '' ? [[name, value]] : []
      }),
    ) as Partial<Record<Name, string>>
}

function Root() {
  const session = useQuery({
    queryKey: ['session'],
    queryFn: ({ signal }) => api.auth.sessionFindOne({ signal }),
    staleTime: 60_000,
  })
  if (session.data)
    return (
      <AccessProvider session={session.data.data}>
        <Shell />
      </AccessProvider>
    )
  if (session.isError && !isSignedOut(session.error))
    return <ProblemCard error={session.error} onRetry={() => void session.refetch()} />
  return (
    <Center h="100vh">
      <Loader aria-label="Signalbox" />
    </Center>
  )
}

function NotFound() {
  const { t } = useTranslation()
  return (
    <Page title={t('not-found.title')} lead={t('not-found.text')}>
      <Link to="/">{t('not-found.home')}</Link>
    </Page>
  )
}

const root = createRootRoute({ component: Root, notFoundComponent: NotFound })

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
  component: DeliveriesScreen,
  validateSearch: readDeliveryFilters,
})
const delivery = createRoute({ getParentRoute: () => deliveries, path: '$id', component: DeliveryDrawer })
const webhooks = createRoute({
  getParentRoute: () => root,
  path: 'webhooks',
  component: WebhooksScreen,
  validateSearch: readTexts('q', 'state', 'scope'),
})
const createWebhook = createRoute({
  getParentRoute: () => root,
  path: 'webhooks/new',
  component: CreateWebhookScreen,
  validateSearch: readTexts('step'),
})
const webhook = createRoute({
  getParentRoute: () => root,
  path: 'webhooks/$id',
  component: WebhookScreen,
  validateSearch: readTexts('tab'),
})
const events = createRoute({
  getParentRoute: () => root,
  path: 'events',
  component: EventsScreen,
  validateSearch: readTexts('event', 'account', 'resource_id'),
})
const event = createRoute({ getParentRoute: () => root, path: 'events/$id', component: EventScreen })
const users = createRoute({
  getParentRoute: () => root,
  path: 'users',
  component: UsersScreen,
  validateSearch: readTexts('q', 'in', 'state'),
})
const user = createRoute({
  getParentRoute: () => root,
  path: 'users/$id',
  component: lazyRouteComponent(() => import('../screens/users/user-screen.tsx'), 'UserScreen'),
  validateSearch: readTexts('tab'),
})
const accounts = createRoute({
  getParentRoute: () => root,
  path: 'accounts',
  component: lazyRouteComponent(() => import('../screens/accounts/accounts-screen.tsx'), 'AccountsScreen'),
  validateSearch: readTexts('q'),
})
const account = createRoute({
  getParentRoute: () => root,
  path: 'accounts/$id',
  component: lazyRouteComponent(() => import('../screens/accounts/account-screen.tsx'), 'AccountScreen'),
  validateSearch: readTexts('tab'),
})
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
  component: AppsScreen,
  validateSearch: readTexts('q', 'type'),
})
const createApp = createRoute({ getParentRoute: () => root, path: 'apps/new', component: CreateAppScreen })
const app = createRoute({
  getParentRoute: () => root,
  path: 'apps/$id',
  component: lazyRouteComponent(() => import('../screens/apps/app-screen.tsx'), 'AppScreen'),
  validateSearch: readTexts('tab'),
})
const audit = createRoute({
  getParentRoute: () => root,
  path: 'audit',
  component: lazyRouteComponent(() => import('../screens/audit/audit-screen.tsx'), 'AuditScreen'),
  validateSearch: readTexts(...AUDIT_FILTERS),
})
const health = createRoute({ getParentRoute: () => root, path: 'health', component: HealthScreen })
const catalogue = createRoute({
  getParentRoute: () => root,
  path: 'catalogue',
  component: lazyRouteComponent(() => import('../screens/catalogue/catalogue-screen.tsx'), 'CatalogueScreen'),
  validateSearch: readTexts('q', 'resource', 'state'),
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
