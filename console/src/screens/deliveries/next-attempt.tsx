import type { Schemas } from '@signalbox/client'
import { useTranslation } from 'react-i18next'
import { Time } from '../../parts/time.tsx'

/** When the next attempt of a delivery is due, or that it is due and waits for the limit of its webhook. */
export function NextAttempt({ row }: { row: Pick<Schemas['Dispatch'], 'next_attempt_at' | 'waiting_reason'> }) {
  const { t } = useTranslation('console')
  if (row.waiting_reason === null) return <Time at={row.next_attempt_at} />
  return <span className="nowrap small">{t(`deliveries.${row.waiting_reason}`)}</span>
}
