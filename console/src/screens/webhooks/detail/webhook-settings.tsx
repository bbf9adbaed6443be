import { Button, Card, Group, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { CopyText } from '../../../parts/copy-text.tsx'
import { EditForm } from '../../../parts/edit-form.tsx'
import { Facts } from '../../../parts/facts.tsx'
import { TextInput } from '../../../parts/fields.tsx'
import { Account } from '../../../parts/names.tsx'
import { useRowEdit } from '../../../parts/row-edit.ts'
import { Instant } from '../../../parts/time.tsx'
import { AsymmetricKey } from '../asymmetric-key.tsx'
import { Contacts, OwnMails } from '../contacts.tsx'
import { isMaxPerSecond } from '../max-per-second.ts'
import { MaxPerSecondInput } from '../max-per-second.tsx'
import { OwnHeaders } from '../own-headers.tsx'
import { ResourceIdsInput } from '../resource-ids.tsx'
import { type Question, Removal, RotateSecret } from '../webhook-actions.tsx'
import { buildUpdate, readSettings, type Settings } from './compare.ts'

type Webhook = Schemas['Webhook']

/** Settings of a webhook, and the form that changes them. */
export function WebhookSettings({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  return (
    <Stack maw={720}>
      <SettingsForm webhook={webhook} />
      {webhook.mode === 'push' && <OwnHeaders webhook={webhook} />}
      <AsymmetricKey webhook={webhook} />
      <Contacts webhook={webhook} />
      <OwnMails webhook={webhook} />
      <Title order={2} size="h5">
        {t('settings.facts')}
      </Title>
      <Facts
        lines={[
          [t('webhooks.id'), <CopyText key="id" text={webhook.document_id} />],
          [
            t('webhooks.scope'),
            webhook.is_global ? t('webhooks.global') : <Account key="a" id={webhook.account ?? ''} />,
          ],
          [t('deliveries.created'), <Instant key="c" at={webhook.created_at} />],
          [t('webhooks.updated'), <Instant key="u" at={webhook.updated_at} />],
        ]}
      />
      <DangerZone webhook={webhook} />
    </Stack>
  )
}

const LABELS = { url: 'create.url', name: 'webhooks.name', description: 'create.description' } as const

/** Settings of one line. */
const LINES = ['url', 'name', 'description'] as const

/** Characters of a setting at most (docs/contract/webhooks.md#webhook). */
const LIMITS = { url: 2_048, name: 100, description: 500 } as const

/** The form of the settings. It says when somebody else changed them meanwhile, and sends those alone that it changes. */
function SettingsForm({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const path = { id: webhook.document_id }
  const edit = useRowEdit({
    row: webhook,
    queryKey: ['webhook', webhook.document_id],
    fieldsOf: readSettings,
    send: (changed, ifMatch) => api.webhook.webhookUpdate({ path, body: buildUpdate(changed), ifMatch }),
    touches: [['webhooks']],
  })
  const isReadOnly = !may('webhook:update')
  return (
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
      isWrong={!isMaxPerSecond(edit.draft.max_per_second)}
    >
      <SettingsFields
        isPushed={webhook.mode === 'push'}
        draft={edit.draft}
        isReadOnly={isReadOnly}
        onChange={edit.change}
      />
    </EditForm>
  )
}

interface SettingsFieldsProps {
  isPushed: boolean
  draft: Settings
  isReadOnly: boolean
  onChange: (members: Partial<Settings>) => void
}

function SettingsFields({ isPushed, draft, isReadOnly, onChange }: SettingsFieldsProps) {
  const { t } = useTranslation()
  return (
    <>
      {LINES.filter((name) => isPushed || name !== 'url').map((name) => (
        <TextInput
          key={name}
          field={name}
          label={t(LABELS[name])}
          required={name === 'url'}
          readOnly={isReadOnly}
          maxLength={LIMITS[name]}
          value={draft[name]}
          onChange={({ currentTarget: { value } }) => onChange({ [name]: value })}
        />
      ))}
      <ResourceIdsInput
        isReadOnly={isReadOnly}
        value={draft.resource_ids}
        onChange={(ids) => onChange({ resource_ids: ids })}
      />
      {isPushed && (
        <MaxPerSecondInput
          isReadOnly={isReadOnly}
          value={draft.max_per_second}
          onChange={(limit) => onChange({ max_per_second: limit })}
        />
      )}
    </>
  )
}

/** Destructive actions, each with its effect. */
const DANGERS = [
  ['rotate', 'webhook:rotate-secret'],
  ['delete', 'webhook:delete'],
  ['purge', 'webhook:purge'],
] as const satisfies readonly (readonly [Question, string])[]

function DangerZone({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [asked, setAsked] = useState<Question | undefined>()
  const close = () => setAsked(undefined)
  return (
    <Card withBorder className="danger">
      <Stack gap="md">
        <Title order={2} size="h5">
          {t('settings.danger')}
        </Title>
        {DANGERS.map(([question, permission]) => (
          <Group key={question} justify="space-between">
            <div className="grow">
              <Text size="sm" fw={600}>
                {t(`webhooks.${question}`)}
              </Text>
              <Text size="sm" c="dimmed">
                {may(permission) ? t(`webhooks.${question}-text`) : t('settings.needs', { permission })}
              </Text>
            </div>
            <Button variant="default" size="compact-md" disabled={!may(permission)} onClick={() => setAsked(question)}>
              {t(`webhooks.${question}`)}
            </Button>
          </Group>
        ))}
      </Stack>
      <RotateSecret webhook={webhook} isAsked={asked === 'rotate'} onClose={close} />
      <Removal webhook={webhook} asked={asked} onClose={close} />
    </Card>
  )
}
