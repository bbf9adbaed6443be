import { Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Time, useNow } from '../../parts/time.tsx'
import type { Connection } from './draft.ts'

const DAY_MS = 86_400_000

/** How often it is looked whether the day has ended, ms. */
const AGE_MS = 60_000

/** Whether a day is the one that began at most 24 hours before. Pure. */
const isToday = (day: string, nowMs: number) => nowMs - Date.parse(day) < DAY_MS

/** The last sign-in by a connection, and what became of the attempts of the day. */
export function ConnectionActivity({ connection: { account, document_id: connection } }: { connection: Connection }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const nowMs = useNow(AGE_MS)
  const mayRead = may('connection:find-activity')
  const activity = useQuery({
    queryKey: ['connection-activity', connection],
    queryFn: ({ signal }) => api.identity.connectionFindActivity({ path: { id: account, connection }, signal }),
    enabled: mayRead,
  })
  if (!mayRead || activity.isError) return null
  const found = activity.data?.data
  const today = found?.days.find(({ day }) => isToday(day, nowMs))
  const refusals = (today?.refusals ?? []).map(({ reason, count }) => `${reason}: ${count}`)
  return (
    <Stack gap="xs">
      <Title order={2} size="h4">
        {t('connections.activity')}
      </Title>
      <Facts
        lines={[
          [t('connections.last-sign-in'), <LastSignIn key="last" at={found?.last_sign_in_at} />],
          [t('connections.sign-ins-today'), found ? (today?.sign_ins ?? 0) : '–'],
          [t('connections.refusals-today'), found ? refusals.join(', ') || 0 : '–'],
        ]}
      />
      <Text size="xs" c="dimmed">
        {t('connections.activity-hint')}
      </Text>
    </Stack>
  )
}

/** The last sign-in; undefined while it is read, null for none. */
function LastSignIn({ at }: { at: string | null | undefined }) {
  const { t } = useTranslation()
  if (at === undefined) return <>–</>
  return at === null ? t('connections.never') : <Time at={at} />
}
