import { Button, Group, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { GroupError } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { HEADERS_LIMIT, type HeaderRow, toHeaders } from './header-rows.ts'

interface HeaderFieldsProps {
  rows: readonly HeaderRow[]
  onChange: (rows: HeaderRow[]) => void
}

/** Fields for the subscriber's own headers, whose values are covered. */
export function HeaderFields({ rows, onChange }: HeaderFieldsProps) {
  const { t } = useTranslation('console')
  const change = (place: number, members: Partial<HeaderRow>) =>
    onChange(rows.map((row, index) => (index === place ? { ...row, ...members } : row)))
  return (
    <Stack gap="xs">
      <Text size="sm" fw={500}>
        {t('headers.title')}
      </Text>
      <Text size="xs" c="dimmed">
        {t('headers.hint')}
      </Text>
      {rows.map((row, place) => {
        const number = place + 1
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a row has no id; its fields are those of its place
          <Group key={place} gap="xs" wrap="nowrap" align="flex-start">
            <TextInput
              aria-label={t('headers.name', { number })}
              placeholder="Authorization"
              maxLength={100}
              spellCheck={false}
              autoComplete="off"
              value={row.name}
              onChange={({ currentTarget }) => change(place, { name: currentTarget.value })}
              style={{ flex: 1 }}
            />
            <PasswordInput
              aria-label={t('headers.value', { number })}
              placeholder="Bearer …"
              maxLength={1024}
              autoComplete="off"
              value={row.value}
              onChange={({ currentTarget }) => change(place, { value: currentTarget.value })}
              style={{ flex: 1 }}
            />
            <Button
              variant="subtle"
              color="gray"
              aria-label={t('headers.remove', { number })}
              onClick={() => onChange(rows.filter((_, index) => index !== place))}
            >
              ×
            </Button>
          </Group>
        )
      })}
      <GroupError field="headers" />
      <Group>
        <Button
          variant="default"
          size="compact-md"
          disabled={rows.length >= HEADERS_LIMIT}
          onClick={() => onChange([...rows, { name: '', value: '' }])}
        >
          {t('headers.add')}
        </Button>
      </Group>
    </Stack>
  )
}

/** The names of a webhook's own headers, and the form that replaces them. */
export function OwnHeaders({ webhook, onSaved }: { webhook: Schemas['Webhook']; onSaved?: () => void }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const id = webhook.document_id
  const [rows, setRows] = useState<HeaderRow[] | undefined>()
  const save = useChange({
    make: () => api.webhook.webhookUpdate({ path: { id }, body: { headers: toHeaders(rows ?? []) } }),
    touches: [['webhook', id], ['webhooks']],
    onDone: () => {
      setRows(undefined)
      onSaved?.()
    },
  })
  const names = webhook.header_names
  return (
    <Stack gap="xs" data-testid="own-headers">
      <Title order={2} size="h5">
        {t('headers.title')}
      </Title>
      <Text size="sm" className="wrap">
        {names.length === 0 ? t('headers.none') : names.join(', ')}
      </Text>
      {rows && (
        <ChangeForm
          change={save}
          label={t('settings.save')}
          buttonAt="start"
          actions={
            <Button variant="default" onClick={() => setRows(undefined)}>
              {t('headers.cancel')}
            </Button>
          }
        >
          <HeaderFields rows={rows} onChange={setRows} />
        </ChangeForm>
      )}
      {!rows && may('webhook:update') && (
        <Group>
          <Button variant="default" size="compact-md" onClick={() => setRows([{ name: '', value: '' }])}>
            {t('headers.change')}
          </Button>
        </Group>
      )}
    </Stack>
  )
}
