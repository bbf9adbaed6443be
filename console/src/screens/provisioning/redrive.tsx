import { Button, Group, NativeSelect, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useChange } from '../../frame/use-change.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { ProblemCard } from '../../parts/problem.tsx'
import { numberFormat } from '../../parts/words/formats.ts'
import { useTargetNames } from './targets.ts'

/** A button that makes the failed deliveries of a target once more, as a job. */
export function Redrive({ target }: { target?: string | undefined }) {
  const { t } = useTranslation()
  const [isOpen, { open, close }] = useDisclosure(false)
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={open}>
        {t('redrive.open')}
      </Button>
      <Dialog title={t('redrive.title')} isOpen={isOpen} onClose={close}>
        {isOpen && <StartRedrive given={target} onClose={close} />}
      </Dialog>
    </>
  )
}

function StartRedrive({ given, onClose }: { given: string | undefined; onClose: () => void }) {
  const { t, i18n } = useTranslation()
  const navigate = useNavigate()
  const names = useTargetNames()
  const [chosen, setChosen] = useState(given ?? '')
  // Of a single target there is no choice.
  const target = chosen === '' && names.size === 1 ? [...names.keys()][0]! : chosen
  const found = useFailedCount(target)
  const start = useChange({
    make: () => api.provisioning.provisioningTargetRedrive({ path: { id: target } }),
    touches: [['provisioning-jobs'], ['provisioned']],
    onDone: () => void navigate({ to: '/provisioning/jobs', search: { target } }),
  })
  const count = found.data?.total ?? 0
  const shown = `${numberFormat(i18n.language).format(count)}${found.data?.is_total_exact === false ? '+' : ''}`
  return (
    <Stack>
      <NativeSelect
        label={t('provisioning.one')}
        value={target}
        onChange={({ currentTarget }) => setChosen(currentTarget.value)}
        data={[{ value: '', label: t('redrive.choose') }, ...[...names].map(([value, label]) => ({ value, label }))]}
      />
      {found.isError && <ProblemCard error={found.error} onRetry={() => void found.refetch()} />}
      {found.data && (
        <Text size="sm" fw={600} role="status">
          {t('redrive.count', { count, shown })}
        </Text>
      )}
      <Text size="sm">{t('redrive.text')}</Text>
      {start.isError && <ProblemCard error={start.error} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          {t('dialog.cancel')}
        </Button>
        <Button loading={start.isPending} disabled={count === 0} onClick={() => start.mutate(undefined)}>
          {t('redrive.start')}
        </Button>
      </Group>
    </Stack>
  )
}

/** Number of failed deliveries in the ledger of a target, those that a later change followed included. */
function useFailedCount(target: string) {
  return useQuery({
    queryKey: ['provisioned', 'failed', target],
    queryFn: async ({ signal }) => {
      const filters = [`target|eq|${target}`, 'status|in|failed,dead_letter']
      const query = { filters, count: true, page_size: 1 }
      const { pagination } = await api.provisioning.provisioningDeliveryFindAll({ query, signal })
      return pagination
    },
    enabled: target !== '',
  })
}
