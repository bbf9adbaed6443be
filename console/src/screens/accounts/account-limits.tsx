import { Group, Progress, Skeleton, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { EditForm } from '../../parts/edit-form.tsx'
import { Facts } from '../../parts/facts.tsx'
import { NumberInput } from '../../parts/fields.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { useRowEdit, withTag } from '../../parts/row-edit.ts'
import { numberFormat } from '../../parts/words/formats.ts'

type Limit = Schemas['AccountLimit']

const NAMES = [
  'webhooks',
  'subscriptions',
  'published_per_minute',
  'replays_per_minute',
  'ledger_retention_days',
] as const

/** The numbers that a limit may have. */
const BOUNDS: Partial<Record<(typeof NAMES)[number], { min: number; max: number }>> = {
  ledger_retention_days: { min: 1, max: 3650 },
}

/** How much an account may have, how much of it it has, and its own limits. */
export function AccountLimits({ account }: { account: string }) {
  const { mayEverywhere } = useAccess()
  const limits = useQuery({
    queryKey: ['limits', account],
    queryFn: ({ signal }) => withTag(api.identity.accountLimitFindOne({ path: { id: account }, signal })),
  })
  if (limits.isError) return <ProblemCard error={limits.error} onRetry={() => void limits.refetch()} />
  if (!limits.data) return <Skeleton height={200} aria-busy />
  const { data } = limits.data
  return (
    <Stack maw={480}>
      <Used limit={data} name="webhooks" />
      <Used limit={data} name="subscriptions" />
      {mayEverywhere('account-limit:update') ? <LimitForm limit={data} /> : <LimitFacts limit={data} />}
    </Stack>
  )
}

function Used({ limit: { used, limits }, name }: { limit: Limit; name: 'webhooks' | 'subscriptions' }) {
  const { t } = useTranslation()
  const share = limits[name] === 0 ? 100 : (used[name] / limits[name]) * 100
  return (
    <div>
      <Group justify="space-between">
        <Text size="sm" fw={500}>
          {t(`limits.${name}`)}
        </Text>
        <Text size="sm">{t('limits.used', { used: used[name], limit: limits[name] })}</Text>
      </Group>
      <Progress value={share} color={share >= 90 ? 'red' : 'ink'} aria-label={t(`limits.${name}`)} mt={4} />
    </div>
  )
}

/** The limits of the rates and the history, for those who may not set them. */
function LimitFacts({ limit: { limits } }: { limit: Limit }) {
  const { t, i18n } = useTranslation()
  const rates = NAMES.filter((name) => name !== 'webhooks' && name !== 'subscriptions')
  return <Facts lines={rates.map((name) => [t(`limits.${name}`), numberFormat(i18n.language).format(limits[name])])} />
}

function LimitForm({ limit }: { limit: Limit }) {
  const { t } = useTranslation()
  const path = { id: limit.account }
  const edit = useRowEdit({
    row: limit,
    queryKey: ['limits', limit.account],
    fieldsOf: ({ own }) => own,
    send: (body, ifMatch) => api.identity.accountLimitUpdate({ path, body, ifMatch }),
    touches: [],
  })
  const { draft, change } = edit
  const labels = Object.fromEntries(NAMES.map((name) => [name, t(`limits.${name}`)])) as Record<
    (typeof NAMES)[number],
    string
  >
  return (
    <EditForm edit={edit} labels={labels}>
      {NAMES.map((name) => (
        <NumberInput
          key={name}
          field={name}
          label={t(`limits.${name}`)}
          description={<LimitHelp name={name} standing={draft[name] === null ? limit.limits[name] : undefined} />}
          placeholder={String(limit.limits[name])}
          min={0}
          {...BOUNDS[name]}
          allowDecimal={false}
          allowNegative={false}
          value={draft[name] ?? ''}
          onChange={(value) => change({ [name]: value === '' ? null : Number(value) })}
        />
      ))}
    </EditForm>
  )
}

/** `standing`: the default, where it holds. */
function LimitHelp({ name, standing }: { name: (typeof NAMES)[number]; standing: number | undefined }) {
  const { t } = useTranslation()
  const source = standing === undefined ? t('limits.own') : t('limits.default', { limit: standing })
  if (name !== 'ledger_retention_days') return source
  return (
    <>
      {source}
      <br />
      {t('limits.retention-help')}
    </>
  )
}
