import { Button, Group, Paper, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { download } from '../../../parts/download.ts'
import { ProblemCard } from '../../../parts/problem.tsx'

/** Actions on the selected webhooks, one request each. */
export function BulkBar({ chosen, onDone }: { chosen: ReadonlySet<string>; onDone: () => void }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const change = useChange({
    make: async (is_actived: boolean) => {
      for (const id of chosen) await api.webhook.webhookActive({ path: { id }, body: { is_actived } })
    },
    touches: [['webhooks'], ['dashboard']],
    onDone,
  })
  return (
    <Paper withBorder p="xs">
      <Group gap="xs">
        <Text size="sm" fw={600} role="status">
          {t('webhooks.chosen', { count: chosen.size })}
        </Text>
        {may('webhook:active') &&
          [true, false].map((isActive) => (
            <Button
              key={String(isActive)}
              size="compact-sm"
              variant="default"
              loading={change.isPending}
              onClick={() => change.mutate(isActive)}
            >
              {isActive ? t('webhooks.activate') : t('webhooks.deactivate')}
            </Button>
          ))}
        {may('webhook:export') && <ExportButton filters={[`document_id|in|${[...chosen].join(',')}`]} />}
        <Button size="compact-sm" variant="subtle" onClick={onDone}>
          {t('dialog.cancel')}
        </Button>
      </Group>
      {change.isError && <ProblemCard error={change.error} />}
    </Paper>
  )
}

/** Saves the webhooks of these filters as a file. */
export function ExportButton({ filters }: { filters: readonly string[] }) {
  const { t } = useTranslation()
  const save = useChange({
    make: () =>
      api.webhook.webhookExport({ query: { format: 'csv', ...(filters.length > 0 && { filters: [...filters] }) } }),
    touches: [],
    onDone: (text) => download(String(text), 'webhooks.csv', 'text/csv'),
  })
  return (
    <Button size="compact-sm" variant="default" loading={save.isPending} onClick={() => save.mutate(undefined)}>
      {t('webhooks.export')}
    </Button>
  )
}
