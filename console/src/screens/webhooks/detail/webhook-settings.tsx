import { Button, Card, Group, Stack, Text, TextInput, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { CopyText } from '../../../parts/copy-text.tsx'
import { Facts } from '../../../parts/facts.tsx'
import { ProblemCard } from '../../../parts/problem.tsx'
import { Instant } from '../../../parts/time.tsx'
import { type Question, Removal, RotateSecret } from '../webhook-actions.tsx'

type Webhook = Schemas['Webhook']

/** Settings of a webhook, and the form that changes them. */
export function WebhookSettings({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [url, setUrl] = useState(webhook.url)
  const [name, setName] = useState(webhook.name ?? '')
  const [description, setDescription] = useState(webhook.description ?? '')
  const body: Schemas['UpdateWebhook'] = {
    url: url.trim(),
    name: name.trim() || null,
    description: description.trim() || null,
  }
  const save = useChange({
    make: () => api.webhook.webhookUpdate({ path: { id: webhook.document_id }, body }),
    touches: [['webhook', webhook.document_id], ['webhooks']],
  })
  const isReadOnly = !may('webhook:update')
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    save.mutate(undefined)
  }
  return (
    <Stack maw={720}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label={t('create.url')}
            required
            readOnly={isReadOnly}
            value={url}
            onChange={({ currentTarget }) => setUrl(currentTarget.value)}
          />
          <TextInput
            label={t('webhooks.name')}
            readOnly={isReadOnly}
            maxLength={100}
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <TextInput
            label={t('create.description')}
            readOnly={isReadOnly}
            maxLength={500}
            value={description}
            onChange={({ currentTarget }) => setDescription(currentTarget.value)}
          />
          {save.isError && <ProblemCard error={save.error} />}
          {save.isSuccess && <Text role="status">{t('settings.saved')}</Text>}
          {!isReadOnly && (
            <Group>
              <Button type="submit" loading={save.isPending}>
                {t('settings.save')}
              </Button>
            </Group>
          )}
        </Stack>
      </form>
      <Title order={2} size="h5">
        {t('settings.facts')}
      </Title>
      <Facts
        lines={[
          [t('webhooks.id'), <CopyText key="id" text={webhook.document_id} />],
          [
            t('webhooks.scope'),
            webhook.is_global ? t('webhooks.global') : <CopyText key="a" text={webhook.account ?? ''} />,
          ],
          [t('deliveries.created'), <Instant key="c" at={webhook.created_at} />],
          [t('webhooks.updated'), <Instant key="u" at={webhook.updated_at} />],
        ]}
      />
      <DangerZone webhook={webhook} />
    </Stack>
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
          <Group key={question} justify="space-between" wrap="nowrap">
            <div>
              <Text size="sm" fw={600}>
                {t(`webhooks.${question}`)}
              </Text>
              <Text size="sm" c="dimmed">
                {may(permission) ? t(`webhooks.${question}-text`) : t('settings.needs', { permission })}
              </Text>
            </div>
            <Button
              variant="default"
              size="compact-md"
              disabled={!may(permission)}
              style={{ flexShrink: 0 }}
              onClick={() => setAsked(question)}
            >
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
