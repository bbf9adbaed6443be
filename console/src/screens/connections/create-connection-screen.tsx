import { Radio, Stack, Text } from '@mantine/core'
import { useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { ConnectionFields } from './connection-fields.tsx'
import { EMPTY, type Kind, toCreateBody } from './draft.ts'

const KINDS = ['oidc', 'saml'] as const

/** Makes a connection of an account. */
export function CreateConnectionScreen() {
  const { t } = useTranslation()
  const { may } = useAccess()
  const { id } = useParams({ from: '/accounts/$id/sign-in/new' })
  return (
    <Page
      title={t('connections.new')}
      parent={{ label: t('connections.title'), to: `/accounts/${id}?tab=sign-in` }}
      lead={t('connections.lead')}
    >
      {may('connection:create') ? <CreateForm account={id} /> : <NoPermission permission="connection:create" />}
    </Page>
  )
}

function CreateForm({ account }: { account: string }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  const [kind, setKind] = useState<Kind>('oidc')
  const [draft, setDraft] = useState(EMPTY)
  const body = toCreateBody(kind, draft)
  const create = useChange({
    make: () => api.identity.connectionCreate({ path: { id: account }, body }),
    touches: [['connections', account]],
    onDone: ({ data }) =>
      navigate({ to: '/accounts/$id/sign-in/$connection', params: { id: account, connection: data.document_id } }),
  })
  // The secret is left out of what is shown and copied.
  const shown = body.oidc ? { ...body, oidc: { ...body.oidc, client_secret: '$CLIENT_SECRET' } } : body
  return (
    <ChangeForm
      change={create}
      label={t('connections.create')}
      buttonAt="start"
      maxWidth={640}
      actions={
        <ApiCall
          operation="identity.connectionCreate"
          method="POST"
          path={`/api/v3/identity/account/${account}/connection`}
          body={shown}
        />
      }
    >
      <Radio.Group
        label={t('connections.kind')}
        value={kind}
        onChange={(value) => {
          setKind(value === 'saml' ? 'saml' : 'oidc')
          create.reset()
        }}
      >
        <Stack gap="xs" mt={4}>
          {KINDS.map((value) => (
            <Radio
              key={value}
              value={value}
              label={t(`connections.kind.${value}`)}
              description={t(`connections.kind.${value}-text`)}
            />
          ))}
        </Stack>
      </Radio.Group>
      <ConnectionFields
        kind={kind}
        account={account}
        draft={draft}
        onChange={(part) => setDraft((before) => ({ ...before, ...part }))}
        isNew
      />
      <Text size="sm" c="dimmed">
        {t(`connections.next.${kind}`)}
      </Text>
    </ChangeForm>
  )
}
