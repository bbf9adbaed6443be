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
import { withTag } from '../../../parts/row-edit.ts'
import { nameOf } from '../../../parts/words/webhook-name.ts'
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

const namesOf = ({ data }: { data: Schemas['EventSet'] }) => new Set(data.events.map(({ internal }) => internal))

/** The events of a webhook, with what reads and replaces them on the condition of their tag. */
function useEventSet(webhook: string) {
  const queries = useQueryClient()
  const path = { id: webhook }
  const options = {
    queryKey: ['event-set', webhook],
    queryFn: ({ signal }: { signal: AbortSignal }) => withTag(api.webhook.webhookEventFindSet({ path, signal })),
  }
  const set = useQuery({ ...options, refetchInterval: REFRESH_MS })
  return {
    ...set,
    current: set.data ? namesOf(set.data) : new Set<string>(),
    readNow: () => queries.fetchQuery({ ...options, staleTime: 0 }),
    put: (events: ReadonlySet<string>, ifMatch: string | undefined) =>
      withTag(api.webhook.webhookEventSet({ path, body: { events: [...events] }, ifMatch })),
  }
}

/** The events of a webhook. The API replaces the whole set, so the screen says what that adds and removes. */
export function WebhookEventSet({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const [isOpen, { open, close }] = useDisclosure(false)
  const [edit, setEdit] = useState<Edit>()
  const { current, readNow, put, ...set } = useEventSet(webhook.document_id)
  const base = edit?.base ?? current
  const chosen = edit?.next ?? current
  const mine = compareSets(base, chosen)
  const theirs = compareSets(base, current)
  const replace = useChange({
    make: async () => {
      const now = await readNow()
      if (!compareSets(base, namesOf(now)).isSame) return undefined
      const { etag } = await put(chosen, now.etag)
      setEdit(undefined)
      return { before: base, etag }
    },
    touches: [['event-set', webhook.document_id]],
    onDone: close,
    notice: (_, made) =>
      made && {
        text: t('events.replaced', { name: nameOf(webhook) }),
        undo: () => put(made.before, made.etag),
      },
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
        title={t('events.replace-title', { name: nameOf(webhook) })}
        label={t('events.replace')}
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
