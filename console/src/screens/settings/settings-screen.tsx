import {
  Button,
  Card,
  Group,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  Title,
  useMantineColorScheme,
} from '@mantine/core'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { changePreferences, usePreferences } from '../../frame/preferences.ts'
import { useAccess } from '../../frame/session.tsx'
import { useService } from '../../frame/use-service.ts'
import { LANGUAGES, type Language } from '../../language/choice.ts'
import { chooseLanguage } from '../../language/i18n.ts'
import { describeLength } from '../../parts/age.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Page } from '../../parts/page.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { Instant } from '../../parts/time.tsx'
import { SessionList } from '../sessions/session-list.tsx'
import { MailChoices } from './mail-choices.tsx'
import { OwnProfile } from './own-profile.tsx'
import { ShortcutChoices } from './shortcut-choices.tsx'

/** The choices of this browser, and what an operator cannot change here: rules of the contract and the environment. */
export function SettingsScreen() {
  const { t } = useTranslation()
  return (
    <Page
      title={t('nav.settings')}
      lead={t('prefs.lead')}
      actions={<ApiCall operation="health.healthService" method="GET" path="/api/v3/health/service" />}
    >
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Stack>
          <Choices />
          <Service />
        </Stack>
        <Stack>
          <User />
          <Part title={t('prefs.mails')}>
            <MailChoices />
          </Part>
        </Stack>
      </SimpleGrid>
      <OwnSessions />
    </Page>
  )
}

/** Sessions of the user, each with what ends it. */
function OwnSessions() {
  const { t } = useTranslation()
  const { user } = useAccess().session
  return (
    <Part title={t('prefs.sessions')}>
      <SessionList user={user.document_id} />
      <Group>
        <Button component="a" href="/auth/" variant="default" size="compact-md">
          {t('nav.account')}
        </Button>
      </Group>
    </Part>
  )
}

function Choices() {
  const { t, i18n } = useTranslation()
  const { density, timeZone, shortcuts } = usePreferences()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  return (
    <Part title={t('prefs.browser')}>
      <Choice
        label={t('prefs.theme')}
        value={colorScheme}
        onChange={(value) => setColorScheme(value as 'auto')}
        data={(['auto', 'light', 'dark'] as const).map((value) => ({ value, label: t(`prefs.theme.${value}`) }))}
      />
      <Choice
        label={t('prefs.density')}
        value={density}
        onChange={(value) => changePreferences({ density: value as 'compact' })}
        data={(['comfortable', 'compact'] as const).map((value) => ({ value, label: t(`prefs.density.${value}`) }))}
      />
      <Choice
        label={t('prefs.time-zone')}
        value={timeZone}
        onChange={(value) => changePreferences({ timeZone: value as 'utc' })}
        data={[
          { value: 'local', label: t('prefs.local', { zone: Intl.DateTimeFormat().resolvedOptions().timeZone }) },
          { value: 'utc', label: 'UTC' },
        ]}
      />
      <Choice
        label={t('prefs.language')}
        value={i18n.language}
        onChange={(value) => void chooseLanguage(value as Language)}
        data={LANGUAGES.map((value) => ({ value, label: value === 'de' ? 'Deutsch' : 'English' }))}
      />
      <Switch
        label={t('prefs.shortcuts')}
        description={t('prefs.shortcuts-text')}
        checked={shortcuts}
        onChange={({ currentTarget }) => changePreferences({ shortcuts: currentTarget.checked })}
      />
      {shortcuts && <ShortcutChoices />}
      <Text size="xs" c="dimmed">
        {t('prefs.kept')}
      </Text>
    </Part>
  )
}

interface ChoiceProps {
  label: string
  value: string
  onChange: (value: string) => void
  data: { value: string; label: string }[]
}

function Choice({ label, ...rest }: ChoiceProps) {
  return (
    <div>
      <Text size="sm" fw={500} mb={4}>
        {label}
      </Text>
      <SegmentedControl aria-label={label} fullWidth transitionDuration={0} {...rest} />
    </div>
  )
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Card withBorder>
      <Stack>
        <Title order={2} size="h5">
          {title}
        </Title>
        {children}
      </Stack>
    </Card>
  )
}

function User() {
  const { t } = useTranslation()
  const { user, session, permissions } = useAccess().session
  return (
    <Part title={t('prefs.user')}>
      <Facts
        lines={[
          [t('users.email'), user.email],
          user.name === null ? undefined : [t('users.user'), user.name],
          session ? [t('prefs.signed-in'), <Instant key="in" at={session.auth_time} />] : undefined,
          session ? [t('nav.session-ends'), <Instant key="end" at={session.expires_at} />] : undefined,
          [t('prefs.permissions'), permissions.join(', ') || t('users.no-role')],
        ]}
      />
      <OwnProfile />
    </Part>
  )
}

/** The environment and the rules, for those who may know. */
function Service() {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const service = useService()
  const list = new Intl.ListFormat(i18n.language, { type: 'unit' })
  const describe = (seconds: number) => describeLength(seconds, i18n.language)
  if (!may('health:service')) return null
  if (service.isError) return <ProblemCard error={service.error} onRetry={() => void service.refetch()} />
  const facts = service.data?.data
  if (!facts) return null
  const { rules } = facts
  return (
    <>
      <Part title={t('prefs.environment')}>
        <Facts
          lines={[
            ['APP_ENV', facts.environment],
            ['ENABLE_API_EVENT_QUEUE', String(facts.publishing)],
            [t('nav.realtime'), t(`realtime.mode.${facts.realtime}`)],
            ['SIGNALBOX_ROLES', facts.roles.join(', ')],
          ]}
        />
      </Part>
      <Part title={t('prefs.rules')}>
        <Facts
          lines={[
            [t('prefs.attempts'), String(rules.attempts)],
            [t('prefs.waits'), list.format(rules.retry_delays_s.map(describe))],
            [t('prefs.timeout'), describe(rules.attempt_timeout_s)],
            [t('prefs.disable'), String(rules.auto_disable_after)],
            [t('prefs.provisioning'), String(rules.provisioning_attempts)],
          ]}
        />
        <Text size="xs" c="dimmed">
          {t('prefs.fixed')}
        </Text>
      </Part>
    </>
  )
}
