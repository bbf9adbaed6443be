import { Badge, Group, Radio, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Time } from '../../parts/time.tsx'

/** How a webhook receives (docs/contract/pull.md#mode). */
export type Mode = Schemas['Webhook']['mode']

const MODES = ['push', 'pull'] as const satisfies readonly Mode[]

/** Choice of how a new webhook receives. */
export function ModeSelect({ value, onChange }: { value: Mode; onChange: (mode: Mode) => void }) {
  const { t } = useTranslation('console')
  return (
    <Radio.Group label={t('pull.mode')} value={value} onChange={(mode) => onChange(mode as Mode)}>
      <Stack gap="xs" mt="xs">
        {MODES.map((mode) => (
          <Radio key={mode} value={mode} label={t(`pull.${mode}`)} description={t(`pull.${mode}-text`)} />
        ))}
      </Stack>
    </Radio.Group>
  )
}

/** Backlog of a webhook that pulls, looked up every 5 seconds. */
export function PullState({ id }: { id: string }) {
  const { t } = useTranslation('console')
  const backlog = useQuery({
    queryKey: ['webhook', id, 'backlog'],
    queryFn: ({ signal }) => api.webhook.webhookFindBacklog({ path: { id }, signal }),
    refetchInterval: 5_000,
  })
  const found = backlog.data?.data
  return (
    <Group gap="xs">
      <Badge variant="outline">{t('pull.pull')}</Badge>
      {found && (
        <Text size="sm" c="dimmed" component="span" role="status">
          {found.waiting === 0 ? t('pull.none') : t('pull.waiting', { count: found.waiting })}{' '}
          {found.oldest_at !== null && <Time at={found.oldest_at} />}
        </Text>
      )}
    </Group>
  )
}
