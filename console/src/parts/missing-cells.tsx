import { Alert } from '@mantine/core'
import { notifyManager, useQueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'

/** Part of an answer when a database of the service is away. */
interface Incomplete {
  missing_cells?: readonly string[]
}

/** The cells that answers name, each once. Pure. */
const listMissing = (answers: readonly unknown[]) =>
  [...new Set(answers.flatMap((answer) => (Object(answer) as Incomplete).missing_cells ?? []))].sort().join(', ')

/** Names the databases whose part is missing in the figures on the screen; nothing while all answer. */
export function MissingCells() {
  const { t } = useTranslation()
  const cache = useQueryClient().getQueryCache()
  const cells = useSyncExternalStore(
    (onChange) => cache.subscribe(notifyManager.batchCalls(onChange)),
    () => listMissing(cache.findAll({ type: 'active' }).map(({ state }) => state.data)),
  )
  if (cells === '') return null
  return (
    <Alert color="yellow" role="status" title={t('page.incomplete')}>
      {t('page.incomplete-text', { cells })}
    </Alert>
  )
}
