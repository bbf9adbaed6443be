import { ActionIcon, Badge, Burger, Group, Text, useMantineColorScheme } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { type MouseEvent, useCallback, useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { Hint } from '../parts/hint.tsx'
import { LeaveDialog } from '../parts/leave-dialog.tsx'
import { buildOnDemand } from '../parts/on-demand.tsx'
import { Banners } from './banners.tsx'
import type { Command } from './command/filter-commands.ts'
import { Palette } from './command/palette.tsx'
import { isOfOne, keepRecent } from './command/recent.ts'
import { useShortcuts } from './command/shortcuts.ts'
import { Icon, type IconName } from './icons.tsx'
import { NoticeBar } from './notice/notice-bar.tsx'
import { useAccess } from './session.tsx'
import { settings } from './settings.ts'
import { useIsAskedToSignIn } from './signed-out.ts'
import { useEntriesGuard } from './use-entries-guard.ts'
import { useFollowedLinks } from './use-followed-links.ts'
import { useHealth } from './use-service.ts'
import { UserMenu } from './user-menu.tsx'

type PlaceName =
  | 'overview'
  | 'deliveries'
  | 'webhooks'
  | 'events'
  | 'users'
  | 'accounts'
  | 'roles'
  | 'sessions'
  | 'keys'
  | 'apps'
  | 'consents'
  | 'providers'
  | 'handshake'
  | 'audit'
  | 'health'
  | 'realtime'
  | 'catalogue'
  | 'provisioning'
  | 'settings'

interface Place {
  to: string
  label: `nav.${PlaceName}`
  icon: IconName
  /** Without it the screen is left out. Default: none. */
  permission?: string
}

/** The screens, by group, each with the permission without which it is left out. */
const GROUPS: readonly (readonly [`nav.group.${'monitor' | 'webhooks' | 'identity' | 'admin'}`, readonly Place[]])[] = [
  [
    'nav.group.monitor',
    [
      { to: '/overview', label: 'nav.overview', icon: 'overview', permission: 'webhook:dashboard' },
      { to: '/deliveries', label: 'nav.deliveries', icon: 'deliveries', permission: 'webhook-dispatch:find-all' },
      { to: '/realtime', label: 'nav.realtime', icon: 'realtime', permission: 'realtime:inspect' },
      { to: '/health', label: 'nav.health', icon: 'health' },
    ],
  ],
  [
    'nav.group.webhooks',
    [
      { to: '/webhooks', label: 'nav.webhooks', icon: 'webhooks', permission: 'webhook:find-all' },
      { to: '/events', label: 'nav.events', icon: 'events', permission: 'event-occurrence:find-all' },
      { to: '/catalogue', label: 'nav.catalogue', icon: 'catalogue', permission: 'event:find-all' },
    ],
  ],
  [
    'nav.group.identity',
    [
      { to: '/users', label: 'nav.users', icon: 'users', permission: 'user:find-all' },
      { to: '/accounts', label: 'nav.accounts', icon: 'accounts', permission: 'account:find-all' },
      { to: '/roles', label: 'nav.roles', icon: 'roles', permission: 'role:find-all' },
      { to: '/sessions', label: 'nav.sessions', icon: 'sessions' },
      { to: '/keys', label: 'nav.keys', icon: 'keys' },
      { to: '/apps', label: 'nav.apps', icon: 'apps', permission: 'oauth-client:find-all' },
      { to: '/consents', label: 'nav.consents', icon: 'consents' },
      { to: '/providers', label: 'nav.providers', icon: 'providers', permission: 'sign-in-provider:find-all' },
      { to: '/handshake', label: 'nav.handshake', icon: 'handshake', permission: 'handshake-target:find-all' },
      {
        to: '/provisioning',
        label: 'nav.provisioning',
        icon: 'provisioning',
        permission: 'provisioning-target:find-all',
      },
    ],
  ],
  [
    'nav.group.admin',
    [
      { to: '/audit', label: 'nav.audit', icon: 'audit', permission: 'audit-log:find-all' },
      { to: '/settings', label: 'nav.settings', icon: 'settings' },
    ],
  ],
]

/** The badge of each environment: grey while nothing can be lost, amber, and red where it is real. */
const ENVIRONMENT_COLORS: Readonly<Record<string, string>> = { production: 'red', certification: 'yellow' }

/** Actions of the palette beside screens, with the place where each begins. */
const ACTIONS = [
  ['action.webhook', '/webhooks/new', 'webhook:create'],
  ['action.app', '/apps/new', 'oauth-client:create'],
  ['action.target', '/provisioning/new', 'provisioning-target:create'],
  ['action.catalogue', '/catalogue/status', 'webhook:catalogue-status'],
] as const

const SignedOutDialog = buildOnDemand(async () => (await import('./signed-out-dialog.tsx')).SignedOutDialog)

const ShortcutList = buildOnDemand(async () => (await import('./command/shortcut-list.tsx')).ShortcutList)

/** Frame around every screen. */
export function Shell() {
  const { t } = useTranslation()
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const [isHelp, { open: openHelp, close: closeHelp }] = useDisclosure(false)
  const navigate = useNavigate()
  const commands = useCommands(openHelp)
  const isLeaving = useRouterState({
    select: ({ location, resolvedLocation }) => resolvedLocation?.href !== location.href,
  })
  useShortcuts({ onGo: useCallback((to: string) => void navigate({ to }), [navigate]), onHelp: openHelp })
  useRecent()
  const isSignedOut = useIsAskedToSignIn()
  const follow = useFollowedLinks()
  useEntriesGuard()
  const leave = (event: MouseEvent) => {
    follow(event)
    if (event.defaultPrevented) close()
  }
  return (
    <>
      <a className="skip" href="#main">
        {t('nav.skip')}
      </a>
      <header className="shell-head">
        <Group h="100%" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="xs" wrap="nowrap" miw={0}>
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label={t('nav.menu')} />
            <Text fw={700} truncate>
              {settings.service}
            </Text>
            <Badge
              variant="outline"
              color={ENVIRONMENT_COLORS[settings.environment] ?? 'gray'}
              tt="none"
              visibleFrom="xs"
            >
              {settings.environment}
            </Badge>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Palette commands={commands} />
            <HealthDot />
            <ThemeSwitch />
            <UserMenu />
          </Group>
        </Group>
      </header>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the links in it have the focus, and their keys click */}
      <nav className="shell-nav" data-open={isOpen} aria-label={t('nav.title')} onClick={leave}>
        <Navigation />
      </nav>
      <main className="shell-main" id="main" tabIndex={-1} aria-busy={isLeaving}>
        <Outlet />
        <Banners />
      </main>
      <NoticeBar />
      <ShortcutList isOpen={isHelp} onClose={closeHelp} />
      <SignedOutDialog isOpen={isSignedOut} />
      <LeaveDialog />
    </>
  )
}

/** The screens and actions that the user may open. */
function useCommands(openHelp: () => void): Command[] {
  const { t } = useTranslation()
  const { may } = useAccess()
  const navigate = useNavigate()
  const { toggleColorScheme } = useMantineColorScheme()
  const isAllowed = (permission: string | undefined) => permission === undefined || may(permission)
  const places = GROUPS.flatMap(([, members]) => members).filter(({ permission }) => isAllowed(permission))
  const actions = ACTIONS.filter(([, , permission]) => isAllowed(permission))
  return [
    ...places.map(({ to, label }) => ({
      label: t(label),
      group: t('search.screens'),
      run: () => void navigate({ to }),
    })),
    ...actions.map(([label, to]) => ({
      label: t(label),
      group: t('search.actions'),
      run: () => void navigate({ to }),
    })),
    { label: t('nav.theme'), group: t('search.actions'), run: () => toggleColorScheme() },
    { label: t('shortcuts.title'), group: t('search.actions'), run: openHelp },
  ]
}

/** Keeps the pages of single things that are opened, by the title that they have once they have loaded. */
function useRecent(): void {
  const path = useRouterState({ select: ({ location }) => location.pathname })
  useEffect(() => {
    if (!isOfOne(path)) return
    const keep = () => keepRecent({ path, title: document.title.split(' · ')[0] ?? path })
    const observer = new MutationObserver(keep)
    const title = document.querySelector('title')
    if (title) observer.observe(title, { childList: true })
    keep()
    return () => observer.disconnect()
  }, [path])
}

/** How the service is, on every screen. */
function HealthDot() {
  const { t } = useTranslation()
  const health = useHealth()
  const status = health.isError ? 'down' : health.data?.data.status
  const text = status ? t('nav.health-is', { status: t(`status.${status}`) }) : t('nav.health')
  return (
    <Hint label={text}>
      <ActionIcon component={Link} to="/health" variant="default" size={32} aria-label={text}>
        <span className="dot" data-status={status ?? 'unknown'} />
      </ActionIcon>
    </Hint>
  )
}

/** The screens that the user may open. */
function Navigation() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const path = useRouterState({ select: ({ location }) => location.pathname })
  return GROUPS.map(([group, places]) => {
    const shown = places.filter(({ permission }) => permission === undefined || may(permission))
    if (shown.length === 0) return null
    return (
      <div key={group}>
        <Text size="xs" fw={600} c="dimmed" mt="sm" mb={4} px="sm">
          {t(group)}
        </Text>
        {shown.map(({ to, label, icon }) => (
          <a
            key={to}
            href={`/console${to}`}
            className="nav-link"
            data-active={path === to || path.startsWith(`${to}/`)}
            aria-current={path === to ? 'page' : undefined}
          >
            <Icon name={icon} />
            {t(label)}
          </a>
        ))}
      </div>
    )
  })
}

function ThemeSwitch() {
  const { t } = useTranslation()
  const { toggleColorScheme } = useMantineColorScheme()
  return (
    <Hint label={t('nav.theme')}>
      <ActionIcon
        variant="default"
        size={32}
        visibleFrom="xs"
        onClick={() => toggleColorScheme()}
        aria-label={t('nav.theme')}
      >
        <Icon name="sun" />
      </ActionIcon>
    </Hint>
  )
}
