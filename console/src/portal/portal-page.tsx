import { Alert, Button, Group, Loader, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { type ComponentType, useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from '../frame/icons.tsx'
import { NoticeBar } from '../frame/notice/notice-bar.tsx'
import { AccessProvider } from '../frame/session.tsx'
import { settings } from '../frame/settings.ts'
import { LeaveDialog } from '../parts/leave-dialog.tsx'
import { ProblemCard } from '../parts/problem.tsx'
import { LinkStrip } from '../parts/scroll/link-strip.tsx'
import { SessionContext, usePortalSession } from './portal-session.ts'
import { hrefOf, useRoute } from './route.ts'
import { CreateWebhook } from './screens/create-webhook.tsx'
import { Deliveries } from './screens/deliveries.tsx'
import { Delivery } from './screens/delivery.tsx'
import { Events } from './screens/events.tsx'
import { Limits } from './screens/limits.tsx'
import { Webhook } from './screens/webhook.tsx'
import { Webhooks } from './screens/webhooks.tsx'
import { usePortalState } from './session.ts'
import { portal } from './settings.ts'

type Opened = Schemas['OpenedPortalSession']

/** The screens, by their name in the address; `detail` shows one row. */
const SCREENS: Readonly<Record<string, { list: ComponentType; detail?: ComponentType<{ id: string }> }>> = {
  webhooks: { list: Webhooks, detail: Webhook },
  new: { list: CreateWebhook },
  deliveries: { list: Deliveries, detail: Delivery },
  events: { list: Events },
  limits: { list: Limits },
}

const TABS = ['webhooks', 'deliveries', 'events', 'limits'] as const

/** The whole page, in each state of its session. */
export function PortalPage() {
  const { t } = useTranslation('portal')
  const state = usePortalState()
  if (state.is === 'opening')
    return (
      <main className="portal" aria-busy="true">
        <Loader aria-label={t('session.opening')} />
      </main>
    )
  if (state.is === 'ended') return <Ended returnUrl={state.returnUrl} error={state.error} />
  return (
    <SessionContext value={state.session}>
      <AccessProvider session={toSession(state.session)}>
        <Screens />
      </AccessProvider>
    </SessionContext>
  )
}

/** Session for the shared parts of the console: its permissions and its account, without a user. */
function toSession({ account, permissions }: Opened): Schemas['Session'] {
  const ofAccount = [{ account: account.document_id, permissions }]
  const access = { permissions: [], account_permissions: [], membership_permissions: ofAccount, accounts: [account] }
  return access as unknown as Schemas['Session']
}

function Screens() {
  const { t } = useTranslation('portal')
  const { screen, id } = useRoute()
  const { list: Listed, detail: Detail } = SCREENS[screen] ?? { list: Webhooks, detail: Webhook }
  const tab = screen === 'new' || screen === '' ? 'webhooks' : screen
  useEffect(() => {
    document.title = `${t('title')} · ${settings.service}`
  }, [t])
  return (
    <Stack className="portal" gap="lg">
      <Header />
      <LinkStrip className="portal-nav" label={t('nav')} current={tab}>
        {TABS.map((name) => (
          <a key={name} href={hrefOf(name)} {...(tab === name && { 'aria-current': 'page' })}>
            {t(`tab.${name}`)}
          </a>
        ))}
      </LinkStrip>
      <NoticeBar />
      <LeaveDialog />
      <main>{id !== undefined && Detail ? <Detail key={id} id={id} /> : <Listed />}</main>
    </Stack>
  )
}

function Header() {
  const { t } = useTranslation('portal')
  const { account, external_user: user, role, return_url: returnUrl } = usePortalSession()
  const isFramed = window.parent !== window
  return (
    <Group component="header" justify="space-between" gap="xs">
      <div className="portal-brand">
        {portal.logo && <img src={portal.logo} alt="" />}
        <span className="wrap">{settings.service}</span>
      </div>
      <Group gap="md">
        <Text size="sm" c="dimmed" className="wrap">
          {[account.name, user, t(`role.${role}`)].filter(Boolean).join(' · ')}
        </Text>
        {returnUrl && !isFramed && (
          <Button component="a" href={returnUrl} variant="default" size="compact-sm" rel="noreferrer">
            {t('session.back')}
          </Button>
        )}
      </Group>
    </Group>
  )
}

/** There is no session any more, or none came to be. */
function Ended({ returnUrl, error }: { returnUrl: string | null; error: unknown }) {
  const { t } = useTranslation('portal')
  const isFramed = window.parent !== window
  return (
    <main className="portal">
      <Stack maw={560} mx="auto" mt="xl">
        <Title order={1} size="h3">
          {t('session.over')}
        </Title>
        {error === null ? (
          <Alert color="gray" variant="outline" icon={<Icon name="wait" />}>
            <Text size="sm">{t('session.over-text')}</Text>
          </Alert>
        ) : (
          <ProblemCard error={error} />
        )}
        {returnUrl && !isFramed && (
          <Group>
            <Button component="a" href={returnUrl} rel="noreferrer">
              {t('session.again')}
            </Button>
          </Group>
        )}
      </Stack>
    </main>
  )
}
