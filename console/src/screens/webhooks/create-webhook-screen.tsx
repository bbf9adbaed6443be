import { Button, Group, Radio, Stack, Text, Textarea, TextInput, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate } from '@tanstack/react-router'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { AccountSelect } from '../../parts/account-select.tsx'
import { ApiCall } from '../../parts/api-call.tsx'
import { SecretDialog } from '../../parts/dialogs.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission, ProblemCard } from '../../parts/problem.tsx'
import { EventPicker } from './event-picker.tsx'

/** What a person types of a new webhook. */
interface Draft {
  url: string
  name: string
  description: string
  isGlobal: boolean
  account: string
  events: ReadonlySet<string>
}

type OnChange = (change: Partial<Draft>) => void

/** The draft as the API takes it. Pure. */
function toBody({ url, name, description, isGlobal, account, events }: Draft): Schemas['CreateWebhook'] {
  return {
    url: url.trim(),
    is_global: isGlobal,
    ...(!isGlobal && account !== '' && { account }),
    ...(name.trim() && { name: name.trim() }),
    ...(description.trim() && { description: description.trim() }),
    ...(events.size > 0 && { events: [...events] }),
  }
}

/** Makes a webhook: where it posts to, for whom, of what; and shows its secret once. */
export function CreateWebhookScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Page title={t('webhooks.new')} parent={{ label: t('webhooks.title'), to: '/webhooks' }} lead={t('create.lead')}>
      {may('webhook:create') ? <WebhookForm /> : <NoPermission permission="webhook:create" />}
    </Page>
  )
}

function WebhookForm() {
  const { t } = useTranslation()
  const isGlobal = useAccess().mayEverywhere('webhook:create')
  const navigate = useNavigate()
  const empty = { url: '', name: '', description: '', account: '', events: new Set<string>() }
  const [draft, setDraft] = useState<Draft>({ ...empty, isGlobal })
  const change: OnChange = (members) => setDraft({ ...draft, ...members })
  const body = toBody(draft)
  const open = (id: string) => void navigate({ to: '/webhooks/$id', params: { id } })
  const create = useChange({ make: () => api.webhook.webhookCreate({ body }), touches: [['webhooks'], ['dashboard']] })
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    create.mutate(undefined)
  }
  const made = create.data?.data
  return (
    <form onSubmit={submit}>
      <Stack maw={820} gap="lg">
        <EndpointFields draft={draft} onChange={change} />
        <ScopeFields draft={draft} onChange={change} mayGlobal={isGlobal} />
        <Stack gap="sm">
          <Title order={2} size="h4">
            {t('create.events')}
          </Title>
          <Text size="sm" c="dimmed">
            {t('create.events-hint')}
          </Text>
          <EventPicker chosen={draft.events} onChange={(events) => change({ events })} isGlobal={draft.isGlobal} />
        </Stack>
        {create.isError && <ProblemCard error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending} disabled={!draft.isGlobal && draft.account === ''}>
            {t('create.do')}
          </Button>
          <ApiCall operation="webhook.webhookCreate" method="POST" path="/api/v3/webhook/webhook" body={body} />
        </Group>
      </Stack>
      {made?.secret && (
        <SecretDialog
          title={t('create.secret')}
          name="SIGNALBOX_WEBHOOK_SECRET"
          secret={made.secret}
          onDone={() => open(made.document_id)}
        >
          <Text size="sm">{t('create.secret-text')}</Text>
        </SecretDialog>
      )}
    </form>
  )
}

function EndpointFields({ draft, onChange }: { draft: Draft; onChange: OnChange }) {
  const { t } = useTranslation()
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {t('create.endpoint')}
      </Title>
      <TextInput
        label={t('create.url')}
        description={t('create.url-hint')}
        placeholder="https://example.com/webhooks"
        type="url"
        required
        maxLength={2048}
        value={draft.url}
        onChange={({ currentTarget }) => onChange({ url: currentTarget.value })}
      />
      <TextInput
        label={t('webhooks.name')}
        maxLength={100}
        value={draft.name}
        onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
      />
      <Textarea
        label={t('create.description')}
        maxLength={500}
        autosize
        value={draft.description}
        onChange={({ currentTarget }) => onChange({ description: currentTarget.value })}
      />
    </Stack>
  )
}

function ScopeFields({ draft, onChange, mayGlobal }: { draft: Draft; onChange: OnChange; mayGlobal: boolean }) {
  const { t } = useTranslation()
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {t('webhooks.scope')}
      </Title>
      <Radio.Group
        aria-label={t('webhooks.scope')}
        value={draft.isGlobal ? 'global' : 'account'}
        onChange={(value) => onChange({ isGlobal: value === 'global' })}
      >
        <Stack gap="xs">
          <Radio value="global" label={t('webhooks.global')} description={t('create.global')} disabled={!mayGlobal} />
          <Radio value="account" label={t('webhooks.of-account')} description={t('create.account')} />
        </Stack>
      </Radio.Group>
      {!draft.isGlobal && <AccountSelect value={draft.account} onChange={(account) => onChange({ account })} />}
    </Stack>
  )
}
