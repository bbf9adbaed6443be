import { Alert, Anchor, Group, Stack, Text } from '@mantine/core'
import { useElementSize, useNetwork } from '@mantine/hooks'
import { type ReactNode, useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { TextLink } from '../parts/text-link.tsx'
import { valueName } from '../parts/words/value-name.ts'
import { toEntrance } from './api.ts'
import { Icon } from './icons.tsx'
import { useAccess } from './session.tsx'
import { useCatalogueStatus, useHealth, useService } from './use-service.ts'

/** Tells the style sheet how high the banners are: what sticks to the lower edge of the window stands on them. */
function useFootHeight() {
  const { ref, height } = useElementSize()
  useEffect(() => {
    document.documentElement.style.setProperty('--foot-height', `${Math.ceil(height)}px`)
  }, [height])
  return ref
}

/**
 * Banners of every screen: the browser is offline, the session lacks an account, nothing is published, a component is not
 * well. They stand at the lower edge of the window, so that one that comes or goes moves nothing.
 */
export function Banners() {
  const { t, i18n } = useTranslation()
  const list = new Intl.ListFormat(i18n.language, { type: 'conjunction' })
  const { online } = useNetwork()
  const health = useHealth().data?.data
  const service = useService().data?.data
  const catalogue = useCatalogueStatus().data?.data
  const closed = useAccess().session.closed_accounts
  const unwell = health?.components.filter(({ status }) => status !== 'operational') ?? []
  return (
    <Stack ref={useFootHeight()} gap="xs" role="status" className="banners">
      {!online && <Banner color="red">{t('banner.offline')}</Banner>}
      {closed.flatMap(({ document_id, name, enter_path }) =>
        enter_path === null ? [] : [<ClosedBanner key={document_id} name={name} path={enter_path} />],
      )}
      {service?.publishing === false && (
        <Banner color="red" to="/settings" link={t('banner.settings')}>
          {t('banner.publishing')}
        </Banner>
      )}
      {service && service.schema.pending.length > 0 && (
        <Banner color="red" to="/health" link={t('banner.health')}>
          {t('banner.migrations', { count: service.schema.pending.length })}
        </Banner>
      )}
      {unwell.length > 0 && (
        <Banner color="yellow" to="/health" link={t('banner.health')}>
          {t('banner.degraded', {
            names: list.format(unwell.map(({ component }) => valueName('health.name', component, t))),
          })}
        </Banner>
      )}
      {catalogue?.in_sync === false && (
        <Banner color="yellow" to="/catalogue/status" link={t('banner.catalogue-open')}>
          {t('banner.catalogue')}
        </Banner>
      )}
      {service?.realtime === 'log-only' && (
        <Banner color="gray" to="/realtime" link={t('banner.realtime-open')}>
          {t('banner.realtime')}
        </Banner>
      )}
    </Stack>
  )
}

/** An account that the session reaches after a sign-in by its connection. */
function ClosedBanner({ name, path }: { name: string; path: string }) {
  const { t } = useTranslation()
  return (
    <Alert color="gray" variant="outline" p="xs" icon={<Icon name="warn" />} role="presentation">
      <Group gap="xs" justify="space-between">
        <Text size="sm">{t('banner.closed', { name })}</Text>
        <Anchor href={toEntrance(path)} size="sm">
          {t('problem.enter')}
        </Anchor>
      </Group>
    </Alert>
  )
}

interface BannerProps {
  color: 'red' | 'yellow' | 'gray'
  to?: string
  link?: string
  children: ReactNode
}

function Banner({ color, to, link, children }: BannerProps) {
  return (
    <Alert color={color} variant="outline" p="xs" icon={<Icon name="warn" />} role="presentation">
      <Group gap="xs" justify="space-between">
        <Text size="sm">{children}</Text>
        {to && (
          <TextLink to={to} size="sm">
            {link}
          </TextLink>
        )}
      </Group>
    </Alert>
  )
}
