import { Button, Checkbox, Group, Radio, Stack, Textarea, TextInput } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useNavigate } from '@tanstack/react-router'
import { type SyntheticEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { SecretDialog } from '../../parts/dialogs.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission, ProblemCard } from '../../parts/problem.tsx'
import { SCOPES } from './scopes.ts'

/** Input of a new app. */
interface Draft {
  name: string
  type: Schemas['CreateOauthClient']['type']
  redirects: string
  scopes: Schemas['OauthScope'][]
}

/** Registers an app, and shows its secret once. */
export function CreateAppScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  return (
    <Page title={t('apps.new')} parent={{ label: t('apps.title'), to: '/apps' }}>
      {may('oauth-client:create') ? <AppForm /> : <NoPermission permission="oauth-client:create" />}
    </Page>
  )
}

function AppForm() {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [draft, setDraft] = useState<Draft>({
    name: '',
    type: 'confidential',
    redirects: '',
    scopes: ['openid', 'profile', 'email'],
  })
  const { name, redirects, ...rest } = draft
  const body = { ...rest, name: name.trim(), redirect_uris: redirects.split(/\s+/).filter((part) => part !== '') }
  const open = (id: string) => void navigate({ to: '/apps/$id', params: { id } })
  const create = useChange({
    make: () => api.oauth.oauthClientCreate({ body }),
    touches: [['apps']],
    onDone: ({ data }) => {
      if (data.client_secret === null) open(data.document_id)
    },
  })
  const submit = (event: SyntheticEvent) => {
    event.preventDefault()
    create.mutate(undefined)
  }
  const made = create.data?.data
  return (
    <form onSubmit={submit}>
      <Stack maw={720}>
        <AppFields draft={draft} onChange={(change) => setDraft({ ...draft, ...change })} />
        {create.isError && <ProblemCard error={create.error} />}
        <Group>
          <Button type="submit" loading={create.isPending}>
            {t('apps.create')}
          </Button>
          <ApiCall operation="oauth.oauthClientCreate" method="POST" path="/api/v3/oauth/client" body={body} />
        </Group>
      </Stack>
      {made?.client_secret && (
        <SecretDialog
          title={t('apps.secret')}
          name="SIGNALBOX_CLIENT_SECRET"
          secret={made.client_secret}
          onDone={() => open(made.document_id)}
        />
      )}
    </form>
  )
}

function AppFields({ draft, onChange }: { draft: Draft; onChange: (change: Partial<Draft>) => void }) {
  const { t } = useTranslation()
  return (
    <>
      <TextInput
        label={t('apps.name')}
        description={t('apps.name-hint')}
        required
        value={draft.name}
        onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
      />
      <Radio.Group
        label={t('apps.type')}
        value={draft.type}
        onChange={(value) => onChange({ type: value === 'public' ? 'public' : 'confidential' })}
      >
        <Stack gap="xs" mt="xs">
          {(['confidential', 'public'] as const).map((item) => (
            <Radio key={item} value={item} label={t(`apps.type.${item}`)} description={t(`apps.type.${item}-text`)} />
          ))}
        </Stack>
      </Radio.Group>
      <Textarea
        label={t('apps.redirects')}
        description={t('apps.redirects-hint')}
        placeholder="https://app.example.com/callback"
        required
        autosize
        minRows={2}
        value={draft.redirects}
        onChange={({ currentTarget }) => onChange({ redirects: currentTarget.value })}
      />
      <Checkbox.Group
        label={t('apps.scopes')}
        value={draft.scopes}
        onChange={(values) => onChange({ scopes: SCOPES.filter((scope) => values.includes(scope)) })}
      >
        <Group gap="sm" mt="xs">
          {SCOPES.map((scope) => (
            <Checkbox key={scope} value={scope} label={scope} />
          ))}
        </Group>
      </Checkbox.Group>
    </>
  )
}
