import {
  ActionIcon,
  AppShell,
  Badge,
  Burger,
  Button,
  Group,
  Menu,
  NavLink,
  Text,
  Tooltip,
  useMantineColorScheme,
} from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { chooseLanguage, LANGUAGES } from '../language/i18n.ts'
import { Icon, type IconName } from './icons.tsx'
import { SearchBox } from './search-box.tsx'
import { useAccess } from './session.tsx'
import { settings } from './settings.ts'

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
      { to: '/health', label: 'nav.health', icon: 'health' },
    ],
  ],
  [
    'nav.group.webhooks',
    [
      { to: '/webhooks', label: 'nav.webhooks', icon: 'webhooks', permission: 'webhook:find-all' },
      { to: '/events', label: 'nav.events', icon: 'events', permission: 'event-occurrence:find-all' },
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
    ],
  ],
  ['nav.group.admin', [{ to: '/audit', label: 'nav.audit', icon: 'audit', permission: 'audit-log:find-all' }]],
]

const ENVIRONMENT_COLORS: Readonly<Record<string, string>> = { production: 'red', certification: 'yellow' }

/** What stands around every screen. */
export function Shell() {
  const { t } = useTranslation()
  const [isOpen, { toggle, close }] = useDisclosure(false)
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'sm', sm: 'lg' }}
      transitionDuration={0}
    >
      <a className="skip" href="#main">
        {t('nav.skip')}
      </a>
      <AppShell.Header px="md">
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
            <SearchBox />
            <ThemeSwitch />
            <PersonMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label={t('nav.title')} style={{ overflowY: 'auto' }}>
        <Navigation onLeave={close} />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Outlet />
      </AppShell.Main>
    </AppShell>
  )
}

function Navigation({ onLeave }: { onLeave: () => void }) {
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
          <NavLink
            key={to}
            component={Link}
            to={to}
            onClick={onLeave}
            label={t(label)}
            leftSection={<Icon name={icon} />}
            active={path === to || path.startsWith(`${to}/`)}
            aria-current={path === to ? 'page' : undefined}
            style={{ borderRadius: 'var(--mantine-radius-md)' }}
          />
        ))}
      </div>
    )
  })
}

function ThemeSwitch() {
  const { t } = useTranslation()
  const { toggleColorScheme } = useMantineColorScheme()
  return (
    <Tooltip label={t('nav.theme')}>
      <ActionIcon variant="default" size={32} onClick={() => toggleColorScheme()} aria-label={t('nav.theme')}>
        <Icon name="sun" />
      </ActionIcon>
    </Tooltip>
  )
}

function PersonMenu() {
  const { t, i18n } = useTranslation()
  const { user } = useAccess().session
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" size="xs" h={32} aria-label={t('nav.person', { name: user.name ?? user.email })}>
          <Icon name="users" />
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{user.email}</Menu.Label>
        <Menu.Item component="a" href="/auth/">
          {t('nav.account')}
        </Menu.Item>
        {LANGUAGES.filter((one) => one !== i18n.language).map((one) => (
          <Menu.Item key={one} lang={one} onClick={() => void chooseLanguage(one)}>
            {one === 'de' ? 'Deutsch' : 'English'}
          </Menu.Item>
        ))}
        <Menu.Item component="a" href="/docs">
          {t('nav.reference')}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item component="a" href="/auth/sign-out">
          {t('nav.sign-out')}
        </Menu.Item>
        <Menu.Label>{t('nav.version', { version: settings.version })}</Menu.Label>
      </Menu.Dropdown>
    </Menu>
  )
}
