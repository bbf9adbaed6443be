import { Checkbox, Stack, Text, Title } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { SecretDialog } from '../../parts/dialogs.tsx'
import { TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { type Draft, EMPTY, type OnChange, toBody } from '../../screens/webhooks/create/draft.ts'
import { EventPicker } from '../../screens/webhooks/event-picker.tsx'
import { MaxPerSecondInput } from '../../screens/webhooks/max-per-second.tsx'
import { ModeSelect } from '../../screens/webhooks/mode.tsx'
import { HeaderFields } from '../../screens/webhooks/own-headers.tsx'
import { ResourceIdsInput } from '../../screens/webhooks/resource-ids.tsx'
import { UrlInput } from '../../screens/webhooks/url-input.tsx'
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

function CreateForm() {
  const { t } = useTranslation('console')
  const { account } = usePortalSession()
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, account: account.document_id, isGlobal: false })
  const create = useChange({
    make: () => api.webhook.webhookCreate({ body: toBody(draft) }),
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

function Fields({ draft, onChange }: { draft: Draft; onChange: OnChange }) {
  const { t } = useTranslation('portal')
  const { t: shared } = useTranslation('console')
  return (
    <>
      <ModeSelect value={draft.mode} onChange={(mode) => onChange({ mode })} />
      {draft.mode === 'push' && <UrlInput value={draft.url} onChange={(url) => onChange({ url })} />}
      <TextInput
        field="name"
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
      {draft.mode === 'push' && (
        <>
          <MaxPerSecondInput value={draft.maxPerSecond} onChange={(maxPerSecond) => onChange({ maxPerSecond })} />
          <HeaderFields rows={draft.headers} onChange={(headers) => onChange({ headers })} />
        </>
      )}
      <Checkbox
        label={shared('asymmetric.title')}
        description={shared('asymmetric.lead')}
        checked={draft.isAsymmetric}
        onChange={({ currentTarget }) => onChange({ isAsymmetric: currentTarget.checked })}
      />
    </>
  )
}
