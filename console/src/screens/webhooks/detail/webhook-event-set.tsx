import { Badge, Button, Group, Skeleton, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { api } from '../../../frame/api.ts'
import { useAccess } from '../../../frame/session.tsx'
import { useChange } from '../../../frame/use-change.ts'
import { ConfirmDialog } from '../../../parts/dialogs.tsx'
import { ProblemCard } from '../../../parts/problem.tsx'
import { EventPicker } from '../event-picker.tsx'

type Webhook = Schemas['Webhook']

/** The events of a webhook. The API replaces the whole set, so the screen says what that adds and removes. */
export function WebhookEventSet({ webhook }: { webhook: Webhook }) {
  const { t } = useTranslation()
  const { may } = useAccess()
  const path = { id: webhook.document_id }
  const [isOpen, { open, close }] = useDisclosure(false)
  const [next, setNext] = useState<ReadonlySet<string> | undefined>()
  const set = useQuery({
    queryKey: ['event-set', webhook.document_id],
    queryFn: ({ signal }) => api.webhook.webhookEventFindSet({ path, signal }),
  })
  const current = new Set(set.data?.data.events.map(({ internal }) => internal))
  const chosen = next ?? current
  const added = [...chosen].filter((name) => !current.has(name))
  const removed = [...current].filter((name) => !chosen.has(name))
  const replace = useChange({
    make: () => api.webhook.webhookEventSet({ path, body: { events: [...chosen] } }),
    touches: [['event-set', webhook.document_id]],
    onDone: () => {
      setNext(undefined)
      close()
    },
  })
  if (set.isPending) return <Skeleton height={240} />
  if (set.isError) return <ProblemCard error={set.error} onRetry={() => void set.refetch()} />
  return (
    <Stack>
      <Difference added={added} removed={removed} />
      <EventPicker chosen={chosen} onChange={setNext} isGlobal={webhook.is_global} />
      {may('webhook-event:set') && (
        <Group>
          <Button disabled={(added.length === 0 && removed.length === 0) || chosen.size === 0} onClick={open}>
            {t('events.replace')}
          </Button>
          {next && (
            <Button variant="default" onClick={() => setNext(undefined)}>
              {t('dialog.cancel')}
            </Button>
          )}
        </Group>
      )}
      <ConfirmDialog
        title={t('events.replace')}
        label={t('events.replace')}
        isOpen={isOpen}
        onClose={close}
        onConfirm={() => replace.mutate(undefined)}
        isRunning={replace.isPending}
        error={replace.error}
      >
        {added.map((name) => (
          <Text key={name} size="sm">
            + {name}
          </Text>
        ))}
        {removed.map((name) => (
          <Text key={name} size="sm" td="line-through">
            − {name}
          </Text>
        ))}
      </ConfirmDialog>
    </Stack>
  )
}

/** Additions and removals of a replacement. */
function Difference({ added, removed }: { added: readonly string[]; removed: readonly string[] }) {
  if (added.length === 0 && removed.length === 0) return null
  return (
    <Group gap={6} role="status">
      {added.map((name) => (
        <Badge key={name} variant="outline" color="teal" tt="none">
          + {name}
        </Badge>
      ))}
      {removed.map((name) => (
        <Badge key={name} variant="outline" color="red" tt="none" td="line-through">
          {name}
        </Badge>
      ))}
    </Group>
  )
}
