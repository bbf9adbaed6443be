import { NativeSelect } from '@mantine/core'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Screen } from '../screen.tsx'
import { DeliveryList } from './delivery-list.tsx'

const STATUSES = ['success', 'retrying', 'exhausted', 'failed', 'pending', 'cancelled'] as const

/** Every delivery of the account, by its status. */
export function Deliveries() {
  const { t } = useTranslation('portal')
  const { t: shared } = useTranslation('console')
  const [status, setStatus] = useState('')
  const isSet = status !== ''
  return (
    <Screen
      title={shared('deliveries.title')}
      lead={t('deliveries.lead')}
      actions={
        <NativeSelect
          aria-label={shared('deliveries.status')}
          value={status}
          onChange={({ currentTarget }) => setStatus(currentTarget.value)}
          data={[
            { value: '', label: t('deliveries.every-status') },
            ...STATUSES.map((value) => ({ value, label: shared(`status.${value}`) })),
          ]}
        />
      }
    >
      <DeliveryList filters={isSet ? [`status|eq|${status}`] : []} onClear={isSet ? () => setStatus('') : undefined} />
    </Screen>
  )
}
