import { Button, Group, Paper, Text } from '@mantine/core'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { download } from '../../../parts/download.ts'
import { ProblemCard } from '../../../parts/problem.tsx'

async function setActive(webhooks: Iterable<string>, is_actived: boolean): Promise<void> {
  for (const id of webhooks) await api.webhook.webhookActive({ path: { id }, body: { is_actived } })
}

interface BulkBarProps {
  chosen: ReadonlySet<string>
  /** The webhooks of the list that are active. */
  active: readonly string[]
  onDone: () => void
}

/** Actions on the selected webhooks, one request each. A deactivation can be taken back for those that it deactivated. */
export function BulkBar({ chosen, active, onDone }: BulkBarProps) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const change = useChange({
    make: async (isActive: boolean) => {
      const ended = isActive ? [] : active.filter((id) => chosen.has(id))
      await setActive(chosen, isActive)
      return ended
    },
    touches: [['webhooks'], ['dashboard']],
    onDone,
    notice: (_, ended) =>
      ended.length > 0
        ? { text: t('webhooks.deactivated-many', { count: ended.length }), undo: () => setActive(ended, true) }
        : undefined,
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
