import { Stack } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { CopyText } from '../../parts/copy-text.tsx'
import { EditForm } from '../../parts/edit-form.tsx'
import { Facts } from '../../parts/facts.tsx'
import { TextInput } from '../../parts/fields.tsx'
import { useRowEdit } from '../../parts/row-edit.ts'
import { Instant } from '../../parts/time.tsx'
import { AsymmetricKey } from '../../screens/webhooks/asymmetric-key.tsx'
import { Contacts } from '../../screens/webhooks/contacts.tsx'
import { buildUpdate, readSettings, type Settings } from '../../screens/webhooks/detail/compare.ts'
import { isMaxPerSecond } from '../../screens/webhooks/max-per-second.ts'
import { MaxPerSecondInput } from '../../screens/webhooks/max-per-second.tsx'
import { OwnHeaders } from '../../screens/webhooks/own-headers.tsx'
import { ResourceIdsInput } from '../../screens/webhooks/resource-ids.tsx'
import { tell } from '../host.ts'

/** Settings of a webhook, and the form that changes them. */
export function WebhookForm({ webhook }: { webhook: Schemas['Webhook'] }) {
  const { t } = useTranslation('console')
  const { may } = useAccess()
  const id = webhook.document_id
  const isPushed = webhook.mode === 'push'
  const edit = useRowEdit({
    row: webhook,
    queryKey: ['webhook', id],
    fieldsOf: readSettings,
    send: (changed, ifMatch) => api.webhook.webhookUpdate({ path: { id }, body: buildUpdate(changed), ifMatch }),
    touches: [['webhooks']],
    onDone: () => tell({ type: 'happened', name: 'webhook-changed', id }),
  })
  const { draft, change } = edit
  const isReadOnly = !may('webhook:update')
  return (
    <Stack maw={720}>
      <EditForm
        edit={edit}
        labels={{
          url: t('create.url'),
          name: t('webhooks.name'),
          description: t('create.description'),
          resource_ids: t('webhooks.resources'),
          max_per_second: t('webhooks.max-per-second'),
        }}
        isReadOnly={isReadOnly}
        isWrong={!isMaxPerSecond(draft.max_per_second)}
      >
        <Fields isPushed={isPushed} isReadOnly={isReadOnly} draft={draft} onChange={change} />
      </EditForm>
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

interface FieldsProps {
  isPushed: boolean
  isReadOnly: boolean
  draft: Settings
  onChange: (part: Partial<Settings>) => void
}

function Fields({ isPushed, isReadOnly, draft, onChange: change }: FieldsProps) {
  const { t } = useTranslation('console')
  return (
    <>
      {isPushed && (
        <TextInput
          field="url"
          label={t('create.url')}
          required
          readOnly={isReadOnly}
          value={draft.url}
          onChange={({ currentTarget }) => change({ url: currentTarget.value })}
        />
      )}
      <TextInput
        field="name"
        label={t('webhooks.name')}
        readOnly={isReadOnly}
        maxLength={100}
        value={draft.name}
        onChange={({ currentTarget }) => change({ name: currentTarget.value })}
      />
      <ResourceIdsInput
        isReadOnly={isReadOnly}
        value={draft.resource_ids}
        onChange={(ids) => change({ resource_ids: ids })}
      />
      {isPushed && (
        <MaxPerSecondInput
          isReadOnly={isReadOnly}
          value={draft.max_per_second}
          onChange={(limit) => change({ max_per_second: limit })}
        />
      )}
    </>
  )
}
