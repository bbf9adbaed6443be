import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { ApiCall } from '../../parts/api-call.tsx'
import { SecretDialog } from '../../parts/dialogs.tsx'
import { Page } from '../../parts/page.tsx'
import { NoPermission } from '../../parts/problem.tsx'
import { StepForm } from '../../parts/step-form.tsx'
import { type AppDraft, EMPTY_APP, findMissing, STEPS, type Step, toAppBody } from './app-draft.ts'
import { RedirectFields, ReviewApp, ScopeFields, TypeFields } from './app-steps.tsx'

/** The members of the body that each step sets. */
const FIELDS = [['name', 'type', 'application_type'], ['redirect_uris'], ['scopes', 'grant_types']] as const

/** Registers an app step by step, and shows its secret once. */
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
  const search = useSearch({ from: '/apps/new' })
  const [draft, setDraft] = useState<AppDraft>(EMPTY_APP)
  const change = (part: Partial<AppDraft>) => setDraft((before) => ({ ...before, ...part }))
  const body = toAppBody(draft)
  const open = (id: string) => void navigate({ to: '/apps/$id', params: { id } })
  const create = useChange({
    make: () => api.oauth.oauthClientCreate({ body }),
    touches: [['apps']],
    onDone: ({ data }) => {
      if (data.client_secret === null) open(data.document_id)
    },
  })
  const missing = findMissing(draft)
  const lastOpen = missing === undefined ? STEPS.length - 1 : STEPS.indexOf(missing)
  const place = Math.min(Math.max(0, STEPS.indexOf(search.step as Step)), lastOpen)
  const step = STEPS[place] as Step
  const show = (index: number) => void navigate({ to: '/apps/new', search: { step: STEPS[index] ?? 'type' } })
  const made = create.data?.data
  const fields = { draft, onChange: change }
  return (
    <>
      <StepForm
        names={STEPS.map((name) => t(`apps.step.${name}`))}
        place={place}
        lastOpen={lastOpen}
        onShow={show}
        change={create}
        fields={FIELDS}
        label={t('apps.create')}
        call={<ApiCall operation="oauth.oauthClientCreate" method="POST" path="/api/v3/oauth/client" body={body} />}
      >
        {step === 'type' && <TypeFields {...fields} />}
        {step === 'redirects' && <RedirectFields {...fields} />}
        {step === 'scopes' && <ScopeFields {...fields} />}
        {step === 'review' && <ReviewApp draft={draft} />}
      </StepForm>
      {made?.client_secret && (
        <SecretDialog
          title={t('apps.secret')}
          name="SIGNALBOX_CLIENT_SECRET"
          secret={made.client_secret}
          onDone={() => open(made.document_id)}
        />
      )}
    </>
  )
}
