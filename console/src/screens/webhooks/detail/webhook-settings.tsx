import { Button, Card, Group, Stack, Text, Title } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { Conflict } from '../../../parts/conflict.tsx'
import { CopyText } from '../../../parts/copy-text.tsx'
import { Facts } from '../../../parts/facts.tsx'
import { TextInput } from '../../../parts/fields.tsx'
import { CheckedForm } from '../../../parts/form.tsx'
import { Instant } from '../../../parts/time.tsx'
import { AsymmetricKey } from '../asymmetric-key.tsx'
import { Contacts, OwnMails } from '../contacts.tsx'
import { isMaxPerSecond } from '../max-per-second.ts'
import { MaxPerSecondInput } from '../max-per-second.tsx'
import { OwnHeaders } from '../own-headers.tsx'
import { ResourceIdsInput } from '../resource-ids.tsx'
import { type Question, Removal, RotateSecret } from '../webhook-actions.tsx'
import { buildUpdate, listChanged, readSettings, type Settings } from './compare.ts'

type Webhook = Schemas['Webhook']

/** Settings of a webhook, and the form that changes them. */
export function WebhookSettings({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  return (
    <Stack maw={720}>
      <SettingsForm webhook={webhook} />
      {webhook.mode === 'push' && <OwnHeaders webhook={webhook} />}
      <AsymmetricKey webhook={webhook} />
      <Contacts webhook={webhook} />
      <OwnMails webhook={webhook} />
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

const LABELS = {
  url: 'create.url',
  name: 'webhooks.name',
  description: 'create.description',
  resource_ids: 'webhooks.resources',
  max_per_second: 'webhooks.max-per-second',
} as const

/** Settings of one line. */
const LINES = ['url', 'name', 'description'] as const

/** Characters of a setting at most (docs/contract/webhooks.md#webhook). */
const LIMITS = { url: 2_048, name: 100, description: 500 } as const

/** The form of the settings. It says when somebody else changed them meanwhile, and sends those alone that it changes. */
function SettingsForm({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const queries = useQueryClient()
  const path = { id: webhook.document_id }
  const queryKey = ['webhook', webhook.document_id]
  const current = readSettings(webhook)
  const [base, setBase] = useState(current)
  const [draft, setDraft] = useState(current)
  const mine = listChanged(base, draft)
  const theirs = listChanged(base, current)
  const begin = (settings: Settings) => {
    setBase(settings)
    setDraft(settings)
  }
  if (theirs.length > 0 && mine.length === 0) begin(current)
  const save = useChange({
    make: async ({ from, body }: { from: Settings; body: Schemas['UpdateWebhook'] }) => {
      const queryFn = () => api.webhook.webhookFindOne({ path })
      const now = readSettings((await queries.fetchQuery({ queryKey, queryFn, staleTime: 0 })).data)
      if (listChanged(from, now).length > 0) return undefined
      return api.webhook.webhookUpdate({ path, body })
    },
    touches: [['webhooks']],
    onDone: (answer) => {
      if (!answer) return
      queries.setQueryData(queryKey, answer)
      begin(readSettings(answer.data))
    },
  })
  const isReadOnly = !may('webhook:update')
  const isConflict = theirs.length > 0 && mine.length > 0
  return (
    <CheckedForm
      change={save}
      onSubmit={() => save.mutate({ from: base, body: buildUpdate(mine, draft) })}
      below={
        !isReadOnly && (
          <Group>
            <Button
              type="submit"
              loading={save.isPending}
              disabled={mine.length === 0 || isConflict || !isMaxPerSecond(draft.max_per_second)}
            >
              {t('settings.save')}
            </Button>
          </Group>
        )
      }
    >
      {isConflict && (
        <Conflict
          isRunning={save.isPending}
          onReload={() => begin(current)}
          onOverwrite={() => {
            // A setting that this form did not change is what it is now.
            setBase(current)
            setDraft({ ...current, ...Object.fromEntries(mine.map((name) => [name, draft[name]])) })
            save.mutate({ from: current, body: buildUpdate(mine, draft) })
          }}
        >
          <Facts
            lines={theirs.map((name) => [
              t(LABELS[name]),
              <Difference key={name} base={base[name]} now={current[name]} />,
            ])}
          />
        </Conflict>
      )}
      <SettingsFields
        isPushed={webhook.mode === 'push'}
        draft={draft}
        isReadOnly={isReadOnly}
        onChange={(members) => setDraft((before) => ({ ...before, ...members }))}
      />
      {save.data && mine.length === 0 && <Text role="status">{t('settings.saved')}</Text>}
    </CheckedForm>
  )
}

interface SettingsFieldsProps {
  isPushed: boolean
  draft: Settings
  isReadOnly: boolean
  onChange: (members: Partial<Settings>) => void
}

function SettingsFields({ isPushed, draft, isReadOnly, onChange }: SettingsFieldsProps) {
  const { t } = useTranslation()
  return (
    <>
      {LINES.filter((name) => isPushed || name !== 'url').map((name) => (
        <TextInput
          key={name}
          field={name}
          label={t(LABELS[name])}
          required={name === 'url'}
          readOnly={isReadOnly}
          maxLength={LIMITS[name]}
          value={draft[name]}
          onChange={({ currentTarget: { value } }) => onChange({ [name]: value })}
        />
      ))}
      <ResourceIdsInput
        isReadOnly={isReadOnly}
        value={draft.resource_ids}
        onChange={(ids) => onChange({ resource_ids: ids })}
      />
      {isPushed && (
        <MaxPerSecondInput
          isReadOnly={isReadOnly}
          value={draft.max_per_second}
          onChange={(limit) => onChange({ max_per_second: limit })}
        />
      )}
    </>
  )
}

/** What a setting was, and what somebody else made of it. */
function Difference({ base, now }: { base: string; now: string }) {
  return (
    <>
      <del>{base || '–'}</del> → <ins>{now || '–'}</ins>
    </>
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
