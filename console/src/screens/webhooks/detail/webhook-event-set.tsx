import { Button, Group, Skeleton, Stack } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { ChangeList } from '../../../parts/change-list.tsx'
import { Conflict } from '../../../parts/conflict.tsx'
import { ConfirmDialog } from '../../../parts/dialogs.tsx'
import { ProblemCard } from '../../../parts/problem.tsx'
import { EventPicker } from '../event-picker.tsx'
import { compareSets } from './compare.ts'

type Webhook = Schemas['Webhook']

/** Interval at which the set is read again, so that the change of somebody else shows, ms. */
const REFRESH_MS = 10_000

/** A set that is being edited: from what, to what. */
interface Edit {
  base: ReadonlySet<string>
  next: ReadonlySet<string>
}

/** The events of a webhook, and the answer of the API that holds them. */
function useEventSet(webhook: string) {
  const queries = useQueryClient()
  const options = {
    queryKey: ['event-set', webhook],
    queryFn: async ({ signal }: { signal: AbortSignal }) => {
      const { data } = await api.webhook.webhookEventFindSet({ path: { id: webhook }, signal })
      return data.events.map(({ internal }) => internal)
    },
  }
  const set = useQuery({ ...options, refetchInterval: REFRESH_MS })
  const readNow = async () => new Set(await queries.fetchQuery({ ...options, staleTime: 0 }))
  return { ...set, current: new Set(set.data), readNow }
}

/** The events of a webhook. The API replaces the whole set, so the screen says what that adds and removes. */
export function WebhookEventSet({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [isOpen, { open, close }] = useDisclosure(false)
  const [edit, setEdit] = useState<Edit>()
  const { current, readNow, ...set } = useEventSet(webhook.document_id)
  const base = edit?.base ?? current
  const chosen = edit?.next ?? current
  const mine = compareSets(base, chosen)
  const theirs = compareSets(base, current)
  const replace = useChange({
    make: async () => {
      if (compareSets(base, await readNow()).isSame) {
        await api.webhook.webhookEventSet({ path: { id: webhook.document_id }, body: { events: [...chosen] } })
        setEdit(undefined)
      }
    },
    touches: [['event-set', webhook.document_id]],
    onDone: close,
  })
  if (set.isPending) return <Skeleton height={240} />
  if (set.isError) return <ProblemCard error={set.error} onRetry={() => void set.refetch()} />
  return (
    <Stack>
      {edit && !theirs.isSame && (
        <Conflict onReload={() => setEdit(undefined)} onOverwrite={() => setEdit({ base: current, next: chosen })}>
          <ChangeList added={theirs.added} removed={theirs.removed} />
        </Conflict>
      )}
      {!mine.isSame && (
        <div role="status">
          <ChangeList added={mine.added} removed={mine.removed} />
        </div>
      )}
      <EventPicker
        chosen={chosen}
        before={base}
        onChange={(next) => setEdit({ base, next })}
        isGlobal={webhook.is_global}
      />
      {may('webhook-event:set') && (
        <Group>
          <Button disabled={mine.isSame || chosen.size === 0 || !theirs.isSame} onClick={open}>
            {t('events.replace')}
          </Button>
          {edit && (
            <Button variant="default" onClick={() => setEdit(undefined)}>
              {t('dialog.cancel')}
            </Button>
          )}
        </Group>
      )}
      <ConfirmDialog
        title={t('events.replace')}
        isOpen={isOpen}
        onClose={close}
        onConfirm={() => replace.mutate(undefined)}
        change={replace}
      >
        <ChangeList added={mine.added} removed={mine.removed} />
      </ConfirmDialog>
    </Stack>
  )
}
