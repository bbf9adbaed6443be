import { Card, Stack, Text, Title } from '@mantine/core'
import { useBlocker, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { ApiCall } from '../../../parts/api-call.tsx'
import { SecretDialog } from '../../../parts/dialogs.tsx'
import { Facts } from '../../../parts/facts.tsx'
import { AccountName } from '../../../parts/names.tsx'
import { Page } from '../../../parts/page.tsx'
import { NoPermission } from '../../../parts/problem.tsx'
import { StepForm } from '../../../parts/step-form.tsx'
import { EventPicker } from '../event-picker.tsx'
import { toHeaders, withoutValues } from '../header-rows.ts'
import { isMaxPerSecond } from '../max-per-second.ts'
import { listLines } from '../resource-ids.ts'
import { type Draft, EMPTY, type OnChange, toBody } from './draft.ts'
import { EndpointFields, ScopeFields } from './draft-fields.tsx'

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

/** The steps, which the URL names. */
const STEPS = ['endpoint', 'scope', 'events', 'review'] as const

type Step = (typeof STEPS)[number]

/** The members of the body that each step sets. */
const FIELDS = [
  ['mode', 'url', 'name', 'description', 'max_per_second', 'headers', 'secret'],
  ['account', 'resource_ids'],
  ['events'],
] as const

/** The first step that lacks something; none may be passed. Pure. */
function findMissing({ mode, url, isGlobal, account, maxPerSecond, events }: Draft): Step | undefined {
  if (mode === 'push' && (!URL.canParse(url.trim()) || !isMaxPerSecond(maxPerSecond))) return 'endpoint'
  if (!isGlobal && account === '') return 'scope'
  return events.size === 0 ? 'events' : undefined
}

function WebhookForm() {
  const { t } = useTranslation()
  const isGlobal = useAccess().mayEverywhere('webhook:create')
  const navigate = useNavigate()
  const search = useSearch({ from: '/webhooks/new' })
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, isGlobal })
  const change: OnChange = (members) => setDraft((before) => ({ ...before, ...members }))
  const body = toBody(draft)
  const create = useChange({
    make: () => api.webhook.webhookCreate({ body }),
    touches: [['webhooks'], ['dashboard']],
    onDone: ({ data: { document_id: id } }) => {
      // A given secret is not shown: there is nothing to store.
      if (body.secret !== undefined) void navigate({ to: '/webhooks/$id', params: { id }, search: { tab: 'testing' } })
    },
  })
  const missing = findMissing(draft)
  const lastOpen = missing === undefined ? STEPS.length - 1 : STEPS.indexOf(missing)
  const asked = Math.max(0, STEPS.indexOf(search.step as Step))
  const place = Math.min(asked, lastOpen)
  const step = STEPS[place] as Step
  const show = (index: number) => void navigate({ to: '/webhooks/new', search: { step: STEPS[index] ?? 'endpoint' } })
  const made = create.data?.data
  return (
    <>
      <StepForm
        names={STEPS.map((name) => t(`create.step.${name}`))}
        place={place}
        lastOpen={lastOpen}
        onShow={show}
        change={create}
        fields={FIELDS}
        label={t('create.do')}
        call={
          <ApiCall
            operation="webhook.webhookCreate"
            method="POST"
            path="/api/v3/webhook/webhook"
            body={withoutValues(body)}
          />
        }
      >
        {step === 'endpoint' && <EndpointFields draft={draft} onChange={change} />}
        {step === 'scope' && <ScopeFields draft={draft} onChange={change} mayGlobal={isGlobal} />}
        {step === 'events' && (
          <Stack gap="sm">
            <Title order={2} size="h4">
              {t('create.events')}
            </Title>
            <Text size="sm" c="dimmed">
              {t('create.events-hint')}
            </Text>
            <EventPicker chosen={draft.events} onChange={(events) => change({ events })} isGlobal={draft.isGlobal} />
          </Stack>
        )}
        {step === 'review' && <Review draft={draft} />}
      </StepForm>
      {made?.secret && <NewSecret id={made.document_id} secret={made.secret} />}
    </>
  )
}

/** The secret of the new webhook. The page is not left before it is stored. */
function NewSecret({ id, secret }: { id: string; secret: string }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  useBlocker({ shouldBlockFn: ({ next }) => next.pathname !== `/webhooks/${id}`, enableBeforeUnload: true })
  return (
    <SecretDialog
      title={t('create.secret')}
      name="SIGNALBOX_WEBHOOK_SECRET"
      secret={secret}
      onDone={() => void navigate({ to: '/webhooks/$id', params: { id }, search: { tab: 'testing' } })}
    >
      <Text size="sm">{t('create.secret-text')}</Text>
    </SecretDialog>
  )
}

function Review({ draft }: { draft: Draft }) {
  const { t } = useTranslation()
  const ids = listLines(draft.resources)
  const names = draft.mode === 'push' ? Object.keys(toHeaders(draft.headers)) : []
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {t('create.step.review')}
      </Title>
      <Card withBorder>
        <Facts
          lines={[
            draft.mode === 'pull' ? [t('pull.mode'), t('pull.pull')] : [t('create.url'), draft.url.trim()],
            draft.name.trim() === '' ? undefined : [t('webhooks.name'), draft.name.trim()],
            draft.description.trim() === '' ? undefined : [t('create.description'), draft.description.trim()],
            [
              t('webhooks.scope'),
              draft.isGlobal ? t('webhooks.global') : <AccountName key="scope" id={draft.account} />,
            ],
            ids.length === 0 ? undefined : [t('webhooks.resources'), ids.join(', ')],
            names.length === 0 ? undefined : [t('headers.title'), names.join(', ')],
            draft.isAsymmetric ? [t('asymmetric.title'), t('asymmetric.yes')] : undefined,
            draft.secret.trim() === '' ? undefined : [t('import.title'), t('import.given')],
            draft.maxPerSecond.trim() === '' ? undefined : [t('webhooks.max-per-second'), draft.maxPerSecond.trim()],
            [t('create.events'), [...draft.events].sort().join(', ')],
          ]}
        />
      </Card>
    </Stack>
  )
}
