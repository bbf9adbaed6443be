import { Group, Progress, Skeleton, Stack, Text } from '@mantine/core'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useChange } from '../../frame/use-change.ts'
import { NumberInput } from '../../parts/fields.tsx'
import { ChangeForm } from '../../parts/form.tsx'
import { ProblemCard } from '../../parts/problem.tsx'

type Limit = Schemas['AccountLimit']

const NAMES = ['webhooks', 'subscriptions', 'published_per_minute', 'replays_per_minute'] as const

/** How much an account may have, how much of it it has, and its own limits. */
export function AccountLimits({ account }: { account: string }) {
  const { mayEverywhere } = useAccess()
  const limits = useQuery({
    queryKey: ['limits', account],
    queryFn: ({ signal }) => api.identity.accountLimitFindOne({ path: { id: account }, signal }),
  })
  if (limits.isError) return <ProblemCard error={limits.error} onRetry={() => void limits.refetch()} />
  if (!limits.data) return <Skeleton height={200} aria-busy />
  const { data } = limits.data
  return (
    <Stack maw={480}>
      <Used limit={data} name="webhooks" />
      <Used limit={data} name="subscriptions" />
      <LimitForm key={data.updated_at} limit={data} isLocked={!mayEverywhere('account-limit:update')} />
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

function LimitForm({ limit, isLocked }: { limit: Limit; isLocked: boolean }) {
  const { t } = useTranslation()
  const [draft, setDraft] = useState<Schemas['OwnAccountLimits']>(limit.own)
  const changed = NAMES.filter((name) => draft[name] !== limit.own[name])
  const save = useChange({
    make: () => {
      const body = Object.fromEntries(changed.map((name) => [name, draft[name]]))
      return api.identity.accountLimitUpdate({ path: { id: limit.account }, body })
    },
    touches: [['limits', limit.account]],
  })
  return (
    <ChangeForm
      change={save}
      label={t('settings.save')}
      isDisabled={changed.length === 0}
      isReadOnly={isLocked}
      buttonAt="start"
    >
      {NAMES.map((name) => (
        <NumberInput
          key={name}
          field={name}
          label={t(`limits.${name}`)}
          description={draft[name] === null ? t('limits.default', { limit: limit.limits[name] }) : t('limits.own')}
          placeholder={String(limit.limits[name])}
          min={0}
          allowDecimal={false}
          allowNegative={false}
          disabled={isLocked}
          value={draft[name] ?? ''}
          onChange={(value) => setDraft({ ...draft, [name]: value === '' ? null : Number(value) })}
        />
      ))}
    </ChangeForm>
  )
}
