import { Alert, Badge, Button, Group, Text, Title } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Icon } from '../../frame/icons.tsx'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { withTag } from '../../parts/row-edit.ts'
import { Instant } from '../../parts/time.tsx'
import type { EventType } from './filter-types.ts'

/** Marks a deprecated event type; nothing for others. */
export function DeprecatedBadge({ type: { deprecation_remedy: remedy } }: { type: EventType }) {
  const { t } = useTranslation('console')
  if (remedy === null) return null
  return (
    <Badge variant="outline" color="gray" tt="none" title={remedy}>
      {t('catalogue.deprecated')}
    </Badge>
  )
}

/** Since when an event type is deprecated, and what to do instead; nothing for others. */
export function DeprecationNotice({ type }: { type: EventType }) {
  const { t } = useTranslation()
  if (type.deprecated_at === null) return null
  return (
    <Alert color="gray" variant="outline" title={t('catalogue.deprecated-since')} icon={<Icon name="warn" />}>
      <Text size="sm">
        <Instant at={type.deprecated_at} />
      </Text>
      <Text size="sm">{type.deprecation_remedy}</Text>
    </Alert>
  )
}

/** The form by which an administrator deprecates an external event type, or ends its deprecation. */
export function Deprecation({ type }: { type: EventType }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [remedy, setRemedy] = useState(type.deprecation_remedy ?? '')
  const path = { id: type.document_id }
  const change = useChange({
    make: (ends: boolean | undefined) => {
      const since = type.deprecated_at ?? new Date().toISOString()
      const body = ends
        ? { deprecated_at: null, deprecation_remedy: null }
        : { deprecated_at: since, deprecation_remedy: remedy.trim() }
      return withTag(api.webhook.eventUpdate({ path, body }))
    },
    touches: [['event-types']],
    notice: (ends, { etag }) => {
      if (!ends) return undefined
      const { deprecated_at, deprecation_remedy } = type
      const undo = () => api.webhook.eventUpdate({ path, body: { deprecated_at, deprecation_remedy }, ifMatch: etag })
      return { text: t('catalogue.deprecation-ended', { event: type.internal }), undo }
    },
  })
  if (type.source !== 'external' || !may('event:update')) return null
  return (
    <>
      <Title order={2} size="h4">
        {t('catalogue.deprecation')}
      </Title>
      <Text size="sm" c="dimmed">
        {t('catalogue.deprecation-text')}
      </Text>
      <ChangeForm
        change={change}
        label={type.deprecated_at === null ? t('catalogue.deprecate') : t('settings.save')}
        isDisabled={remedy.trim() === '' || remedy.trim() === type.deprecation_remedy}
        buttonAt="start"
        maxWidth={720}
        actions={
          type.deprecated_at !== null && (
            <Group>
              <Button variant="default" loading={change.isPending} onClick={() => change.mutate(true)}>
                {t('catalogue.deprecation-end')}
              </Button>
            </Group>
          )
        }
      >
        <TextInput
          field="deprecation_remedy"
          label={t('catalogue.remedy')}
          maxLength={500}
          value={remedy}
          onChange={({ currentTarget }) => setRemedy(currentTarget.value)}
        />
      </ChangeForm>
    </>
  )
}
