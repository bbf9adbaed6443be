import { Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { Facts } from '../../parts/facts.tsx'
import { TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { Instant } from '../../parts/time.tsx'
import { AsymmetricKey } from '../../screens/webhooks/asymmetric-key.tsx'
import { Contacts } from '../../screens/webhooks/contacts.tsx'
import { showMaxPerSecond, toMaxPerSecond } from '../../screens/webhooks/max-per-second.ts'
import { MaxPerSecondInput } from '../../screens/webhooks/max-per-second.tsx'
import { OwnHeaders } from '../../screens/webhooks/own-headers.tsx'
import { toResourceIds } from '../../screens/webhooks/resource-ids.ts'
import { ResourceIdsInput } from '../../screens/webhooks/resource-ids.tsx'
import { tell } from '../host.ts'

/** Settings of a webhook, and the form that changes them. */
export function WebhookForm({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const id = webhook.document_id
  const [url, setUrl] = useState(webhook.url)
  const [name, setName] = useState(webhook.name ?? '')
  const [resources, setResources] = useState(webhook.resource_ids?.join('\n') ?? '')
  const [limit, setLimit] = useState(showMaxPerSecond(webhook.max_per_second))
  const isPushed = webhook.mode === 'push'
  const body = {
    ...(isPushed && { url: url.trim(), max_per_second: toMaxPerSecond(limit) }),
    name: name.trim() || null,
    resource_ids: toResourceIds(resources),
  }
  const save = useChange({
    make: () => api.webhook.webhookUpdate({ path: { id }, body }),
    touches: [['webhook', id], ['webhooks']],
    onDone: () => tell({ type: 'happened', name: 'webhook-changed', id }),
  })
  const isReadOnly = !may('webhook:update')
  return (
    <Stack maw={720}>
      <ChangeForm change={save} label={t('settings.save')} isReadOnly={isReadOnly} buttonAt="start">
        {isPushed && (
          <TextInput
            field="url"
            label={t('create.url')}
            required
            readOnly={isReadOnly}
            value={url}
            onChange={({ currentTarget }) => setUrl(currentTarget.value)}
          />
        )}
        <TextInput
          field="name"
          label={t('webhooks.name')}
          readOnly={isReadOnly}
          maxLength={100}
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <ResourceIdsInput isReadOnly={isReadOnly} value={resources} onChange={setResources} />
        <MaxPerSecondInput isReadOnly={isReadOnly} value={limit} onChange={setLimit} />
        {save.isSuccess && <Text role="status">{t('settings.saved')}</Text>}
      </ChangeForm>
      {isPushed && (
        <OwnHeaders webhook={webhook} onSaved={() => tell({ type: 'happened', name: 'webhook-changed', id })} />
      )}
      <AsymmetricKey webhook={webhook} onSaved={() => tell({ type: 'happened', name: 'webhook-changed', id })} />
      <Contacts webhook={webhook} onSaved={() => tell({ type: 'happened', name: 'webhook-changed', id })} />
      <Facts
        lines={[
          [t('webhooks.id'), <CopyText key="id" text={id} />],
          [t('deliveries.created'), <Instant key="c" at={webhook.created_at} />],
          [t('webhooks.updated'), <Instant key="u" at={webhook.updated_at} />],
        ]}
      />
    </Stack>
  )
}
