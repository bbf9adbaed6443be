import { Button, CloseButton, Group, Loader, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ProblemCard } from '../../parts/problem.tsx'
import { useOnline } from '../use-online.ts'
import { type Notice, showNotice, useNotice } from './notice.ts'

/** How long a notice stays while nobody points at it or is in it, ms. What it offers stands on the screen as well. */
const STAY_MS = 20_000

/** Result of the last change, at the lower edge of the window, over what is read. */
export function NoticeBar() {
  const notice = useNotice()
  return (
    <div className="notices" role="status">
      {notice && <Shown key={notice.text} notice={notice} />}
    </div>
  )
}

function Shown({ notice: { text, undo } }: { notice: Notice }) {
  const { t } = useTranslation('console')
  const isOnline = useOnline()
  const [isHeld, setIsHeld] = useState(false)
  const back = useMutation({
    mutationFn: async () => undo?.(),
    onSuccess: () => showNotice({ text: t('notice.undone') }),
  })
  const isStaying = isHeld || back.isPending || back.isError || !isOnline
  useEffect(() => {
    if (isStaying) return
    const timer = setTimeout(() => showNotice(undefined), STAY_MS)
    return () => clearTimeout(timer)
  }, [isStaying])
  const hold = () => setIsHeld(true)
  const release = () => setIsHeld(false)
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only waits while it is pointed at
    <div className="notice" onPointerEnter={hold} onPointerLeave={release} onFocus={hold} onBlur={release}>
      <Group gap="sm" wrap="nowrap" justify="space-between">
        <Text size="sm">{text}</Text>
        <Group gap={4} wrap="nowrap">
          {back.isPending && <Loader size="xs" aria-label={t('notice.undo')} />}
          {undo && !back.isPending && !back.isError && (
            <Button size="compact-sm" variant="default" disabled={!isOnline} onClick={() => back.mutate()}>
              {t('notice.undo')}
            </Button>
          )}
          <CloseButton size="sm" aria-label={t('dialog.close')} onClick={() => showNotice(undefined)} />
        </Group>
      </Group>
      {back.isError && <ProblemCard error={back.error} />}
    </div>
  )
}
