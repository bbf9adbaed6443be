import { Button, Group, Progress, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { isProblem } from '@signalbox/client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import type { Provisioned } from './provisioned-rows.tsx'

interface Tally {
  redriven: number
  /** A newer change of the same user follows, or its target takes nothing now. */
  skipped: number
}

/** Makes the deliveries that are shown once more, one after the other; it can be stopped. */
export function Redrive({ deliveries }: { deliveries: readonly Provisioned[] }) {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  return (
    <>
      {deliveries.length > 0 && (
        <Button variant="default" size="compact-sm" onClick={open}>
          {t('redrive.open', { count: deliveries.length })}
        </Button>
      )}
      <Dialog title={t('redrive.title')} isOpen={isOpen} onClose={close}>
        {isOpen && <Run deliveries={deliveries} onClose={close} />}
      </Dialog>
    </>
  )
}

function Run({ deliveries, onClose }: { deliveries: readonly Provisioned[]; onClose: () => void }) {
  const { t } = useTranslation()
  const queries = useQueryClient()
  // The list behind the dialog follows; what was counted stays.
  const [rows] = useState(deliveries)
  const [tally, setTally] = useState<Tally>({ redriven: 0, skipped: 0 })
  const isStopped = useRef(false)
  const run = useMutation({
    mutationFn: async () => {
      for (const { document_id: id } of rows) {
        if (isStopped.current) return
        const isDone = await redrive(id)
        setTally(({ redriven, skipped }) =>
          isDone ? { redriven: redriven + 1, skipped } : { redriven, skipped: skipped + 1 },
        )
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['provisioned'] }),
  })
  const done = tally.redriven + tally.skipped
  return (
    <Stack>
      <Text size="sm">{t('redrive.count', { count: rows.length })}</Text>
      <Text size="sm" c="dimmed">
        {t('redrive.text')}
      </Text>
      {!run.isIdle && (
        <>
          <Progress value={(done / rows.length) * 100} aria-label={t('bulk.progress')} />
          <Text size="sm" role="status">
            {t('redrive.state', { done, total: rows.length, ...tally })}
          </Text>
        </>
      )}
      {run.isError && <ProblemCard error={run.error} />}
      <Group justify="flex-end">
        {run.isPending ? (
          <Button
            variant="default"
            onClick={() => {
              isStopped.current = true
            }}
          >
            {t('redrive.stop')}
          </Button>
        ) : (
          <Button variant="default" onClick={onClose}>
            {t('dialog.close')}
          </Button>
        )}
        {run.isIdle && <Button onClick={() => run.mutate()}>{t('redrive.do')}</Button>}
      </Group>
    </Stack>
  )
}

/** Makes one delivery once more; false where it cannot be. */
async function redrive(id: string): Promise<boolean> {
  try {
    await api.provisioning.provisioningDeliveryReplay({ path: { id }, body: {} })
    return true
  } catch (error) {
    if (isProblem(error, 'delivery_superseded', 'target_inactive', 'conflict', 'duplicate_not_confirmed')) return false
    throw error
  }
}
