import { Checkbox, Stack, Text, TextInput, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { SecretDialog } from '../../parts/dialogs.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { EventPicker } from '../../screens/webhooks/event-picker.tsx'
import { type HeaderRow, toHeaders } from '../../screens/webhooks/header-rows.ts'
import { HeaderFields } from '../../screens/webhooks/own-headers.tsx'
import { listLines } from '../../screens/webhooks/resource-ids.ts'
import { ResourceIdsInput } from '../../screens/webhooks/resource-ids.tsx'
import { tell } from '../host.ts'
import { usePortalSession } from '../portal-session.ts'
import { goTo, hrefOf } from '../route.ts'
import { Screen } from '../screen.tsx'

/** Makes a webhook of the account, and shows its secret once. */
export function CreateWebhook() {
  const { t } = useTranslation('portal')
  const { t: shared } = useTranslation('console')
  const { may } = useAccess()
  return (
    <Screen
      title={t('webhooks.new')}
      lead={shared('create.lead')}
      back={{ label: shared('webhooks.title'), href: hrefOf('webhooks') }}
    >
      {may('webhook:create') ? <CreateForm /> : <NoPermission permission="webhook:create" />}
    </Screen>
  )
}

/** Input of a new webhook. */
interface Draft {
  url: string
  name: string
  /** One id a line. */
  resources: string
  headers: readonly HeaderRow[]
  isAsymmetric: boolean
  events: ReadonlySet<string>
}

function CreateForm() {
  const { t } = useTranslation('console')
  const { account } = usePortalSession()
  const [draft, setDraft] = useState<Draft>({
    ...{ url: '', name: '', resources: '' },
    ...{ headers: [], isAsymmetric: false, events: new Set() },
  })
  const create = useChange({
    make: () => api.webhook.webhookCreate({ body: toBody(draft, account.document_id) }),
    touches: [['webhooks'], ['limits']],
    onDone: ({ data }) => tell({ type: 'happened', name: 'webhook-created', id: data.document_id }),
  })
  const made = create.data?.data
  return (
    <>
      <ChangeForm change={create} label={t('create.do')} buttonAt="start" maxWidth={760}>
        <Stack gap="lg">
          <Fields draft={draft} onChange={(members) => setDraft({ ...draft, ...members })} />
        </Stack>
      </ChangeForm>
      {made?.secret && (
        <SecretDialog
          title={t('create.secret')}
          name="WEBHOOK_SECRET"
          secret={made.secret}
          onDone={() => goTo('webhooks', made.document_id)}
        >
          <Text size="sm">{t('create.secret-text')}</Text>
        </SecretDialog>
      )}
    </>
  )
}

/** The draft as the API takes it. Pure. */
function toBody(draft: Draft, account: string): Schemas['CreateWebhook'] {
  const { url, name, resources, isAsymmetric, events } = draft
  const ids = listLines(resources)
  const headers = toHeaders(draft.headers)
  return {
    url: url.trim(),
    is_global: false,
    account,
    ...(name.trim() && { name: name.trim() }),
    ...(ids.length > 0 && { resource_ids: ids }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(isAsymmetric && { asymmetric_signature: true }),
    ...(events.size > 0 && { events: [...events] }),
  }
}

function Fields({ draft, onChange }: { draft: Draft; onChange: (members: Partial<Draft>) => void }) {
  const { t } = useTranslation('portal')
  const { t: shared } = useTranslation('console')
  return (
    <>
      <TextInput
        label={shared('create.url')}
        description={shared('create.url-hint')}
        placeholder="https://example.com/webhooks"
        type="url"
        required
        maxLength={2048}
        value={draft.url}
        onChange={({ currentTarget }) => onChange({ url: currentTarget.value })}
      />
      <TextInput
        label={shared('webhooks.name')}
        maxLength={100}
        value={draft.name}
        onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
      />
      <Stack gap="sm">
        <Title order={2} size="h4">
          {shared('create.events')}
        </Title>
        <Text size="sm" c="dimmed">
          {t('create.events')}
        </Text>
        <EventPicker chosen={draft.events} onChange={(events) => onChange({ events })} isGlobal={false} />
      </Stack>
      <ResourceIdsInput value={draft.resources} onChange={(resources) => onChange({ resources })} />
      <HeaderFields rows={draft.headers} onChange={(headers) => onChange({ headers })} />
      <Checkbox
        label={shared('asymmetric.title')}
        description={shared('asymmetric.lead')}
        checked={draft.isAsymmetric}
        onChange={({ currentTarget }) => onChange({ isAsymmetric: currentTarget.checked })}
      />
    </>
  )
}
