import { Card, Checkbox, PasswordInput, Radio, Stack, Text, Textarea, TextInput, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useBlocker, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { Icon } from '../../../frame/icons.tsx'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { AccountSelect } from '../../../parts/account-select.tsx'
import { ApiCall } from '../../../parts/api-call.tsx'
import { SecretDialog } from '../../../parts/dialogs.tsx'
import { Facts } from '../../../parts/facts.tsx'
import { Page } from '../../../parts/page.tsx'
import { NoPermission } from '../../../parts/problem.tsx'
import { StepForm } from '../../../parts/step-form.tsx'
import { EventPicker } from '../event-picker.tsx'
import { type HeaderRow, toHeaders, withoutValues } from '../header-rows.ts'
import { HeaderFields } from '../own-headers.tsx'
import { listLines } from '../resource-ids.ts'
import { ResourceIdsInput } from '../resource-ids.tsx'
import { checkUrl, URL_RULES } from './url-checks.ts'

/** Input of a new webhook. */
interface Draft {
  url: string
  name: string
  description: string
  isGlobal: boolean
  account: string
  /** One id a line. */
  resources: string
  headers: readonly HeaderRow[]
  isAsymmetric: boolean
  /** A secret that another system has made; empty for a new one. */
  secret: string
  events: ReadonlySet<string>
}

type OnChange = (change: Partial<Draft>) => void

/** The draft as the API takes it. Pure. */
function toBody({
  url,
  name,
  description,
  isGlobal,
  account,
  resources,
  headers: rows,
  isAsymmetric,
  secret,
  events,
}: Draft): Schemas['CreateWebhook'] {
  const ids = listLines(resources)
  const headers = toHeaders(rows)
  return {
    url: url.trim(),
    is_global: isGlobal,
    ...(!isGlobal && account !== '' && { account }),
    ...(name.trim() && { name: name.trim() }),
    ...(description.trim() && { description: description.trim() }),
    ...(ids.length > 0 && { resource_ids: ids }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(isAsymmetric && { asymmetric_signature: true }),
    ...(secret.trim() && { secret: secret.trim() }),
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

/** The steps, which the URL names. */
const STEPS = ['endpoint', 'scope', 'events', 'review'] as const

type Step = (typeof STEPS)[number]

/** The first step that lacks something; none may be passed. Pure. */
function findMissing({ url, isGlobal, account, events }: Draft): Step | undefined {
  if (!URL.canParse(url.trim())) return 'endpoint'
  if (!isGlobal && account === '') return 'scope'
  return events.size === 0 ? 'events' : undefined
}

const EMPTY: Omit<Draft, 'isGlobal'> = {
  ...{ url: '', name: '', description: '', account: '', resources: '' },
  ...{ headers: [], isAsymmetric: false, secret: '', events: new Set<string>() },
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
  const names = Object.keys(toHeaders(draft.headers))
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        {t('create.step.review')}
      </Title>
      <Card withBorder>
        <Facts
          lines={[
            [t('create.url'), draft.url.trim()],
            draft.name.trim() === '' ? undefined : [t('webhooks.name'), draft.name.trim()],
            draft.description.trim() === '' ? undefined : [t('create.description'), draft.description.trim()],
            [t('webhooks.scope'), draft.isGlobal ? t('webhooks.global') : t('webhooks.of-account')],
            ids.length === 0 ? undefined : [t('webhooks.resources'), ids.join(', ')],
            names.length === 0 ? undefined : [t('headers.title'), names.join(', ')],
            draft.isAsymmetric ? [t('asymmetric.title'), t('asymmetric.yes')] : undefined,
            draft.secret.trim() === '' ? undefined : [t('import.title'), t('import.given')],
            [t('create.events'), [...draft.events].sort().join(', ')],
          ]}
        />
      </Card>
    </Stack>
  )
}

/** Says of each rule of a URL whether it is kept. */
function UrlChecks({ url }: { url: string }) {
  const { t } = useTranslation()
  const checks = checkUrl(url)
  if (!checks) return null
  return (
    <ul className="checks" aria-live="polite">
      {URL_RULES.map((rule) => (
        <li key={rule} data-kept={checks[rule]}>
          <Icon name={checks[rule] ? 'good' : 'warn'} size={14} />
          {t(`create.rule.${rule}`)}
          <span className="visually-hidden">{checks[rule] ? t('create.kept') : t('create.broken')}</span>
        </li>
      ))}
    </ul>
  )
}

function EndpointFields({ draft, onChange }: { draft: Draft; onChange: OnChange }) {
  const { t } = useTranslation()
  const { mayEverywhere } = useAccess()
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
      <UrlChecks url={draft.url} />
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
      <HeaderFields rows={draft.headers} onChange={(headers) => onChange({ headers })} />
      <Checkbox
        label={t('asymmetric.title')}
        description={t('asymmetric.lead')}
        checked={draft.isAsymmetric}
        onChange={({ currentTarget }) => onChange({ isAsymmetric: currentTarget.checked })}
      />
      {mayEverywhere('webhook:import') && (
        <PasswordInput
          label={t('import.title')}
          description={t('import.hint')}
          placeholder="whsec_…"
          maxLength={100}
          autoComplete="off"
          value={draft.secret}
          onChange={({ currentTarget }) => onChange({ secret: currentTarget.value })}
          visibilityToggleButtonProps={{ 'aria-label': t('secret.show') }}
        />
      )}
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
      <ResourceIdsInput value={draft.resources} onChange={(resources) => onChange({ resources })} />
    </Stack>
  )
}
