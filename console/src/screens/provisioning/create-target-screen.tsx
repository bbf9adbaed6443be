import { Radio, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { SecretDialog } from '../../parts/dialogs.tsx'
import { PasswordInput, TextInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { NameFields } from '../../parts/name-fields.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { URL_HINT } from '../../parts/words/url-hint.ts'

interface Draft {
  protocol: 'webhook' | 'scim'
  url: string
  name: string
  description: string
  token: string
}

const EMPTY: Draft = { protocol: 'webhook', url: '', name: '', description: '', token: '' }

/** The draft as the API takes it. Pure. */
function toBody({ protocol, url, name, description, token }: Draft): Schemas['CreateProvisioningTarget'] {
  return {
    protocol,
    url: url.trim(),
    ...(name.trim() && { name: name.trim() }),
    ...(description.trim() && { description: description.trim() }),
    ...(protocol === 'scim' && { token: token.trim() }),
  }
}

/** Makes a target, and shows the secret of a webhook once. */
export function CreateTargetScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Page
      title={t('provisioning.new')}
      parent={{ label: t('provisioning.title'), to: '/provisioning' }}
      lead={t('provisioning.lead')}
    >
      {may('provisioning-target:create') ? <TargetForm /> : <NoPermission permission="provisioning-target:create" />}
    </Page>
  )
}

function TargetForm() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [draft, setDraft] = useState(EMPTY)
  const body = toBody(draft)
  const open = (id: string) => void navigate({ to: '/provisioning/$id', params: { id } })
  const create = useChange({
    make: () => api.provisioning.provisioningTargetCreate({ body }),
    touches: [['targets'], ['health']],
    onDone: ({ data }) => data.secret === null && open(data.document_id),
  })
  const made = create.data?.data
  // The token is left out of what is shown and copied.
  const shown = draft.protocol === 'scim' ? { ...body, token: '$SCIM_TOKEN' } : body
  return (
    <>
      <ChangeForm
        change={create}
        label={t('provisioning.create')}
        buttonAt="start"
        maxWidth={820}
        actions={
          <ApiCall
            operation="provisioning.provisioningTargetCreate"
            method="POST"
            path="/api/v3/provisioning/target"
            body={shown}
          />
        }
      >
        <TargetFields draft={draft} onChange={(change) => setDraft({ ...draft, ...change })} />
        <Text size="sm" c="dimmed">
          {t('provisioning.told')}
        </Text>
      </ChangeForm>
      {made?.secret && (
        <SecretDialog
          title={t('provisioning.secret')}
          name="SIGNALBOX_PROVISIONING_SECRET"
          secret={made.secret}
          onDone={() => open(made.document_id)}
        >
          <Text size="sm">{t('provisioning.secret-text')}</Text>
        </SecretDialog>
      )}
    </>
  )
}

function TargetFields({ draft, onChange }: { draft: Draft; onChange: (change: Partial<Draft>) => void }) {
  const { t } = useTranslation()
  return (
    <>
      <Radio.Group
        label={t('provisioning.protocol')}
        value={draft.protocol}
        onChange={(value) => onChange({ protocol: value === 'scim' ? 'scim' : 'webhook' })}
      >
        <Stack gap="xs" mt={4}>
          {(['webhook', 'scim'] as const).map((value) => (
            <Radio
              key={value}
              value={value}
              label={t(`provisioning.protocol.${value}`)}
              description={t(`provisioning.protocol.${value}-text`)}
            />
          ))}
        </Stack>
      </Radio.Group>
      <TextInput
        field="url"
        label={t('provisioning.url')}
        description={draft.protocol === 'scim' ? t('provisioning.url-scim') : t(URL_HINT)}
        placeholder={draft.protocol === 'scim' ? 'https://example.com/scim/v2' : 'https://example.com/users'}
        type="url"
        required
        maxLength={2048}
        value={draft.url}
        onChange={({ currentTarget }) => onChange({ url: currentTarget.value })}
      />
      {draft.protocol === 'scim' && (
        <PasswordInput
          field="token"
          label={t('provisioning.token')}
          description={t('provisioning.token-text')}
          required
          autoComplete="off"
          value={draft.token}
          onChange={({ currentTarget }) => onChange({ token: currentTarget.value })}
        />
      )}
      <NameFields draft={draft} onChange={onChange} />
    </>
  )
}
